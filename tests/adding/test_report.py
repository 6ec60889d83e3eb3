"""Reports of runs: what changed, what failed, and notes with their files."""

from __future__ import annotations

from secure_bloom.adding.report import AddReport, FileAddReport, file_notes, hard_link_note


def report(*states: str, dry_run: bool = False) -> AddReport:
    files = (FileAddReport(path=f"{i}.parquet", status=s) for i, s in enumerate(states))  # type: ignore[arg-type]
    return AddReport(files=tuple(files), dry_run=dry_run)


def test_only_files_that_got_filters_change() -> None:
    assert [file.changes for file in report("added", "unchanged", "failed").files] == [
        True,
        False,
        False,
    ]


def test_what_failed_is_named_and_counted() -> None:
    made = report("added", "failed", "added")
    assert [file.path for file in made.failed] == ["1.parquet"]
    assert repr(made) == "<AddReport: 3 files (2 added, 1 failed)>"
    assert repr(report("added", dry_run=True)) == "<AddReport: 1 file (1 added), dry run>"


def test_a_note_is_told_with_its_file() -> None:
    files = [
        FileAddReport(path="a.parquet", status="added", notes=(hard_link_note(3),)),
        FileAddReport(path="b.parquet", status="added"),
    ]
    assert list(file_notes(files)) == [
        "a.parquet: the old content stays under 2 other names (hard link)"
    ]
