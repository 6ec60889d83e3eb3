"""Typed views on trees: what is declared is checked, what is not declared is kept."""

from __future__ import annotations

import pytest

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.parquet.structures.metadata import CompressionCodec
from testing.thrift import trees
from testing.thrift.metadata import (
    AesGcmV1,
    ColumnMetaData,
    EncryptionAlgorithm,
    KeyValue,
    PageEncodingStats,
    Statistics,
)

BINARY, I32 = 11, 8


def test_a_field_that_is_set_is_encoded_and_read_again() -> None:
    pair = KeyValue.of(key="k", value="é")
    assert KeyValue(trees.decode(pair.encode())[0]).value == "é"
    del pair.value
    assert pair.value is None


def test_a_field_that_must_be_there_is_named() -> None:
    with pytest.raises(FormatError, match=r"KeyValue\.key"):
        _ = KeyValue(trees.Struct()).key


def test_an_undeclared_field_stays_where_it_was() -> None:
    tree = trees.Struct({1: (BINARY, b"k"), 77: (I32, 5)})
    KeyValue(tree).value = "v"
    assert tree.fields[77] == (I32, 5)


def test_fields_are_written_in_ascending_order() -> None:
    pair = KeyValue(trees.Struct({2: (BINARY, b"v")}))
    pair.key = "k"
    assert list(pair.tree.fields) == [1, 2]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({1: (I32, 5)}, r"KeyValue\.key"),
        ({1: (BINARY, b"\xff")}, "not UTF-8"),
    ],
    ids=["another type", "no UTF-8"],
)
def test_a_field_of_another_kind_is_named(
    fields: dict[int, tuple[int, trees.Value]], complaint: str
) -> None:
    with pytest.raises(FormatError, match=complaint):
        _ = KeyValue(trees.Struct(fields)).key


def test_a_number_that_an_enumeration_does_not_have_is_refused() -> None:
    meta_data = ColumnMetaData(trees.Struct({4: (I32, 99)}))
    with pytest.raises((FormatError, UnsupportedFeatureError), match="99"):
        _ = meta_data.codec
    meta_data.codec = CompressionCodec.ZSTD
    assert meta_data.codec is CompressionCodec.ZSTD


def test_a_union_names_its_member() -> None:
    algorithm = EncryptionAlgorithm.of(AES_GCM_V1=AesGcmV1.of())
    assert algorithm.member() == "AES_GCM_V1"
    with pytest.raises((FormatError, UnsupportedFeatureError)):
        EncryptionAlgorithm(trees.Struct({9: (12, trees.Struct())})).member()


def test_structures_in_a_list_stand_on_the_tree() -> None:
    stats = PageEncodingStats.of(page_type=0, encoding=0, count=1)
    meta_data = ColumnMetaData.of(encoding_stats=[stats], statistics=Statistics.of(null_count=1))
    (found,) = meta_data.encoding_stats or []
    found.count = 5
    assert (meta_data.encoding_stats or [])[0].count == 5
    assert meta_data.statistics is not None
    assert meta_data.statistics.null_count == 1
