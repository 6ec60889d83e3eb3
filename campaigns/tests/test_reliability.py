"""The page of reliability says what the last full run of each campaign found."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns import GROUPS, PAGE
from campaigns.outcome import Outcome
from campaigns.reliability import BEGIN, END, HEAD, Row, record


def _row(campaign: str, trials: int, *failures: str) -> Row:
    outcome = Outcome(tried="kills | cuts", trials=trials, failures=failures)
    return Row(
        campaign=campaign,
        outcome=outcome,
        date="2026-01-02",
        commit="d00d",
        machine="m",
        command="c",
    )


def test_a_run_takes_the_place_of_the_run_before_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}{HEAD}{END}after\n")
    for row in (_row("b", 5), _row("a", 1234), _row("b", 7, "x broke")):
        record(row, page)
    assert page.read_text().splitlines() == [
        "before",
        BEGIN.strip(),
        *HEAD.splitlines(),
        "| a | kills \\| cuts | 1,234 | 0 | 2026-01-02 | d00d | m | `c` |",
        "| b | kills \\| cuts | 7 | 1 | 2026-01-02 | d00d | m | `c` |",
        END.strip(),
        "after",
    ]


def test_a_page_without_its_marks_is_left_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing to see")
    with pytest.raises(ValueError, match="marks"):
        record(_row("a", 1), page)
    assert page.read_text() == "nothing to see"


def test_the_page_has_no_row_of_a_campaign_that_is_gone() -> None:
    table = PAGE.read_text().partition(BEGIN + HEAD)[2].partition(END)[0]
    # Scenes that a row is of stand behind its campaign.
    campaigns = {line.split("|")[1].partition(":")[0].strip() for line in table.splitlines()}
    assert campaigns <= {name for group in GROUPS.values() for name in group}
