"""``DYNAMIC_V0``: rows of bits up to a bound."""

from __future__ import annotations

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.hudi.record_keys.dynamic import DynamicBoundedBloomFilter, require_bound


def test_a_row_is_added_when_the_last_one_is_full() -> None:
    one = DynamicBoundedBloomFilter(num_entries=10, fpp=0.01, max_entries=100)
    sizes = []
    for number in range(25):
        one.insert(str(number))
        sizes.append(len(one.to_bytes()))
    assert len(set(sizes)) > 1
    assert all(one.check(str(number)) for number in range(25))
    assert DynamicBoundedBloomFilter.from_bytes(one.to_bytes()).to_bytes() == one.to_bytes()


@pytest.mark.parametrize("bound", [-1, True, 1.5])
def test_a_bound_that_is_no_number_of_keys_is_refused(bound: object) -> None:
    with pytest.raises(PolicyError):
        require_bound(bound)
