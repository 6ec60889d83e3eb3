"""What each kind of index can tell."""

from __future__ import annotations

import dataclasses
import struct
from unittest import mock

import pytest

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.paimon import (
    Comparison,
    DataType,
    FileIndex,
    Index,
    Operator,
    must_read,
    typed_forms,
)
from secure_bloom.paimon.bloom_filter64 import BloomFilter64
from secure_bloom.paimon.container import BLOOM_FILTER
from secure_bloom.paimon.data_types import hashed_form
from secure_bloom.paimon.index_readers import ValueList, open_index
from tests.paimon.test_skipping import _equal, verdict

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


BITMAP_OF_TEXTS = (
    b"\1" + bytes([0, 0, 0, 9, 0, 0, 0, 2, 1]) + bytes(4) + b"\0\0\0\1a" + bytes(4)
    + b"\0\0\0\2bc" + bytes(4)
)  # fmt: skip


@pytest.mark.parametrize(
    ("predicate", "wanted"),
    [
        (_equal("name", "a"), True),
        (_equal("name", "bc"), True),
        (_equal("name", "b"), False),
        (Comparison(column="name", operator=Operator.IS_NULL), True),
        (Comparison(column="name", operator=Operator.IS_NOT_NULL), True),
        (Comparison(column="name", operator=Operator.NOT_EQUAL, values=("a",)), True),
    ],
)
def test_a_bitmap_index_lists_its_texts(predicate: Comparison, wanted: bool) -> None:
    index = FileIndex().with_indexes([("name", Index(type="bitmap", body=BITMAP_OF_TEXTS))])
    assert verdict(index, predicate) is wanted


@pytest.mark.parametrize("length", [2, 9, 12, 17, 20])
def test_a_bitmap_index_that_is_cut_is_an_error(length: int) -> None:
    index = FileIndex().with_indexes(
        [("name", Index(type="bitmap", body=BITMAP_OF_TEXTS[:length]))]
    )
    with pytest.raises(FormatError):
        verdict(index, _equal("name", "zz"))


def test_the_list_of_a_bitmap_is_read_once_for_all_values() -> None:
    numbers = b"".join(struct.pack(">qi", 2 * i, 0) for i in range(1000))
    body = struct.pack(">Biib", 1, 1000, 1000, 0) + numbers
    index = FileIndex().with_indexes([("id", Index(type="bitmap", body=body))])
    asked = Comparison(column="id", operator=Operator.IN, values=tuple(range(1, 2001, 2)))
    listed = ValueList._numbers
    with mock.patch.object(ValueList, "_numbers", autospec=True, side_effect=listed) as passes:
        forms = typed_forms({"id": DataType.parse("BIGINT")})
        assert not must_read(index, asked, forms)
        assert passes.call_count == 1
        assert must_read(index, dataclasses.replace(asked, values=(7, 1998)), forms)
