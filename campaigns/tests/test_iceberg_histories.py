"""A short run of the campaign, and a commit that does not look at what others did."""

from __future__ import annotations

from unittest import mock

import pytest

from campaigns import iceberg_histories
from campaigns.outcome import Effort
from secure_bloom.lakes.iceberg import commit


def test_no_row_is_lost_or_there_twice() -> None:
    outcome = iceberg_histories.run(Effort(quick=True))
    assert outcome.failures == ()
    assert outcome.trials == 3


@pytest.mark.slow
def test_a_commit_that_does_not_look_at_others_is_noticed() -> None:
    """Every replacement stands, whatever others deleted or rewrote meanwhile."""
    blind = mock.patch.object(commit, "still_standing", lambda *given: given[-1])
    with blind, mock.patch.dict(iceberg_histories._QUICK, {"local": 30}):
        outcome = iceberg_histories.run(Effort(quick=True))
    assert any("a row is there twice" in it for it in outcome.failures)
    assert any("other rows" in it for it in outcome.failures)
