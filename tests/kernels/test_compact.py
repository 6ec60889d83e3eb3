"""Fields found where they lie: as the Thrift library reads them, and never outside of the bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from thrift.protocol.TProtocol import TType

from secure_bloom.errors import FormatError
from secure_bloom.parquet.structures import records
from secure_bloom.parquet.structures.wire_fields import WireType
from testing.thrift import trees
from testing.thrift.trees import Map, Sequence, Struct, Value
from tests.kernels import ABSENT, NOWHERE, mutations, native, needs_native

pytestmark = needs_native
#: Field ids of a table.
FIELD_IDS = 32
Table = NDArray[np.int16]

#: A structure with a field of every type that a footer may have.
EVERY_TYPE = Struct(
    {
        1: (TType.BOOL, True),
        2: (TType.BOOL, False),
        3: (TType.BYTE, -3),
        4: (TType.I16, -(2**15)),
        5: (TType.I32, -(2**31)),
        6: (TType.I64, -(2**63)),
        7: (TType.DOUBLE, 0.5),
        8: (TType.STRING, b"text" * 100),
        9: (TType.LIST, Sequence(TType.BOOL, [True, False] * 20)),
        10: (TType.SET, Sequence(TType.I64, [-1, 2**62, -(2**62)])),
        11: (TType.LIST, Sequence(TType.STRING, [b"a", b"", b"b" * 200])),
        12: (TType.LIST, Sequence(TType.DOUBLE, [1.0, 2.0])),
        13: (TType.STRUCT, Struct({1: (TType.STRUCT, Struct({2: (TType.BOOL, True)}))})),
        14: (TType.LIST, Sequence(TType.STRUCT, [Struct(), Struct({1: (TType.BOOL, True)})])),
        15: (TType.LIST, Sequence(TType.STRUCT, [])),
        400: (TType.I64, 77),
        30000: (TType.STRING, b""),
    }
)
UUID = b"\x1d" + bytes(range(16)) + b"\x19\x2d" + bytes(32) + b"\x00"


def end_of(data: bytes, at: int = 0) -> int:
    """The end of the structure at ``at``: as a field of another one it gets its end in a slot."""
    wanted = np.zeros((1, FIELD_IDS, 2), np.int16)
    wanted[0, 1] = WireType.STRUCT, 1
    found = np.empty(2, np.int64)
    native.read_fields(b"\x1c" + data[at:], np.zeros(1, np.int64), 0, wanted, 2, found)
    return at + int(found[1]) - 1 if found[1] >= 0 else NOWHERE


class AllSkipped:
    """A record without fields: the library skips all of them."""

    thrift_spec = ()


def end_by_library(data: bytes) -> int:
    try:
        return records.StructReader(data).read(0, AllSkipped())
    except FormatError:
        return NOWHERE


def long_form(field_id: int, kind: int) -> bytes:
    """The header of a field that does not say how far it is from the one before."""
    return bytes([kind, 2 * field_id])


@pytest.mark.parametrize("encoded", [trees.encode(EVERY_TYPE), UUID, b"\x00"])
def test_values_of_every_type_end_where_they_do(encoded: bytes) -> None:
    assert end_by_library(encoded) == len(encoded)
    assert end_of(encoded) == len(encoded)
    assert end_of(encoded + b"\x15\x02" * 9) == len(encoded)
    assert end_of(b"\xff" * 3 + encoded, 3) == 3 + len(encoded)


def test_values_that_are_cut_short_do_not_end() -> None:
    encoded = trees.encode(EVERY_TYPE)
    assert {end_of(encoded[:size]) for size in range(len(encoded))} == {NOWHERE}
    assert {end_of(UUID[:size]) for size in range(len(UUID))} == {NOWHERE}


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(b"\x05\x02\x00\x05\x80", id="id without end, before a number"),
        pytest.param(b"\x15\x02\x08\x80\x80", id="id without end, before bytes"),
        pytest.param(b"\x15\x02\x09\x80\x80", id="id without end, before a list"),
        pytest.param(b"\x05\x82\x80\x80\x00\x02\x00", id="id of four bytes"),
        pytest.param(b"\x14\x80\x80\x80\x00\x00", id="i16 of four bytes"),
        pytest.param(b"\x15\x80\x80\x80\x80\x80\x00\x00", id="i32 of six bytes"),
        pytest.param(b"\x16" + b"\x80" * 10 + b"\x00\x00", id="i64 of eleven bytes"),
        pytest.param(b"\x18\x81\x80\x80\x80\x80\x00a\x00", id="size of six bytes"),
        pytest.param(b"\x18\xff\xff\xff\xff\x0fa\x00", id="size below zero"),
        pytest.param(b"\x18\x05abcd", id="size beyond the end"),
        pytest.param(b"\x19\xf5\xff\xff\xff\xff\x0f\x00", id="count below zero"),
        pytest.param(b"\x19\xf3\x80\x80\x40" + bytes(1 << 20) + b"\x00", id="many elements"),
        pytest.param(b"\x1b\x80\x80\x40\x33" + bytes(1 << 22) + b"\x00", id="many pairs"),
        pytest.param(b"\x19\x20\x00\x00\x00", id="elements of no type"),
        pytest.param(b"\x19\x0e\x00", id="elements of an unknown type"),
        pytest.param(b"\x1b\x01\x08\x01a\x1b\x00", id="keys of no type"),
        pytest.param(b"\x1b\x01\x80\x01a\x1b\x00", id="values of no type"),
        pytest.param(b"\x1e\x00\x00", id="unknown type"),
        pytest.param(b"\x1c" * 100 + bytes(101), id="structures in structures"),
        pytest.param(b"\x19" * 101 + b"\x05\x00", id="lists in lists"),
    ],
)
def test_what_the_library_refuses_does_not_end(encoded: bytes) -> None:
    assert end_by_library(encoded) == NOWHERE
    assert end_of(encoded) == NOWHERE


@pytest.mark.parametrize(
    "value",
    [
        pytest.param((TType.MAP, Map(TType.I32, TType.I32, [(1, 2)])), id="map"),
        pytest.param((TType.MAP, Map(TType.I32, TType.I32, [])), id="empty map"),
        pytest.param(
            (TType.LIST, Sequence(TType.LIST, [Sequence(TType.I32, [1])])), id="list of lists"
        ),
    ],
)
def test_what_stands_in_no_footer_ends_nowhere(value: tuple[int, Value]) -> None:
    encoded = trees.encode(Struct({1: value}))
    assert end_by_library(encoded) == len(encoded)
    assert end_of(encoded) == NOWHERE


@given(mutations(trees.encode(EVERY_TYPE)) | mutations(UUID) | st.binary(max_size=60))
def test_hostile_bytes_end_where_the_library_says(data: bytes) -> None:
    end = end_of(data)
    # Of what no footer has, and of what nests deeper than is allowed here, nothing is said.
    assert end in (NOWHERE, end_by_library(data))


# What is wanted: a number, bytes, a list, a structure, and in another structure a number.
NUMBER, BYTES, ITEMS, WHOLE, INNER, PLACES = 0, 1, 3, 5, 7, 8


@pytest.fixture(scope="module")
def table() -> Table:
    made = np.zeros((2, FIELD_IDS, 2), np.int16)
    made[0, 1] = WireType.I64, NUMBER + 1
    made[0, 2] = WireType.BINARY, BYTES + 1
    made[0, 3] = WireType.LIST, ITEMS + 1
    made[0, 4] = WireType.STRUCT, WHOLE + 1
    made[0, 6] = WireType.STRUCT, -1
    made[1, 2] = WireType.I32, INNER + 1
    return made


def read(
    data: bytes, table: Table, start: int = 0, end: int | None = None
) -> NDArray[np.int64] | None:
    found = np.empty(PLACES, np.int64)
    bounds = np.array([start, len(data) if end is None else end])
    stop = native.read_fields(data, bounds, 1, table, PLACES, found)
    assert stop <= len(data)
    return found if stop >= 0 else None


WANTED = Struct(
    {
        1: (TType.I64, -(2**40)),
        2: (TType.STRING, b"some bytes"),
        3: (TType.LIST, Sequence(TType.I32, [1, -2, 3])),
        4: (TType.STRUCT, Struct({1: (TType.BOOL, True)})),
        5: (TType.STRUCT, Struct({2: (TType.I32, 5)})),
        6: (TType.STRUCT, Struct({1: (TType.STRING, b"x"), 2: (TType.I32, 99)})),
        7: (TType.DOUBLE, 1.0),
        40: (TType.I32, 1),
    }
)


def test_fields_stand_where_they_lie(table: Table) -> None:
    encoded = b"before" + trees.encode(WANTED)
    found = read(encoded + bytes(5), table, start=6)
    assert found is not None
    assert found[NUMBER] == -(2**40)
    assert found[INNER] == 99
    assert encoded[found[BYTES] : found[BYTES + 1]] == b"some bytes"
    assert encoded[found[ITEMS] : found[ITEMS + 1]] == b"\x35\x02\x03\x06"
    assert encoded[found[WHOLE] : found[WHOLE + 1]] == b"\x11\x00"


def test_fields_that_are_not_there_are_absent(table: Table) -> None:
    found = read(b"\x00", table)
    assert found is not None
    assert set(found.tolist()) == {ABSENT}


@pytest.mark.parametrize("number", [0, 1, -1, 2**31, 2**62 - 1, -(2**62)])
def test_numbers_are_those_of_the_bytes(table: Table, number: int) -> None:
    found = read(trees.encode(Struct({1: (TType.I64, number)})), table)
    assert found is not None
    assert found[NUMBER] == number


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(b"\x15\x02\x00", id="i32 for i64"),
        pytest.param(b"\x11\x00", id="truth for i64"),
        pytest.param(b"\x29\x00\x00", id="list for bytes"),
        pytest.param(b"\x65\x02\x00", id="number for a structure"),
        pytest.param(b"\x6c\x26\x02\x00\x00", id="i64 for i32, in a structure"),
        pytest.param(b"\x6c\x25\x80\x80\x80\x80\x10\x00\x00", id="more than 32 bits"),
        pytest.param(b"\x6c\x25\x80\x80\x80\x80\x80\x00\x00\x00", id="i32 of six bytes"),
        pytest.param(b"\x16" + b"\xff" * 9 + b"\x01\x00", id="i64 of 64 bits"),
        pytest.param(b"\x16\x02" + long_form(1, 6) + b"\x04\x00", id="a field twice"),
        pytest.param(b"\x6c\x00" + long_form(6, 12) + b"\x00\x00", id="a structure twice"),
        pytest.param(b"\x05\x00\x02\x00", id="field 0"),
        pytest.param(b"\x05\x01\x02\x00", id="field -1"),
        pytest.param(b"\x05\xfe\xff\x07\x02\x00", id="field id of 17 bits"),
        pytest.param(b"\x16\x02", id="no end"),
        pytest.param(b"\x6c\x00", id="no end behind a structure"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_not_as_wanted_is_refused(table: Table, encoded: bytes) -> None:
    assert read(encoded, table) is None


@pytest.mark.parametrize("start", [-1, -5, -(2**63), 5, 6, 2**62])
def test_offsets_outside_of_the_bytes_are_refused(table: Table, start: int) -> None:
    assert read(b"\x00" * 5, table, start=start) is None


@pytest.mark.parametrize("slots", [0, -1, INNER, BYTES + 1])
def test_slots_outside_of_a_row_are_refused(table: Table, slots: int) -> None:
    found, offsets = np.full(PLACES, 7, np.int64), np.zeros(1, np.int64)
    encoded = trees.encode(WANTED)
    if slots < 1:
        with pytest.raises(ValueError, match="do not fit"):
            native.read_fields(encoded, offsets, 0, table, slots, found)
    else:
        assert native.read_fields(encoded, offsets, 0, table, slots, found[:slots]) < 0
    assert set(found[max(slots, 0) :].tolist()) == {7}


def test_a_structure_ends_inside_of_its_own_bytes(table: Table) -> None:
    encoded = trees.encode(WANTED)
    assert read(encoded, table, end=len(encoded)) is not None
    assert all(read(encoded, table, end=end) is None for end in range(-2, len(encoded)))


@given(mutations(trees.encode(WANTED)) | st.binary(max_size=40))
def test_hostile_bytes_are_refused_or_lie_inside(table: Table, data: bytes) -> None:
    found = read(data, table)
    if found is None:
        return
    assert 0 < end_by_library(data) <= len(data)
    for place in (BYTES, ITEMS, WHOLE):
        if found[place] != ABSENT:
            assert 0 <= found[place] <= found[place + 1] <= len(data)
