"""What a terminal shows of Hudi's filters: one row a file, keys only where they are asked for."""

from __future__ import annotations

import pytest

from secure_bloom.adding.report import AddReport, FileAddReport, FilterReport
from secure_bloom.cli.hudi_verbs import print_added, print_filters
from secure_bloom.hudi.filter_reader import RecordKeyFile, RecordKeyReport
from secure_bloom.hudi.record_keys.footer_entry import RecordKeyDescription


def report(*, dry_run: bool = False) -> AddReport:
    made = FilterReport(row_group=None, column="k", action="added", values=9, bytes=64, fpp=0.001)
    file = FileAddReport(path="lake/a.parquet", status="added", filters=(made,))
    return AddReport(files=(file,), notes=("look there",), dry_run=dry_run)


def test_a_row_for_each_filter_then_notes(capsys: pytest.CaptureFixture[str]) -> None:
    print_added(report(), verbose=False)
    text = capsys.readouterr().out
    assert "a.parquet" in text
    assert "0.001" in text
    assert "note: look there" in text
    assert "dry run" not in text
    assert "in clear" not in text


def test_how_it_was_made_is_told_with_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    print_added(report(dry_run=True), verbose=True)
    text = capsys.readouterr().out
    assert "in clear" in text
    assert text.endswith("note: a dry run, nothing was written\n")


def test_no_heading_takes_the_vectors_of_a_filter_for_rows_of_the_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    described = RecordKeyDescription(type="SIMPLE", rows=1, bytes=64, column="k")
    print_filters(
        RecordKeyReport(files=(RecordKeyFile(path="lake/a.parquet", hudi=described),)),
        show_range=False,
        verbose=True,
    )
    text = capsys.readouterr().out
    assert "vectors" in text
    assert "row" not in text
