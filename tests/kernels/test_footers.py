"""Footers passed over once: numbers and places, of a few row groups and of many."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray
from thrift.protocol.TProtocol import TType

from secure_bloom.kernels import fields, footers
from secure_bloom.kernels.fields import ABSENT, NOWHERE
from secure_bloom.parquet.structures import trees
from secure_bloom.parquet.structures.trees import Sequence, Struct, Value

CHUNK = Struct({2: (TType.I64, 4), 3: (TType.STRUCT, Struct({5: (TType.I64, 1000)}))})

Fields = dict[int, tuple[int, Value]]
FooterScan = tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def row_group(columns: int = 2, changed: Fields | None = None) -> Struct:
    usual: Fields = {
        1: (TType.LIST, Sequence(TType.STRUCT, [CHUNK] * columns)),
        2: (TType.I64, 12345),
        3: (TType.I64, 1000),
        5: (TType.I64, -(2**63)),
        7: (TType.I16, 3),
    }
    return Struct(usual | (changed or {}))


def footer(groups: list[Value]) -> bytes:
    """What stands behind a schema."""
    tree = Struct({2: (TType.BOOL, True), 4: (TType.LIST, Sequence(TType.STRUCT, groups))})
    return trees.encode(tree)[1:]


def outline(data: bytes, columns: int = 2) -> FooterScan:
    return footers.outline(np.frombuffer(data, np.uint8), 0, columns)


@pytest.mark.parametrize("count", [0, 1, 14, 15, 300])
@pytest.mark.parametrize("columns", [0, 1, 2, 20])
def test_row_groups_are_numbers_and_places(count: int, columns: int) -> None:
    data = footer([row_group(columns)] * count)
    end, numbers, places, parts = outline(data + b"\xff", columns)
    assert end == len(data)
    assert numbers.shape == (count, footers.NUMBERS)
    assert places.shape == (count, columns)
    assert set(numbers[:, footers.NUM_ROWS].tolist()) <= {1000}
    assert set(numbers[:, footers.TOTAL_BYTE_SIZE].tolist()) <= {12345}
    assert set(numbers[:, footers.ORDINAL].tolist()) <= {3}
    chunk = trees.encode(CHUNK)
    assert all(data[at : at + len(chunk)] == chunk for at in places.reshape(-1).tolist())
    assert len(set(places.reshape(-1).tolist())) == count * columns
    assert parts[footers.ROW_GROUPS].tolist()[1:] == [1, len(data) - 1]
    assert set(parts[5:, 0].tolist()) == {ABSENT}


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
    assert outline(footer(groups))[0] == NOWHERE


def test_an_ordinal_of_another_type_is_absent() -> None:
    end, numbers, _, _ = outline(footer([row_group(changed={7: (TType.I32, 7)})]))
    assert end > 0
    assert numbers[0, footers.ORDINAL] == ABSENT


def test_an_ordinal_of_more_than_16_bits_ends_nowhere() -> None:
    data = footer([row_group()])
    larger = data.replace(b"\x24\x06\x00", b"\x24\x80\x80\x04\x00")
    assert larger != data
    assert outline(larger)[0] == NOWHERE


def test_a_footer_that_is_cut_short_ends_nowhere() -> None:
    data = footer([row_group()] * 16)
    assert outline(data)[0] == len(data)
    assert {outline(data[:size])[0] for size in range(len(data))} == {NOWHERE}


@pytest.mark.parametrize("element", [0, 1, 3, 8, 13, 14, 15])
@pytest.mark.parametrize("count", [0, 1])
def test_lists_of_anything_else_end_nowhere(element: int, count: int) -> None:
    data = b"\x29" + bytes([count << 4 | element]) + bytes(30)
    assert outline(data)[0] == NOWHERE


@pytest.mark.parametrize("kind", range(16))
def test_row_groups_of_another_type_are_none(kind: int) -> None:
    data = bytearray(footer([row_group()]))
    data[0] = 0x20 | kind
    end, _, places, parts = outline(bytes(data))
    is_right = kind == fields.LIST
    assert (end > 0 and parts[footers.ROW_GROUPS, 0] >= 0 and places.size > 0) == is_right


@pytest.mark.parametrize(
    ("count", "columns"),
    [(1 << 18, 1000), (1 << 18, 1), (1 << 18, 0), ((1 << 18) + 1, 0), (1 << 17, 3), (1 << 60, 1)],
)
def test_numbers_do_not_take_much_more_than_the_footer(count: int, columns: int) -> None:
    head = bytearray()
    left = count
    while left >= 0x80:
        head.append(left & 0x7F | 0x80)
        left >>= 7
    # Row groups that all end at once.
    data = b"\x29\xfc" + bytes([*head, left]) + bytes(1 << 20)
    outline(footer([row_group()]))
    tracemalloc.start()
    try:
        end, numbers, places, _ = outline(data, columns)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert end == NOWHERE
    assert numbers.nbytes + places.nbytes + peak <= 10 * len(data)
