"""A short run of the campaign, and commits that do what they must not."""

from __future__ import annotations

from unittest import mock

import pytest

pytest.importorskip("pypaimon_rust")

from campaigns import paimon_histories
from campaigns.outcome import Effort
from secure_bloom.lakes.paimon import manifest_commit


def test_no_row_is_lost_or_comes_back() -> None:
    outcome = paimon_histories.run(Effort(quick=True))
    assert outcome.failures == ()
    assert outcome.trials == 3


# That the campaign finds mistakes: a change of the product breaks the test above.
@pytest.mark.slow
def test_entries_in_another_order_are_noticed() -> None:
    """The expiry of snapshots then removes data files that are live."""
    wrong = (
        mock.patch.object(manifest_commit.NewIndex, "taken", manifest_commit.NewIndex.added),
        mock.patch.object(manifest_commit.NewIndex, "added", manifest_commit.NewIndex.taken),
    )
    with wrong[0], wrong[1]:
        outcome = paimon_histories.run(Effort(quick=True))
    assert outcome.failures
