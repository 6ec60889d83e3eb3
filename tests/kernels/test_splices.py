"""Filters set in the metadata of chunks: the bytes of the splices in Python, or none at all."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TProtocol import TType

from secure_bloom.errors import FormatError
from secure_bloom.parquet.structures.splices import (
    binary,
    i32,
    i64,
    set_fields,
    splice,
    with_fields,
)
from secure_bloom.parquet.structures.wire_fields import find_nested
from testing.thrift import trees
from testing.thrift.metadata import ColumnChunk, ColumnMetaData
from testing.thrift.trees import Struct, Value
from tests.kernels import mutations, native, needs_native

pytestmark = needs_native

META_DATA: dict[int, tuple[int, Value]] = {
    5: (TType.I64, 1000),
    9: (TType.I64, 4),
    12: (TType.STRUCT, Struct({3: (TType.I64, 0), 5: (TType.STRING, b"z" * 20)})),
    16: (TType.STRUCT, Struct({1: (TType.I64, 1)})),
}
#: Filters as they are, and of lengths that take fewer and more bytes than the new ones.
FILTERS = [{}, {14: (TType.I64, 2**40)}, {14: (TType.I64, 1), 15: (TType.I32, 2**30)}]
#: Nothing after the metadata, modules, fields of later formats near and far.
OTHERS: list[dict[int, tuple[int, Value]]] = [
    {},
    {9: (TType.STRING, b"module" * 10)},
    {4: (TType.I64, 9), 9: (TType.STRING, b""), 40: (TType.BOOL, True)},
]
SEALED = b"s" * 300


def chunk(filters: int, others: int) -> Struct:
    inner = Struct(dict(sorted((META_DATA | FILTERS[filters]).items())))
    return Struct(
        dict(sorted({2: (TType.I64, 4), 3: (TType.STRUCT, inner), **OTHERS[others]}.items()))
    )


CHUNKS = [trees.encode(chunk(i, j)) for i in range(len(FILTERS)) for j in range(len(OTHERS))]
STARTS = list(accumulate(map(len, CHUNKS), initial=3))[:-1]
PLAIN = b"abc" + b"".join(CHUNKS) + b"xyz"
PLACES = [(10**6 * 10**i, 47 << i) for i in range(len(CHUNKS))]


def by_extension(
    plain: bytes,
    starts: Sequence[int] = STARTS,
    sealed: Sequence[bytes] = (b"",) * len(STARTS),
    *,
    is_meta_data: bool = False,
    room: int = 4096,
) -> bytes | None:
    texts = [binary(each).encoded if each else b"" for each in sealed]
    bounds = array("q", accumulate(map(len, texts), initial=0))
    places = array("q", [number for place in PLACES[: len(starts)] for number in place])
    into = bytearray(b"\x77" * (room + 1))
    end = native.set_filters(
        plain, array("q", starts), places, b"".join(texts), bounds, is_meta_data,
        memoryview(into)[:room],
    )  # fmt: skip
    assert into[room] == 0x77
    return None if end < 0 else bytes(into[:end])


def by_python(
    plain: bytes, starts: Sequence[int] = STARTS, sealed: Sequence[bytes] = (b"",) * len(STARTS)
) -> bytes:
    splices = []
    for start, (offset, length), module in zip(starts, PLACES, sealed, strict=False):
        fields, inner = find_nested(plain, start, ColumnChunk.meta_data.id)
        if inner is not None:
            splices += set_fields(plain, inner, {14: i64(offset), 15: i32(length)})
        if module:
            splices += set_fields(plain, fields, {9: binary(module)})
    return splice(plain, splices)


@pytest.mark.parametrize("sealed", [b"", SEALED])
def test_the_copy_is_that_of_the_splices(sealed: bytes) -> None:
    modules = [sealed] * len(STARTS)
    found = by_extension(PLAIN, STARTS, modules)
    assert found == by_python(PLAIN, STARTS, modules)
    assert found is not None
    assert found.count(SEALED) == (len(STARTS) if sealed else 0)


def test_metadata_of_its_own_ends_where_its_structure_does() -> None:
    meta_data = trees.encode(Struct(META_DATA))
    found = by_extension(meta_data + b"padding", [0], [b""], is_meta_data=True)
    assert found == with_fields(meta_data, {14: i64(PLACES[0][0]), 15: i32(PLACES[0][1])})


def test_a_copy_that_has_no_room_is_none() -> None:
    found = by_extension(PLAIN)
    assert found is not None
    assert by_extension(PLAIN, room=len(found)) == found
    assert {by_extension(PLAIN, room=room) for room in range(len(found))} == {None}


@given(mutations(PLAIN, 3), st.sampled_from([b"", SEALED]))
def test_altered_bytes_are_spliced_as_in_python_or_not_at_all(data: bytes, sealed: bytes) -> None:
    modules = [sealed] * len(STARTS)
    found = by_extension(data, STARTS, modules)
    try:
        wanted = by_python(data, STARTS, modules)
    except (FormatError, ValueError):
        # Structures that overlap are none of a footer: the extension refuses what does not ascend.
        wanted = None
    assert found is None or found == wanted


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, len(PLAIN)), min_size=1, max_size=9)
)
def test_offsets_that_lead_nowhere_are_no_copy(starts: list[int]) -> None:
    modules = [b""] * len(starts)
    found = by_extension(PLAIN, starts, modules)
    # An offset may lead to bytes that are a structure, whose fields are then replaced.
    if found is not None and len(found) < len(PLAIN):
        assert found == by_python(PLAIN, starts, modules)


@pytest.mark.parametrize(
    ("places", "bounds"),
    [
        ([1], [0, 0]),
        ([1, -1], [0, 0]),
        ([-1, 1], [0, 0]),
        ([1, 2**31], [0, 0]),
        ([1, 1], [0]),
        ([1, 1], [0, 9]),
        ([1, 1], [5, 4]),
        ([1, 1], [-1, 0]),
    ],
)
def test_arguments_that_do_not_fit_are_refused(places: list[int], bounds: list[int]) -> None:
    room = bytearray(4096)
    with pytest.raises(ValueError, match="do not fit"):
        native.set_filters(
            PLAIN, array("q", [3]), array("q", places), b"12345", array("q", bounds), 0, room
        )


def test_the_ids_are_those_of_the_format() -> None:
    assert (ColumnChunk.meta_data.id, ColumnChunk.encrypted_column_metadata.id) == (3, 9)
    assert ColumnMetaData.bloom_filter_offset.id == 14
    assert ColumnMetaData.bloom_filter_length.id == 15


@pytest.mark.parametrize("start", [len(PLAIN) + 1, 10**6, 2**62])
def test_an_offset_beyond_the_bytes_is_no_copy(start: int) -> None:
    assert by_extension(PLAIN, [start], [b""], room=10**7) is None
