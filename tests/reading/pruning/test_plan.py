"""Plans say what is read, and shares in few digits."""

from __future__ import annotations

import pytest

from secure_bloom.reading.pruning.plan import percent


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0"),
        (1e-9, "less than 0.0001"),
        (0.00076, "0.076"),
        (0.0123, "1.2"),
        (0.5, "50.0"),
        (0.99999, "99.9"),
        (1.0, "100"),
    ],
)
def test_shares_in_percent(share: float, text: str) -> None:
    assert percent(share) == text
