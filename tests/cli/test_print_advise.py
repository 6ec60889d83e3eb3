"""What ``advise`` shows of its columns: a table, or in a narrow terminal paragraphs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from secure_bloom.advising.table_advice import BetterFpp
from secure_bloom.advising.verdict import AdviceVerdict
from secure_bloom.cli.advise_verb import write_advice
from tests.advising.test_table_advice import column, table
from tests.advising.trials import comparison, cost, trial

TRIAL = trial(None, comparison(cost(4096), cost(2048)), added=2048.0)
ADVICE = table(
    column(
        "email", trial=TRIAL, share=0.25, better=BetterFpp(fpp=0.001, trial=TRIAL, reads_less=True)
    ),
    column("city", AdviceVerdict.NO),
)


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    write_advice("text", ADVICE, None)
    return capsys.readouterr().out


def test_columns_are_rows_and_reasons_stand_below(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys).splitlines()
    (row,) = [line.split() for line in lines if "→" in line]
    assert row[:7] == ["email", "gains", "4.0", "KiB", "→", "2.0", "KiB"]
    assert "email: so it is; fpp = 0.001 reads less still (25 % of the log's lookups)" in lines
    assert "city: so it is" in lines
    assert lines[-2:] == ["[columns.email]", "bloom = { fpp = 0.01 }"]


def test_a_narrow_terminal_gets_paragraphs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    text = shown(capsys)
    assert "absent value: 4.0 KiB → 2.0 KiB\n" in text
    assert "  filters add 2.0 KiB\n" in text
    assert "  tried with 10 absent\n" in text
    assert not [line for line in text.splitlines() if "verdict" in line]


def test_where_nothing_gains_there_is_nothing_to_add(capsys: pytest.CaptureFixture[str]) -> None:
    write_advice("text", table(column("city", AdviceVerdict.NO)), None)
    assert "no column gains by a filter: there is nothing to add" in capsys.readouterr().out


def test_json_goes_into_a_file(tmp_path: Path) -> None:
    write_advice("json", ADVICE, tmp_path / "advice")
    assert (tmp_path / "advice").read_text().startswith("{")
