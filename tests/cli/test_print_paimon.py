"""What a terminal shows of Paimon's verdicts: how many files, and which may have rows."""

from __future__ import annotations

import pytest

from secure_bloom.bloom.verdicts import Verdict
from secure_bloom.cli.paimon_verbs import print_verdicts
from secure_bloom.paimon import Rules
from secure_bloom.paimon.index_probe import FileVerdict, PaimonProbe

FILES = (
    FileVerdict(path="a.parquet", verdict=Verdict.ABSENT),
    FileVerdict(path="b.parquet", verdict=Verdict.MAYBE),
)


@pytest.mark.parametrize(
    ("rules", "told"),
    [(Rules.SAFE, "can be skipped"), (Rules.PAIMON_0_9, "skipped by Paimon 0.9")],
)
def test_files_that_may_have_rows_are_named(
    capsys: pytest.CaptureFixture[str], rules: Rules, told: str
) -> None:
    print_verdicts(PaimonProbe(files=FILES, rules=rules), verbose=False)
    text = capsys.readouterr().out
    assert f"1 of 2 files {told}" in text
    assert "  b.parquet\n" in text
    assert "a.parquet" not in text
    print_verdicts(PaimonProbe(files=FILES, rules=rules), verbose=True)
    assert "  a.parquet\n" in capsys.readouterr().out
