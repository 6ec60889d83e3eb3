"""Fields are found in any bytes as the tree decodes them, or the bytes are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TProtocol import TType

from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.parquet.structures.wire_fields import find_fields, list_elements
from testing.thrift import trees
from testing.thrift.trees import Sequence, Struct
from tests.parquet.structures.thrift_values import structs as trees_of


@given(st.binary(max_size=60))
def test_any_bytes_are_found_in_or_refused(garbage: bytes) -> None:
    try:
        fields = find_fields(garbage)
    except SecureBloomError:
        return
    assert garbage[fields.stop] == 0
    assert trees.decode(garbage)[1] == fields.stop + 1


@given(trees_of(1), st.data())
def test_a_structure_cut_short_is_refused(tree: Struct, data: st.DataObject) -> None:
    encoded = trees.encode(tree)
    with pytest.raises(FormatError):
        find_fields(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


@pytest.mark.parametrize(
    ("hostile", "match"),
    [
        (bytes([0x15, 0x02, 0x05, 0x02, 0x02, 0x00]), "twice"),
        (b"\x1c" * 200, "deeper"),
        (b"\x19\xf5\x80\x80\x80\x80\x08\x00", "elements"),
        (b"\x18\xff\xff\xff\xff\x0f", "damaged"),
        (b"\x15" + b"\xff" * 20, "damaged"),
        (b"\x1e\x00", "damaged"),
    ],
)
def test_hostile_bytes_are_refused(hostile: bytes, match: str) -> None:
    with pytest.raises(FormatError, match=match):
        find_fields(hostile)


def test_a_value_of_a_list_of_numbers_is_no_list_of_structures() -> None:
    buffer = trees.encode(Struct({1: (TType.LIST, Sequence(TType.I32, [1]))}))
    with pytest.raises(FormatError, match="not a list of structures"):
        list_elements(buffer, find_fields(buffer).by_id[1])
