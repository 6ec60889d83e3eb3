"""A short run of the campaign: no value that is there is absent."""

from __future__ import annotations

import pytest

from campaigns import no_false_negative
from campaigns.no_false_negative import FULL, values_per_file
from campaigns.outcome import Effort
from testing.columns import CASES
from testing.tables import Mode


def test_no_present_value_is_absent() -> None:
    outcome = no_false_negative.run(Effort(quick=True))
    assert outcome.failures == ()
    assert outcome.trials > 1000


def test_a_full_run_has_as_many_values_as_it_says() -> None:
    """Some types have only 128 values, and the others make up for them."""
    share = values_per_file(CASES, FULL)
    trials = len(Mode) * sum(min(share, column.distinct // 2) for column, _ in CASES)
    assert FULL <= trials < 1.001 * FULL


def test_more_values_than_the_types_have_are_an_error() -> None:
    with pytest.raises(ValueError, match="fewer than"):
        values_per_file(CASES[:1], 1000)
