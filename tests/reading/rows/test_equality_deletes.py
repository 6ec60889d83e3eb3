"""Rows are deleted if they have the values of a deleted row in all key columns."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from secure_bloom.reading.rows.equality_deletes import equal_rows

KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [1, 2, 2**62, -1, None]),
    "texts": (pa.string(), ["", "a", "b", "ab", None]),
    "bytes": (pa.binary(), [b"", b"\0", b"a", None]),
    "booleans": (pa.bool_(), [True, False, None]),
}


def columns(rows: list[tuple[Any, ...]], kinds: tuple[str, ...]) -> list[pa.ChunkedArray]:
    return [
        pa.chunked_array([pa.array([row[i] for row in rows], KINDS[kind][0])])
        for i, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize(
    "kinds",
    [("integers",), ("texts",), ("integers", "texts"), ("booleans", "bytes", "texts", "integers")],
)
def test_rows_are_compared_as_a_whole(kinds: tuple[str, ...]) -> None:
    chosen = random.Random(" ".join(kinds))

    def some(count: int) -> list[tuple[Any, ...]]:
        return [tuple(chosen.choice(KINDS[kind][1]) for kind in kinds) for _ in range(count)]

    for count in (0, 1, 5, 60):
        rows, deleted = some(200), some(count)
        found = equal_rows(columns(rows, kinds), columns(deleted, kinds))
        assert found.tolist() == [row in deleted for row in rows]


def test_floats_are_equal_by_their_bits() -> None:
    def doubles(*values: float | None) -> list[pa.ChunkedArray]:
        return [pa.chunked_array([pa.array(values, pa.float64())])]

    nan = float("nan")
    rows = doubles(0.0, -0.0, nan, None, 1.5)
    assert equal_rows(rows, doubles(0.0)).tolist() == [True, False, False, False, False]
    assert equal_rows(rows, doubles(-0.0, nan)).tolist() == [False, True, True, False, False]
    assert equal_rows(rows, doubles(None)).tolist() == [False, False, False, True, False]
