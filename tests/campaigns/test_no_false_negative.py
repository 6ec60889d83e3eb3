"""A short run of the campaign: no value that is there is absent."""

from __future__ import annotations

from campaigns import no_false_negative
from campaigns.outcome import Effort


def test_no_present_value_is_absent() -> None:
    outcome = no_false_negative.run(Effort(quick=True))
    assert outcome.failures == ()
    assert outcome.trials > 1000
