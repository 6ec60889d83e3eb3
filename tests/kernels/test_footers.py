"""Footers scanned once: numbers and offsets, of a few row groups and of many."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from thrift.protocol.TProtocol import TType

from secure_bloom.parquet.footer.scan import NUMBERS, RowGroupNumbers, _Head
from secure_bloom.parquet.structures.wire_fields import WireType
from testing.thrift import trees
from testing.thrift.metadata import FileMetaData, RowGroup
from testing.thrift.trees import Sequence, Struct, Value
from tests.kernels import ABSENT, NOWHERE, native, needs_native

pytestmark = needs_native

CHUNK = Struct({2: (TType.I64, 4), 3: (TType.STRUCT, Struct({5: (TType.I64, 1000)}))})

Fields = dict[int, tuple[int, Value]]
HEAD = len(_Head._fields)
ROWS, SIZE, ORDINAL = (
    RowGroupNumbers._fields.index(it) for it in ("num_rows", "total_byte_size", "ordinal")
)
SCHEMA = Sequence(TType.STRUCT, [Struct({4: (TType.STRING, b"root")})])


def row_group(columns: int = 2, changed: Fields | None = None) -> Struct:
    usual: Fields = {
        1: (TType.LIST, Sequence(TType.STRUCT, [CHUNK] * columns)),
        2: (TType.I64, 12345),
        3: (TType.I64, 1000),
        5: (TType.I64, 4),
        7: (TType.I16, 3),
    }
    return Struct(usual | (changed or {}))


def footer(groups: list[Value]) -> bytes:
    fields: Fields = {2: (TType.LIST, SCHEMA), 4: (TType.LIST, Sequence(TType.STRUCT, groups))}
    return trees.encode(Struct(fields))


#: A footer up to its row groups.
BEFORE = footer([])[:-3]


def scan(data: bytes, room: int = 1 << 14) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """The end of a footer, the numbers of its row groups, and the offsets of their chunks."""
    found = np.full(room + 1, 77, np.int64)
    end = native.scan(data, found[:room])
    assert found[room] == 77
    assert end <= len(data)
    if end < 0:
        return end, np.empty((0, NUMBERS), np.int64), np.empty((0, 0), np.int64)
    head = _Head(*found[:HEAD].tolist())
    assert head.length == end
    split = HEAD + head.groups * NUMBERS
    numbers = found[HEAD:split].reshape(head.groups, NUMBERS)
    offsets = found[split : split + head.groups * head.columns]
    return end, numbers, offsets.reshape(head.groups, head.columns)


@pytest.mark.parametrize("count", [0, 1, 14, 15, 300])
@pytest.mark.parametrize("columns", [0, 1, 2, 20])
def test_row_groups_are_numbers_and_offsets(count: int, columns: int) -> None:
    data = footer([row_group(columns)] * count)
    end, numbers, places = scan(data + b"\xff")
    assert end == len(data)
    assert len(numbers) == count
    assert places.size == count * columns
    assert set(numbers[:, ROWS].tolist()) <= {1000}
    assert set(numbers[:, SIZE].tolist()) <= {12345}
    assert set(numbers[:, ORDINAL].tolist()) <= {3}
    chunk = trees.encode(CHUNK)
    assert all(data[at : at + len(chunk)] == chunk for at in places.reshape(-1).tolist())
    assert len(set(places.reshape(-1).tolist())) == count * columns


@pytest.mark.parametrize("groups", [0, 3])
def test_numbers_that_have_no_room_are_not_entered(groups: int) -> None:
    data = footer([row_group()] * groups)
    needed = HEAD + groups * (NUMBERS + 2)
    assert scan(data, needed)[0] == len(data)
    assert {scan(data, room)[0] for room in range(needed)} == {NOWHERE}


def test_the_ids_are_those_of_the_format() -> None:
    """The extension names the fields in its own words: each must lead to the one that is meant."""
    ids = {FileMetaData: (1, 2, 3, 4), RowGroup: (1, 2, 3, 5, 6, 7)}
    names = {view: [n for n, f in view.FIELDS.items() if f.id in of] for view, of in ids.items()}
    assert names[FileMetaData] == ["version", "schema", "num_rows", "row_groups"]
    assert sorted(names[RowGroup]) == sorted(RowGroupNumbers._fields)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(row_group(1), id="fewer chunks"),
        pytest.param(row_group(3), id="more chunks"),
        pytest.param(row_group(changed={1: (TType.I64, 7)}), id="a number for the chunks"),
        pytest.param(
            row_group(changed={1: (TType.SET, Sequence(TType.STRUCT, [CHUNK] * 2))}), id="a set"
        ),
        pytest.param(
            row_group(changed={1: (TType.LIST, Sequence(TType.I64, [1, 2]))}), id="numbers"
        ),
        pytest.param(row_group(changed={2: (TType.I32, 7)}), id="size of another type"),
        pytest.param(row_group(changed={3: (TType.I32, 7)}), id="rows of another type"),
        pytest.param(row_group(changed={3: (TType.I64, -1)}), id="rows below zero"),
        pytest.param(row_group(changed={3: (TType.I64, 2**63 - 1)}), id="rows of 64 bits"),
        pytest.param(Struct({}), id="nothing"),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_unusual_row_group_ends_nowhere(changed: Struct, place: int) -> None:
    groups: list[Value] = [row_group()] * 3
    groups[place] = changed
    assert scan(footer(groups))[0] == NOWHERE


def test_an_ordinal_of_another_type_is_absent() -> None:
    end, numbers, _ = scan(footer([row_group(changed={7: (TType.I32, 7)})]))
    assert end > 0
    assert numbers[0, ORDINAL] == ABSENT


def test_an_ordinal_of_more_than_16_bits_ends_nowhere() -> None:
    data = footer([row_group()])
    larger = data.replace(b"\x14\x06\x00", b"\x14\x80\x80\x04\x00")
    larger = larger if larger != data else data.replace(b"\x24\x06\x00", b"\x24\x80\x80\x04\x00")
    assert larger != data
    assert scan(larger)[0] == NOWHERE


def test_a_footer_that_is_cut_short_ends_nowhere() -> None:
    data = footer([row_group()] * 16)
    assert scan(data)[0] == len(data)
    assert {scan(data[:size])[0] for size in range(len(data))} == {NOWHERE}


@pytest.mark.parametrize("element", [0, 1, 3, 8, 13, 14, 15])
@pytest.mark.parametrize("count", [0, 1])
def test_lists_of_anything_else_end_nowhere(element: int, count: int) -> None:
    data = BEFORE + b"\x29" + bytes([count << 4 | element]) + bytes(30)
    assert scan(data)[0] == NOWHERE


@pytest.mark.parametrize("kind", range(16))
def test_row_groups_of_another_type_are_none(kind: int) -> None:
    data = bytearray(footer([row_group()]))
    assert data[len(BEFORE)] == 0x29
    data[len(BEFORE)] = 0x20 | kind
    assert (scan(bytes(data))[0] > 0) == (kind == WireType.LIST)


@pytest.mark.parametrize("schema", [b"\x29\x0c", b"\x29\x15\x00", b"\x2a\x1c\x00", b"\x28\x00"])
def test_a_schema_without_elements_ends_nowhere(schema: bytes) -> None:
    assert scan(schema + b"\x29\x0c\x00")[0] == NOWHERE
    assert scan(b"\x29\x1c\x00" + b"\x29\x0c\x00")[0] > 0


@pytest.mark.parametrize("count", [1 << 18, (1 << 18) + 1, 1 << 60])
def test_row_groups_that_are_only_counted_end_nowhere(count: int) -> None:
    head = bytearray()
    left = count
    while left >= 0x80:
        head.append(left & 0x7F | 0x80)
        left >>= 7
    # Row groups that all end at once.
    data = BEFORE + b"\x29\xfc" + bytes([*head, left]) + bytes(1 << 20)
    assert scan(data, len(data) // 8)[0] == NOWHERE
