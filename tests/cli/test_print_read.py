"""What ``read --explain`` shows: what was skipped, the bytes, and why the rest was read."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from secure_bloom.cli.read_verb import print_report
from secure_bloom.reading import FileReadReport, ReadReport
from secure_bloom.reading.pruning.plan import Note, Reason, RowGroupPlan, Step

SKIPPED = RowGroupPlan(row_group=1, rows=10, skipped_by=Step.BLOOM_FILTER)


def maybe(chance: float) -> Note:
    return Note(
        column="email",
        step=Step.BLOOM_FILTER,
        text=f"maybe {chance}",
        reason=Reason.FILTER_MAYBE,
        chance=chance,
    )


def left(rows: int) -> Note:
    return Note(column="id", step=Step.PAGE_INDEX, text=f"leaves {rows}", rows=rows)


def read(*notes: Note) -> RowGroupPlan:
    return RowGroupPlan(row_group=0, rows=10, rows_found=1, notes=notes)


def file(*groups: RowGroupPlan, path: str = "lake/a.parquet") -> FileReadReport:
    return FileReadReport(
        path=path,
        row_groups=groups,
        bytes_footer=1024,
        bytes_judged_by=0,
        bytes_pages=1024,
        bytes_full_scan=8192,
    )


def report(*files: FileReadReport) -> ReadReport:
    return ReadReport(rows=1, has_condition=True, files_left=0, files=files)


def shown(capsys: pytest.CaptureFixture[str], it: ReadReport, *, verbose: bool = False) -> str:
    print_report(it, verbose=verbose)
    return capsys.readouterr().out


def test_what_was_skipped_and_read(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, report(file(read(), SKIPPED)))
    assert "rows:       1\n" in text
    assert "row groups: 1 of 2 read\n" in text
    assert "1 skipped by Bloom filter\n" in text
    assert "bytes:      2.0 KiB of 8.0 KiB that a full scan reads (25.0 %)\n" in text
    assert "footers 1.0 KiB, pages 1.0 KiB\n" in text


def test_a_plan_has_no_rows_and_files_may_be_left(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, replace(report(file(read())), rows=None, files_left=2))
    assert "none read: this is the plan" in text
    assert "2 files not looked at" in text


def test_more_bytes_than_a_full_scan_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, report(replace(file(read()), bytes_full_scan=1024)))
    assert "bytes:      2.0 KiB, 100.0 % more than a full scan (1.0 KiB)" in text


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        ((read(maybe(0.01)), read(maybe(0.01))), "email, Bloom filter: maybe 0.01 (2 row groups)"),
        ((read(maybe(0.01)), read(maybe(0.02))), "probabilities are 1.0 to 2.0 % (2 row groups)"),
        ((read(left(3)), read(left(4))), "id, page index: leaves 7 of 20 rows (2 row groups)"),
        ((read(Note(column="x", step=None, text="odd")),), "x, odd (1 row group)"),
    ],
)
def test_notes_of_one_kind_are_one_line(
    capsys: pytest.CaptureFixture[str], groups: tuple[RowGroupPlan, ...], told: str
) -> None:
    lines = shown(capsys, report(file(*groups))).splitlines()
    (line,) = [line for line in lines if line.startswith("not skipped: ")]
    assert line.endswith(told)


def test_notes_of_files_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    unchecked = replace(file(read()), notes=("not checked",))
    print_report(report(unchecked, unchecked), verbose=False)
    seen = capsys.readouterr()
    assert "not checked (2 files)" in seen.out + seen.err


def test_of_many_files_the_first_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    it = report(*(file(read(), path=f"lake/{i}.parquet") for i in range(23)))
    text = shown(capsys, it)
    assert text.count(".parquet") == 20
    assert "and 3 more files: -v names them all\n" in text
    assert shown(capsys, it, verbose=True).count(".parquet") == 46


def test_row_groups_are_told_of_with_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, report(file(read(maybe(0.01)), SKIPPED)), verbose=True)
    assert "  row group 0, 10 rows: read\n    email, Bloom filter: maybe 0.01\n" in text
    assert "  row group 1, 10 rows: skipped by Bloom filter\n" in text


def test_a_narrow_terminal_gets_lines_for_each_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    text = shown(capsys, report(file(read(), SKIPPED)))
    assert "a.parquet\n  1 of 2 read, 2.0 KiB\n  skipped by Bloom filter 1\n" in text


def test_python_and_notebooks_say_what_the_command_line_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    it = report(file(read(maybe(0.01)), SKIPPED))
    lines = shown(capsys, it).splitlines()
    assert lines[1] == "not skipped: email, Bloom filter: maybe 0.01 (1 row group)"
    assert str(it).splitlines() == lines[: len(it.lines)]
    assert "\n".join(lines[:4]) in it._repr_html_()


def test_the_bytes_of_a_file_are_in_one_of_its_rows() -> None:
    it = report(file(read(), SKIPPED), file(read(), SKIPPED, path="lake/b.parquet"))
    rows = it.to_arrow().to_pylist()
    assert len(rows) == 4
    assert sum(row["bytes_read"] or 0 for row in rows) == it.bytes_read
    assert [row["row_group"] for row in rows] == [0, 1, 0, 1]
    assert [row["path"] for row in rows][:2] == ["lake/a.parquet"] * 2
