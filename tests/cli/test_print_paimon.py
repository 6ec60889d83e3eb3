"""What a terminal shows of Paimon's verdicts: how many files, and which may have rows."""

from __future__ import annotations

import pytest

from secure_bloom.bloom.verdicts import Verdict
from secure_bloom.cli.paimon_verbs import print_built, print_verdicts
from secure_bloom.paimon.column_filter import BuildReport
from secure_bloom.paimon.index_probe import FileVerdict, PaimonProbe

FILES = (
    FileVerdict(path="a.parquet", verdict=Verdict.ABSENT),
    FileVerdict(path="b.parquet", verdict=Verdict.MAYBE),
)


def test_files_that_may_have_rows_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    print_verdicts(PaimonProbe(files=FILES), verbose=False)
    text = capsys.readouterr().out
    assert "1 of 2 files can be skipped" in text
    assert "  b.parquet\n" in text
    assert "a.parquet" not in text
    print_verdicts(PaimonProbe(files=FILES), verbose=True)
    assert "  a.parquet\n" in capsys.readouterr().out


def test_a_build_of_no_file_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_built(BuildReport(files=(), seconds=0.0, dry_run=False), verbose=False)
    assert capsys.readouterr().out == "0 files: nothing to do\n"
