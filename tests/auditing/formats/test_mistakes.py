"""The same mistake is one group, wherever it is; what could not be checked stays apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.auditing.findings import AuditReport, Severity
from secure_bloom.auditing.formats.mistakes import State, common_folder, group_report, path_rows
from tests.auditing.formats import reports
from tests.auditing.formats.reports import (
    day_paths,
    filter_missing,
    finding,
    statistics_in_clear,
    unchecked,
)


def test_one_mistake_in_many_files_and_columns_is_one_group() -> None:
    found = [
        filter_missing(f"part-{n}", column, row_group=g)
        for n in range(20)
        for column in ("email", "iban")
        for g in (0, 1)
    ]
    (group,) = group_report(AuditReport(findings=tuple(found)))
    assert len(group.paths) == 20
    assert group.columns == ("email", "iban")
    assert group.row_groups == 40


def test_worst_first_then_widest_then_unchecked_then_ignored() -> None:
    found = (
        unchecked("a"),
        replace(filter_missing("a"), id="filter-saturated"),
        filter_missing("a"),
        filter_missing("b"),
        statistics_in_clear("a"),
    )
    report = AuditReport(findings=found, ignored=(finding(path="a"),))
    assert [(group.state, group.id) for group in group_report(report)] == [
        (State.CRITICAL, "statistics-in-clear"),
        (State.LOW, "filter-missing"),
        (State.LOW, "filter-saturated"),
        (State.UNCHECKED, "unchecked-footer"),
        (State.IGNORED, "column-in-clear"),
    ]


def test_groups_of_one_id_stay_together_behind_their_widest() -> None:
    found = (
        *(finding("b", path=path, what="wide") for path in "xyz"),
        *(finding("a", path=path) for path in "xy"),
        finding("b", path="x", what="narrow"),
    )
    groups = group_report(AuditReport(findings=found))
    assert [(group.id, len(group.paths)) for group in groups] == [("b", 3), ("b", 1), ("a", 2)]


def test_endless_wordings_of_one_id_are_one_group() -> None:
    found = tuple(
        finding("filter-damaged", Severity.HIGH, f"part-{n}", what=f"numBytes is {n}")
        for n in range(5000)
    )
    (group,) = group_report(AuditReport(findings=found))
    assert group.what == "numBytes is 0 (and 4,999 like it)"
    assert len(group.paths) == 5000


def test_a_few_wordings_stay_apart() -> None:
    found = tuple(finding(path="a", what=f"the policy asks for k_{n}") for n in range(3))
    assert len(group_report(AuditReport(findings=found))) == 3


def test_every_finding_is_in_one_group() -> None:
    report = reports.large_report()
    groups = group_report(report)
    assert sum(len(group.findings) for group in groups) == len(report.findings) + len(
        report.ignored
    )


PATHS = st.lists(
    st.lists(st.sampled_from(["a", "b", "ab", "dt=1", "dt=2"]), min_size=1, max_size=4).map(
        "/".join
    ),
    unique=True,
    max_size=40,
)


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        ([], ""),
        (["part-0.parquet"], ""),
        (["lake/part-0.parquet"], "lake/"),
        (["lake/a/part-0.parquet", "lake/ab/part-0.parquet"], "lake/"),
        (["lake/x.parquet", "lake/x.parquet.d/y.parquet"], "lake/"),
        (["/a/x", "/b/x"], ""),
        (["/data/a/x", "/data/b/x"], "/data/"),
        (["s3://lake/dt=1/x", "s3://lake/dt=2/x"], "s3://lake/"),
        (["s3://lake/x", "s3://other/x"], ""),
    ],
)
def test_the_folder_that_all_are_in(paths: list[str], folder: str) -> None:
    assert common_folder(paths) == folder


@given(PATHS)
def test_the_common_folder_is_a_beginning_of_all(paths: list[str]) -> None:
    folder = common_folder(paths)
    assert all(path.startswith(folder) and path != folder for path in paths)


def _labels(paths: list[str], most: int) -> list[str]:
    return [row.label for row in path_rows(paths, common_folder(paths), most)]


def test_few_files_have_a_row_each() -> None:
    assert _labels(["lake/a.parquet", "lake/dt=1/b.parquet"], 2) == ["a.parquet", "dt=1/b.parquet"]


def test_many_files_are_rows_of_folders() -> None:
    assert _labels(day_paths(3, 5), 3) == ["dt=2026-01-01/", "dt=2026-01-02/", "dt=2026-01-03/"]


def test_files_beside_folders_are_a_row_too() -> None:
    assert _labels(["lake/x", "lake/y", "lake/d/x", "lake/d/y"], 3) == ["./", "d/"]


def test_too_many_folders_go_a_level_higher() -> None:
    paths = [f"lake/m={m}/d={d}/x" for m in range(3) for d in range(9)]
    assert _labels(paths, 10) == ["m=0/", "m=1/", "m=2/"]


def test_folders_of_one_level_become_runs() -> None:
    assert _labels(day_paths(4, 2), 2) == [
        "dt=2026-01-01/ … dt=2026-01-02/",
        "dt=2026-01-03/ … dt=2026-01-04/",
    ]


def test_the_common_folder_is_no_row() -> None:
    paths = [f"s3://bucket-{n}/x.parquet" for n in range(6)]
    assert len(path_rows(paths, "", 3)) == 3


def test_files_of_one_folder_become_runs() -> None:
    assert _labels([f"lake/{n}.parquet" for n in range(5)], 2) == [
        "0.parquet … 2.parquet",
        "3.parquet … 4.parquet",
    ]


@given(PATHS, st.integers(1, 12))
def test_every_file_has_one_row_and_rows_are_few(paths: list[str], most: int) -> None:
    rows = path_rows(paths, common_folder(paths), most)
    assert len(rows) <= most
    assert sorted(path for row in rows for path in row.paths) == sorted(paths)
