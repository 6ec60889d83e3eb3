"""Bounds that bound nothing are not believed."""

from __future__ import annotations

import itertools
import math
import operator
import random
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.parquet.logical_types import JULIAN_EPOCH
from secure_bloom.parquet.value_order import OrderKey, order_of
from secure_bloom.reading.pruning.bounds import Bounds, has_signed_order, keys_of
from testing.surgery import opened
from tests.reading.pruning.ordered_files import GROUP, INT96, TOTAL, Order, write_ordered


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


@pytest.fixture
def order(tmp_path: Path) -> OrderKey | None:
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "x.parquet")
    with opened(tmp_path / "x.parquet") as it:
        return order_of(it.footer.leaves[0])


def test_bounds_in_their_order_are_believed(order: OrderKey | None) -> None:
    low, high = keys_of(order, _double(1.0), _double(2.0))
    assert low <= high
    assert low is not None


@pytest.mark.parametrize(
    ("low", "high"), [(2.0, 1.0), (math.nan, 1.0), (1.0, math.nan), (None, 1.0), (1.0, None)]
)
def test_bounds_that_contradict_themselves_are_not(
    order: OrderKey | None, low: float | None, high: float | None
) -> None:
    stored = [None if bound is None else _double(bound) for bound in (low, high)]
    assert keys_of(order, *stored) == (None, None)


def test_without_an_order_nothing_is_bounded() -> None:
    assert keys_of(None, b"a", b"b") == (None, None)


@pytest.mark.parametrize(
    ("nulls", "values", "are_all"), [(3, 3, True), (2, 3, False), (None, 3, False)]
)
def test_all_are_null_where_the_counts_say_so(
    nulls: int | None, values: int, are_all: bool
) -> None:
    assert Bounds(nulls=nulls, values=values).is_all_null is are_all


@pytest.mark.parametrize(
    ("stored", "is_signed"), [(pa.int32(), True), (pa.uint32(), False), (pa.string(), False)]
)
def test_older_bounds_are_right_for_signed_types_alone(
    tmp_path: Path, stored: pa.DataType, is_signed: bool
) -> None:
    pq.write_table(pa.table({"x": pa.array([], stored)}), tmp_path / "x.parquet")
    with opened(tmp_path / "x.parquet") as it:
        assert has_signed_order(it.footer.leaves[0]) is is_signed


NUMBERS = (-math.inf, -1.0, -0.0, 0.0, 1.0)
#: NaN of both signs: quiet, and signalling or with another payload.
NANS = {
    "<d": (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF),
    "<f": (0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF),
    "<e": (0x7E00, 0xFE00, 0x7C01, 0xFFFF),
}
KINDS = {"<d": pa.float64(), "<f": pa.float32(), "<e": pa.float16()}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _rows_of_floats(form: str) -> list[bytes | None]:
    """Every page that two of the values make, then row groups of one kind of value alone."""
    width = struct.calcsize(form)
    nans = [bits.to_bytes(width, "little") for bits in NANS[form]]
    numbers = [struct.pack(form, number) for number in NUMBERS]
    pages = list(itertools.product([None, *numbers, *nans], repeat=2))
    random.Random(754).shuffle(pages)
    pages += [(nans[1], nans[2])] * 3 + [(nans[0], None)] * 3 + [(None, None)] * 3
    pages += [(numbers[2], numbers[3])] * 3 + [(numbers[3], nans[3])] * 3
    return [value for page in pages for value in page]


def _array(kind: pa.DataType, stored: list[bytes | None]) -> pa.Array:
    """The stored bytes as they are: a cast would change the bits of a NaN."""
    data = b"".join(bytes(kind.bit_width // 8) if it is None else it for it in stored)
    valid = pa.array([it is not None for it in stored]).buffers()[1]
    return pa.Array.from_buffers(kind, len(stored), [valid, pa.py_buffer(data)])


@pytest.mark.parametrize("with_nan_counts", [True, False], ids=["nan_count", "no nan_count"])
@pytest.mark.parametrize("form", KINDS)
def test_total_order_loses_no_row_and_finds_no_other(
    tmp_path: Path, form: str, with_nan_counts: bool
) -> None:
    stored = _rows_of_floats(form)
    path = write_ordered(
        tmp_path / "x.parquet",
        _array(KINDS[form], stored),
        stored,
        TOTAL[form],
        with_nan_counts=with_nan_counts,
    )
    numbers = [struct.unpack(form, it)[0] for it in stored if it is not None]
    for value, (sign, holds) in itertools.product((-0.0, 0.5), COMPARISONS.items()):
        found = sum(holds(number, value) for number in numbers)
        where = f"x {sign} {value}"
        assert sb.read_table(path, where=where).num_rows == found, where
        opposite = sb.read_table(path, where=f"not x {sign} {value}").num_rows
        assert opposite == len(numbers) - found, f"not {where}"
    assert sb.read_table(path, where="x in (1, 7)").num_rows == numbers.count(1.0)
    assert sb.read_table(path, where="x is not null").num_rows == len(numbers)


def _ordered_doubles(folder: Path, *numbers: float | None, **options: Any) -> Path:
    stored = [None if number is None else struct.pack("<d", number) for number in numbers]
    column = _array(pa.float64(), stored)
    order = TOTAL["<d"]
    return write_ordered(folder / "x.parquet", column, stored, order, **options)


def _skipped_by(path: Path, where: str) -> str | None:
    (group,) = sb.explain(path, where=where).files[0].row_groups
    return None if group.skipped_by is None else str(group.skipped_by)


@pytest.mark.parametrize(
    ("where", "skipped"),
    [
        ("x = 4", True),
        ("x < 5", True),
        ("x > 9", True),
        ("x = 5", False),
        ("x >= 9", False),
        ("not x > 9", False),
        ("not x <= 9", True),
    ],
)
def test_bounds_in_total_order_skip_a_row_group(tmp_path: Path, where: str, skipped: bool) -> None:
    path = _ordered_doubles(tmp_path, 5.0, 9.0, 5.0, 9.0, 7.0, None, with_nan_counts=True)
    assert _skipped_by(path, where) == ("statistics" if skipped else None)


@pytest.mark.parametrize("where", ["x != 5", "x not in (5)", "not x < 6", "not x > 5"])
def test_without_nan_count_any_row_may_be_nan(tmp_path: Path, where: str) -> None:
    rows = [*[5.0] * 5, math.nan]
    path = _ordered_doubles(tmp_path, *rows, with_nan_counts=False)
    found = sb.read_table(path, where=where).num_rows
    assert found == (6 if where == "not x > 5" else 1)


@pytest.mark.parametrize(
    ("where", "skipped"),
    [
        ("x = 4", True),
        ("x in (4, 5)", True),
        ("x < 5", True),
        ("x >= -1", True),
        ("x != 4", False),
        ("x not in (4)", False),
        ("not x < 4", False),
        ("x is not null", False),
    ],
)
def test_a_row_group_of_nan_alone_is_skipped_by_its_counts(
    tmp_path: Path, where: str, skipped: bool
) -> None:
    rows = (math.nan, -math.nan, None, math.nan, math.nan, None)
    counted = _ordered_doubles(tmp_path, *rows, with_nan_counts=True)
    assert _skipped_by(counted, where) == ("statistics" if skipped else None)
    uncounted = _ordered_doubles(tmp_path, *rows, with_nan_counts=False)
    assert _skipped_by(uncounted, where) != "statistics"


def test_pages_of_nan_alone_are_left_out(tmp_path: Path) -> None:
    rows = (1.0, 2.0, math.nan, math.nan, 8.0, math.nan)
    path = _ordered_doubles(tmp_path, *rows, with_nan_counts=True)
    for where, ranges in {"x > 1": ((0, 2), (4, 6)), "not x <= 2": ((2, 6),)}.items():
        (group,) = sb.explain(path, where=where).files[0].row_groups
        assert group.ranges == ranges, where


def _int96(micros: int, nanos: int = 0) -> bytes:
    day, rest = divmod(micros * 1000 + nanos, 86_400 * 10**9)
    return struct.pack("<qi", rest, day + JULIAN_EPOCH)


DAY = 86_400 * 10**6


def test_int96_in_its_order_loses_no_row_and_finds_no_other(tmp_path: Path) -> None:
    picked = random.Random(96)
    micros = [picked.choice((-DAY, -1, 0, 1, DAY - 1, DAY, 3 * DAY)) for _ in range(60 * GROUP)]
    nanos = [picked.choice((0, 1, 999)) for _ in micros]
    stored = [_int96(*both) for both in zip(micros, nanos, strict=True)]
    raw = [value * 1000 + rest for value, rest in zip(micros, nanos, strict=True)]
    path = write_ordered(
        tmp_path / "x.parquet",
        pa.array(raw, pa.timestamp("ns")),
        stored,
        INT96,
        with_nan_counts=False,
        use_deprecated_int96_timestamps=True,
    )
    for value, (sign, holds) in itertools.product((-DAY, -1, 0, 2, DAY), COMPARISONS.items()):
        scalar = pa.scalar(value, pa.timestamp("us"))
        found = sb.read_table(path, where=[("x", sign, scalar)]).num_rows
        assert found == sum(holds(it, value) for it in micros), (sign, value)


@pytest.mark.parametrize(
    ("where", "skipped"),
    [
        ("x = 1970-01-01T00:00:00", False),
        ("x = 1970-01-02", True),
        ("x < 1970-01-01", True),
        ("x > 1970-01-01T00:00:00.000009", True),
        ("x != 1970-01-01", False),
        ("x in (1960-01-01, 1980-01-01)", True),
    ],
)
@pytest.mark.parametrize("order", [INT96, replace(INT96, name="TYPE_ORDER")], ids=["", "by type"])
def test_bounds_of_int96_count_in_their_own_order_alone(
    tmp_path: Path, where: str, skipped: bool, order: Order
) -> None:
    stored = [_int96(value, 1) for value in (0, 9, 3, 3, 0, 9)]
    column = pa.array([1, 9001, 3001, 3001, 1, 9001], pa.timestamp("ns"))
    options = {"with_nan_counts": False, "use_deprecated_int96_timestamps": True}
    path = write_ordered(tmp_path / "x.parquet", column, stored, order, **options)
    is_known = order is INT96
    assert _skipped_by(path, where) == ("statistics" if skipped and is_known else None)


def test_a_time_that_is_no_time_of_a_day_bounds_nothing(tmp_path: Path) -> None:
    """Readers add such nanoseconds to the day, so its order is not that of the timestamps."""
    beyond = struct.pack("<qi", 2 * 86_400 * 10**9, JULIAN_EPOCH)
    stored = [_int96(0), beyond] * 3
    column = pa.array([0, 2 * 86_400 * 10**9] * 3, pa.timestamp("ns"))
    options = {"with_nan_counts": False, "use_deprecated_int96_timestamps": True}
    path = write_ordered(tmp_path / "x.parquet", column, stored, INT96, **options)
    assert sb.read_table(path, where="x = 1970-01-03").num_rows == 3
    assert _skipped_by(path, "x = 1990-01-03") is None
