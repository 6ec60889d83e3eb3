"""Values that rows have, and values between them that no row has, in every type."""

from __future__ import annotations

import datetime
import tracemalloc
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from secure_bloom.advising.lookup_values import LookupValues, lookup_values
from secure_bloom.advising.sample import sample_table
from secure_bloom.encryption.access import Access
from secure_bloom.reading.lookup_trials import LookupTrials

ROWS = 600
NUMBERS = np.random.default_rng(3).integers(0, 10**6, ROWS) * 7
DAY = datetime.date(1990, 1, 1)


def found_in(
    folder: Path, values: pa.Array, count: int = 12, row_group_size: int = 150
) -> LookupValues:
    pq.write_table(pa.table({"c": values}), folder / "a.parquet", row_group_size=row_group_size)
    resolver = Access().resolver()
    sample = sample_table([str(folder)], resolver)
    return lookup_values(LookupTrials(sample.table, resolver), sample, ("c",), count)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.binary(70_000)])
def test_long_values_are_not_copied_by_the_dozen(tmp_path: Path, kind: pa.DataType) -> None:
    short = [] if kind.id == pa.binary(1).id else [f"s{n}" for n in range(20)]
    found = found_in(tmp_path, pa.array([*short, *(c * 70_000 for c in "abcde")]).cast(kind), 64)
    assert {len(it.value.as_py()) for it in found.present} == ({2, 3} if short else set())
    assert found.distinct.row_group == len(short)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(NUMBERS, pa.int64()),
        pa.array(NUMBERS, pa.int32()),
        pa.array(NUMBERS, pa.uint32()),
        pa.array(NUMBERS / 8, pa.float64()),
        pa.array(NUMBERS / 8, pa.float32()),
        pa.array([f"user{n}@example.com" for n in NUMBERS]),
        pa.array([f"user{n}" for n in NUMBERS], pa.large_string()),
        pa.array([f"user{n}" for n in NUMBERS]).dictionary_encode(),
        pa.array([f"{n:08d}".encode() for n in NUMBERS], pa.binary()),
        pa.array([f"{n:08d}".encode() for n in NUMBERS], pa.binary(8)),
        pa.array([Decimal(int(n)).scaleb(-2) for n in NUMBERS], pa.decimal128(38, 2)),
        pa.array([Decimal(int(n)).scaleb(-2) for n in NUMBERS], pa.decimal128(9, 2)),
        pa.array([DAY + datetime.timedelta(days=int(n) % 9000 * 3) for n in NUMBERS]),
        pa.array(NUMBERS, pa.timestamp("us")),
        pa.array(NUMBERS, pa.timestamp("ms", tz="UTC")),
        pa.array(NUMBERS.astype(np.int32), pa.int32()).cast(pa.time32("ms")),
        pa.array(NUMBERS).cast(pa.time64("us")),
        pa.array([None if n % 3 else int(n) for n in NUMBERS], pa.int64()),
    ],
    ids=lambda array: str(array.type),
)
def test_present_values_are_rows_and_absent_ones_lie_between_them(
    tmp_path: Path, values: pa.Array
) -> None:
    found = found_in(tmp_path, values)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    ascending = values.drop_null().unique().sort()
    assert len(found.present) == 12
    assert len(found.absent) >= 6
    for lookup in found.present:
        assert pc.index(ascending, lookup.value.cast(values.type)).as_py() >= 0
    for lookup in found.absent:
        value = lookup.value.cast(values.type)
        low, high = ascending[0].as_py(), ascending[-1].as_py()
        assert low < value.as_py() < high
    # A row group does not have the value that was chosen beside its own.
    absent = [lookup.value.cast(values.type).as_py() for lookup in found.absent]
    assert len(set(absent) - set(ascending.to_pylist())) >= 6


def test_there_is_no_absent_value_among_neighbours(tmp_path: Path) -> None:
    found = found_in(tmp_path, pa.array(np.arange(ROWS)))
    assert found.absent == ()
    assert len(found.present) == 12


def test_a_column_of_nulls_has_nothing_to_look_up(tmp_path: Path) -> None:
    found = found_in(tmp_path, pa.nulls(ROWS, pa.int64()))
    assert found.present == found.absent == ()
    assert found.distinct.table == 0


def test_distinct_values_are_counted(tmp_path: Path) -> None:
    few = found_in(tmp_path, pa.array([f"c{n % 5}" for n in range(ROWS)]))
    assert (few.distinct.row_group, few.distinct.table) == (5, 5)
    many = found_in(tmp_path, pa.array(np.arange(ROWS)))
    assert (many.distinct.row_group, many.distinct.table) == (150, ROWS)


def test_values_do_not_show_in_a_repr(tmp_path: Path) -> None:
    found = found_in(tmp_path, pa.array([f"secret{n}" for n in NUMBERS]))
    assert "secret" not in repr(found)


def test_half_floats_are_looked_up_too(tmp_path: Path) -> None:
    values = pa.array((NUMBERS % 1000 / 8).astype(np.float16))
    found = found_in(tmp_path, values)
    known = set(values.cast(pa.float32()).to_pylist())
    assert len(found.present) == 12
    assert {lookup.value.as_py() for lookup in found.present} <= known


def test_texts_that_are_not_utf8_are_left_out(tmp_path: Path) -> None:
    made = [b"user%d" % n + (b"\xff" if n % 2 else b"") for n in range(50)]
    values = pa.Array.from_buffers(pa.string(), 50, pa.array(made, pa.binary()).buffers())
    found = found_in(tmp_path, values, 40)
    assert found.present
    texts = {it.value.as_py() for it in (*found.present, *found.absent)}
    assert {text.encode() for text in texts} & set(made) == {
        it.value.as_py().encode() for it in found.present
    }


def test_texts_of_a_dictionary_are_not_repeated_for_their_rows(tmp_path: Path) -> None:
    """A file of 4 KB may have rows of gigabytes."""
    texts = pa.array(["x" * 60_000, "y", "z" * 1_000_000])
    rows = pa.array([*(n % 2 for n in range(5_000)), 2], pa.int32())
    column = pa.DictionaryArray.from_arrays(rows, texts)
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        found = found_in(tmp_path, column, row_group_size=len(rows))
    finally:
        pa.set_memory_pool(pa.system_memory_pool())
    assert {it.value.as_py() for it in found.present} == {"x" * 60_000, "y"}
    assert found.distinct.row_group == 2
    assert pool.max_memory() < 400_000_000
    # A pool stays until the last array is gone.
    del found, column, rows, texts


def test_rows_without_a_dictionary_get_no_numbers(tmp_path: Path) -> None:
    """A file of a few KB may have millions of equal values: a byte each, not dozens."""
    count = 1_000_000
    column = pa.ListArray.from_arrays([0, count], pa.array(np.zeros(count, np.int8)))
    tracemalloc.start()
    found = found_in(tmp_path, column)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert {it.value.as_py() for it in found.present} == {0}
    assert found.distinct.row_group == 1
    assert peak < 4 * count
