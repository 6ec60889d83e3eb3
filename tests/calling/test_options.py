"""What may be asked of a filter, and what may not."""

from __future__ import annotations

from typing import Any

import pytest

from secure_bloom import BloomFilterOptions
from secure_bloom.calling.options import MAX_BYTES, MIN_BYTES
from secure_bloom.errors import PolicyError


def test_the_default_is_one_in_a_hundred_at_any_size() -> None:
    assert BloomFilterOptions() == BloomFilterOptions(fpp=0.01, max_bytes=MAX_BYTES)


@pytest.mark.parametrize("fpp", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_a_rate_that_is_no_probability_is_refused(fpp: float) -> None:
    with pytest.raises(PolicyError, match="fpp"):
        BloomFilterOptions(fpp=fpp)


@pytest.mark.parametrize("size", [MIN_BYTES - 1, MAX_BYTES + 1])
def test_a_size_that_no_filter_has_is_refused(size: int) -> None:
    with pytest.raises(PolicyError, match="max_bytes"):
        BloomFilterOptions(max_bytes=size)


@pytest.mark.parametrize(
    "given", [{"fpp": "0.01"}, {"fpp": True}, {"max_bytes": 64.0}, {"max_bytes": None}]
)
def test_what_is_no_number_is_refused(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(PolicyError, match=f"{name} is of type"):
        BloomFilterOptions(**given)
