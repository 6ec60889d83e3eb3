"""Compact bytes and trees: both ways, lossless, bounded, and nothing but our errors."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import FormatError, SecureBloomError
from testing.project import CORPUS, NO_CORPUS
from testing.thrift import trees
from testing.thrift.trees import Struct
from tests.parquet.structures.thrift_values import structs


@given(structs(2))
def test_decode_gives_back_what_encode_took(tree: Struct) -> None:
    encoded = trees.encode(tree)
    assert trees.decode(encoded) == (tree, len(encoded))
    assert trees.decode(encoded + b"\0" * 7) == (tree, len(encoded))


@given(st.binary(max_size=200))
def test_any_bytes_parse_or_raise_our_error(garbage: bytes) -> None:
    try:
        tree, length = trees.decode(garbage)
    except SecureBloomError:
        return
    assert 0 < length <= len(garbage)
    assert isinstance(tree, Struct)


@given(structs(1), st.data())
def test_a_structure_cut_short_is_refused(tree: Struct, data: st.DataObject) -> None:
    encoded = trees.encode(tree)
    end = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(FormatError):
        trees.decode(encoded[:end])


def test_a_container_larger_than_its_bytes_is_refused_before_it_is_read() -> None:
    # field 1, list of i32, size 2^31 in a varint
    with pytest.raises(FormatError, match="2147483648 elements"):
        trees.decode(b"\x19\xf5\x80\x80\x80\x80\x08\x00")


def test_a_million_empty_structures_are_refused_before_they_are_made() -> None:
    count = 2_000_000
    claimed = b"\x19\xfc\x80\x89\x7a" + bytes(count) + b"\x00"  # field 1, list of structures
    with pytest.raises(FormatError, match="2000000 elements, at most"):
        trees.decode(claimed)


def test_a_structure_that_nests_without_end_is_refused() -> None:
    with pytest.raises(FormatError, match="nest"):
        trees.decode(b"\x1c" * 10_000)


def test_a_field_that_stands_twice_is_refused() -> None:
    with pytest.raises(FormatError, match="twice"):
        trees.decode(b"\x15\x02\x05\x02\x04\x00")


def test_a_nan_keeps_its_payload() -> None:
    bits = struct.pack("<Q", 0x7FF8_0000_DEAD_BEEF)
    encoded = b"\x17" + bits + b"\x00"
    assert trees.encode(trees.decode(encoded)[0]) == encoded


@pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
def test_footers_of_the_public_corpus_come_back_byte_for_byte() -> None:
    seen = 0
    for path in sorted(CORPUS.glob("*.parquet*")):
        content = path.read_bytes()
        if content[-4:] != b"PAR1":
            continue
        length = int.from_bytes(content[-8:-4], "little")
        footer = content[-8 - length : -8]
        tree, used = trees.decode(footer)
        assert trees.encode(tree) == footer[:used]
        seen += 1
    assert seen >= 3


def _listed(*structs: bytes) -> bytes:
    """Field 1: a list of these structures."""
    return b"\x19" + bytes([len(structs) << 4 | 0x0C]) + b"".join(structs) + b"\x00"


@given(st.lists(structs(1), max_size=5), st.data())
def test_a_list_that_is_damaged_raises_our_error(
    structs: list[Struct], data: st.DataObject
) -> None:
    encoded = bytearray(_listed(*map(trees.encode, structs)))
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] = data.draw(st.integers(0, 255))
    try:
        tree, _ = trees.decode(bytes(encoded))
        repr(tree)
    except SecureBloomError:
        pass
