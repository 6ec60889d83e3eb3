"""What each kind of index can tell."""

from __future__ import annotations

import pytest

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.paimon.bloom_filter64 import BloomFilter64
from secure_bloom.paimon.comparisons import Operator
from secure_bloom.paimon.container import BLOOM_FILTER, Index
from secure_bloom.paimon.data_types import DataType, hashed_form
from secure_bloom.paimon.index_readers import open_index

VALUE, OTHER = (hashed_form(DataType.parse("STRING"), text) for text in ("a", "b"))


def test_an_empty_index_lets_nothing_pass() -> None:
    empty = open_index(Index(type=BLOOM_FILTER, body=None))
    assert empty.passing(frozenset({VALUE})) == set()
    assert not empty.keeps(Operator.IS_NOT_NULL)


def test_a_bloom_filter_lets_its_values_pass() -> None:
    bloom_filter = BloomFilter64.sized(10, 1e-6)
    bloom_filter.insert_hash(VALUE.hash())
    index = open_index(Index(type=BLOOM_FILTER, body=bloom_filter.to_bytes()))
    assert index.passing(frozenset({VALUE, OTHER})) == {VALUE}
    assert index.keeps(Operator.IS_NULL)


def test_a_type_that_paimon_does_not_have_is_an_error() -> None:
    with pytest.raises(UnsupportedFeatureError, match="guess"):
        open_index(Index(type="guess", body=b""))
