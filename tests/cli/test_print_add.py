"""What a terminal shows of an add: files, sums, and remarks on filters that are not as asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from secure_bloom.adding.report import (
    AddReport,
    CostEstimate,
    FileAddReport,
    FilterReport,
)
from secure_bloom.cli.add_verb import print_add_report, print_commits
from secure_bloom.runs.target import ReplacedFile, TableCommit


def added(**filter_: object) -> FileAddReport:
    given = {"row_group": 0, "column": "email", "action": "added", "fpp_requested": 0.01, **filter_}
    return FileAddReport(
        path="a.parquet",
        status="added",
        bytes_before=1000,
        bytes_after=3000,
        filters=(FilterReport(**given),),  # type: ignore[arg-type]
    )


def shown(capsys: pytest.CaptureFixture[str], report: AddReport, *, verbose: bool = False) -> str:
    print_add_report(report, verbose=verbose)
    return capsys.readouterr().out


def test_what_was_done_is_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, AddReport(files=(added(), added())))
    assert "filters: 2 added; the files are 3.9 KiB larger" in text


def test_files_that_keep_their_size_do(capsys: pytest.CaptureFixture[str]) -> None:
    file = FileAddReport(path="a.parquet", status="unchanged", bytes_before=9, bytes_after=9)
    assert "filters: none; the files keep their size" in shown(capsys, AddReport(files=(file,)))


def test_of_many_files_the_first_are_told_of_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    report = AddReport(files=(added(),) * 10_000)
    text = shown(capsys, report)
    assert text.count("a.parquet") == 20
    assert "and 9,980 more files: -v names them all\n" in text
    assert "filters: 10,000 added" in text


def test_a_dry_run_says_would_be(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, AddReport(files=(added(),), dry_run=True))
    assert "would be added" in text
    assert "filters: 1 would be added; the files would be" in text


@pytest.mark.parametrize(
    ("filter_", "remark"),
    [
        ({"fpp": 0.2, "reason": "max_bytes 32 is too small"}, "false positives above the 0.01"),
        ({"action": "skipped", "reason": "no such column"}, "column email, missing in some"),
        ({"action": "replaced", "reason": "the old one missed 3"}, "filters that were replaced"),
    ],
)
def test_what_differs_from_the_request_is_a_note(
    capsys: pytest.CaptureFixture[str], filter_: dict[str, object], remark: str
) -> None:
    files = (added(**filter_), added(**filter_))
    assert shown(capsys, AddReport(files=files)).count(remark) == 1


def test_a_remark_on_many_columns_is_one_note(capsys: pytest.CaptureFixture[str]) -> None:
    filters = [
        added(column=f"c{number}", action="skipped", reason="no such column").filters[0]
        for number in range(300)
    ]
    text = shown(capsys, AddReport(files=(replace(added(), filters=tuple(filters)),)))
    (note,) = (line for line in text.splitlines() if line.startswith("note: "))
    assert note.startswith("note: 300 columns c0, c1, ")
    assert note.endswith(" more, missing in some files: no such column")


def test_a_file_whose_filters_are_built_again_is_replaced(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = AddReport(files=(added(action="replaced"),))
    text = shown(capsys, report)
    assert "a.parquet  replaced  1 replaced" in text
    assert "1 file: 1 replaced" in text
    assert report.to_dict()["files"][0]["status"] == "added"
    assert "would be replaced" in shown(capsys, replace(report, dry_run=True))


def test_a_filter_as_asked_for_has_no_note(capsys: pytest.CaptureFixture[str]) -> None:
    assert "note:" not in shown(capsys, AddReport(files=(added(fpp=0.009),)))


def test_filters_are_listed_with_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    report = AddReport(files=(added(fpp=0.009, encrypted=True, key="k_pii"),))
    assert "k_pii" in shown(capsys, report, verbose=True)
    assert "k_pii" not in shown(capsys, report)


COMMIT = TableCommit(
    version=7,
    operation="REENCRYPT",
    metrics={
        "numAddedFiles": "1",
        "numRemovedFiles": "1",
        "numAddedBytes": "2048",
        "numRemovedBytes": "1024",
        "numUpdatedStatistics": "3",
    },
    files=(ReplacedFile(removed="a", added="b"),),
)


@pytest.mark.parametrize(("dry_run", "first"), [(False, "committed"), (True, "would be")])
def test_each_version_has_a_line(
    capsys: pytest.CaptureFixture[str], dry_run: bool, first: str
) -> None:
    print_commits([COMMIT], dry_run=dry_run)
    line = capsys.readouterr().out
    assert line.startswith(f"{first} version 7: REENCRYPT, 1 file replaced, ")
    assert "bounds of 3 other files dropped" in line


def test_a_cost_below_a_tenth_of_a_second_is_not_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cost = CostEstimate(
        files=1,
        bytes=1000,
        sampled_files=1,
        sampled_bytes=1000,
        bytes_added=10,
        share_added=0.01,
        margin=0.0,
        requests=3,
        cpu_hours=0.01 / 3600,
        listing_seconds=0.0,
        driver_memory=1,
        process_memory=1,
        hours={"1": 0.01 / 3600, "8": 1 / 3600},
    )
    text = shown(capsys, AddReport(files=(added(),), dry_run=True, estimate=cost))
    assert "less than 0.1 s of CPU time: less than 0.1 s on 1, 1.0 s on 8 cores" in text
    less = replace(cost, bytes_added=-2048, share_added=-0.5)
    text = shown(capsys, AddReport(files=(added(),), dry_run=True, estimate=less))
    assert "  2.0 KiB less: more dead bytes go than filters come (-50.00%)" in text
