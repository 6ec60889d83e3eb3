"""A filter of a chunk: never a false negative, within the fpp, no larger than it must be."""

from __future__ import annotations

import datetime as dt
import itertools
import struct
import tempfile
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.bloom.build import BuiltFilter, build_filter
from secure_bloom.bloom.entries import insert_entries
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.calling.options import BloomFilterOptions
from secure_bloom.parquet.column_values import ChunkEntries, read_entries
from secure_bloom.parquet.literals import physical_values
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import FieldRepetitionType, Type
from secure_bloom.parquet.value_arrays import as_entries
from testing.quick_cases import examples
from testing.surgery import opened
from testing.tables import write
from testing.thrift.metadata import LogicalType, SchemaElement

INSTANTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1))
TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float16(): st.floats(width=16).map(np.float16),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): st.text(max_size=20),
    pa.large_string(): st.text(max_size=20),
    pa.binary(): st.binary(max_size=20),
    pa.binary(7): st.binary(min_size=7, max_size=7),
    pa.decimal128(9, 2): st.decimals(-1000, 1000, places=2),
    pa.decimal128(38, 4): st.decimals(-(10**20), 10**20, places=4),
    pa.date32(): st.dates(),
    pa.time64("us"): st.times(),
    pa.timestamp("us"): INSTANTS,
    pa.timestamp("ns", "UTC"): INSTANTS.map(lambda t: t.replace(tzinfo=dt.UTC)),
    pa.uuid(): st.uuids(),
}


def _array(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if kind == pa.uuid():
        return pa.array([v and v.bytes for v in values], pa.binary(16)).cast(kind)
    return pa.array(values, kind)


def _build(array: pa.Array, options: BloomFilterOptions, **write_options: Any) -> tuple:
    with tempfile.TemporaryDirectory() as folder:
        table = pa.table({"x": array})
        path = write(Path(folder) / "x.parquet", table, row_group_size=10**6, **write_options)
        with opened(path) as it:
            chunk = it.chunk(0, "x")
            return chunk.leaf, build_filter(chunk.leaf, read_entries(it.file, chunk), options)


def _numbers(count: int) -> list[int]:
    return [i * 7919 for i in range(count)]


@examples(20)
@given(data=st.data(), kind=st.sampled_from(list(TYPES)), dictionary=st.booleans())
def test_every_value_is_found(data: st.DataObject, kind: pa.DataType, dictionary: bool) -> None:
    values = data.draw(st.lists(st.none() | TYPES[kind], min_size=1, max_size=60))
    leaf, built = _build(_array(kind, values), BloomFilterOptions(), use_dictionary=dictionary)
    for value in values:
        encodings = physical_values(leaf, value)
        if encodings is not None:
            assert all(built.filter.check(encoding) for encoding in encodings)


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize(
    ("kind", "forms"),
    [
        # DuckDB asks for the bytes of a FLOAT.
        (pa.float16(), ["<e", "<f"]),
        (pa.float32(), ["<f"]),
        (pa.float64(), ["<d"]),
    ],
)
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_either_zero_and_any_nan_stand_for_both_signs(
    kind: pa.DataType, forms: list[str], zero: float, dictionary: bool
) -> None:
    numpy_type = kind.to_pandas_dtype()
    nan = float("nan")
    for values, wanted in ([zero, 1.5], [0.0, -0.0, 1.5]), ([nan, 1.5], [nan, -nan, 1.5]):
        array = pa.array([numpy_type(v) for v in values], kind)
        _, built = _build(array, BloomFilterOptions(), use_dictionary=dictionary)
        same = SplitBlockBloomFilter(built.filter.block_count)
        for form, value in itertools.product(forms, wanted):
            same.insert(struct.pack(form, value))
        assert built.filter == same


@pytest.mark.parametrize("count", [0, 1, 30, 1000, 20_000])
@pytest.mark.parametrize("fpp", [0.5, 0.1, 0.01, 0.0001])
def test_the_filter_is_the_smallest_power_of_two_within_the_fpp(count: int, fpp: float) -> None:
    options = BloomFilterOptions(fpp=fpp)
    _, built = _build(pa.array(_numbers(count), pa.int64()), options)
    blocks = built.filter.block_count
    assert blocks & (blocks - 1) == 0
    assert built.filter.fpp() <= fpp
    assert blocks == 1 or built.filter.folded().fpp() > fpp


def test_repeated_values_cost_no_room() -> None:
    once, often = _numbers(50), _numbers(50) * 400
    _, small = _build(pa.array(once, pa.int64()), BloomFilterOptions())
    _, same = _build(pa.array(often, pa.int64()), BloomFilterOptions(), use_dictionary=False)
    assert same.filter == small.filter
    assert (small.source, small.values) == ("dictionary", 50)
    assert (same.source, same.values) == ("pages", 20_000)


@pytest.mark.parametrize("max_bytes", [32, 100, 1024])
def test_max_bytes_wins_over_the_fpp(max_bytes: int) -> None:
    options = BloomFilterOptions(fpp=0.001, max_bytes=max_bytes)
    _, built = _build(pa.array(_numbers(5000), pa.int64()), options)
    assert max_bytes / 2 < built.filter.byte_count <= max_bytes
    assert built.filter.fpp() > 0.001
    assert all(built.filter.check(struct.pack("<q", n)) for n in _numbers(5000))


def test_absent_values_pass_no_more_often_than_was_asked() -> None:
    _, built = _build(pa.array(_numbers(20_000), pa.int64()), BloomFilterOptions(fpp=0.02))
    passed = sum(built.filter.check(struct.pack("<q", -n - 1)) for n in range(10_000))
    # 0.02 with six standard deviations.
    assert passed <= 10_000 * (0.02 + 6 * (0.02 * 0.98 / 10_000) ** 0.5)


def _leaf(type_: Type, **fields: Any) -> Leaf:
    element = SchemaElement.of(name="x", type=type_, **fields)
    return Leaf(
        path=("x",), element=element, type=type_, repetitions=(FieldRepetitionType.OPTIONAL,)
    )


@pytest.mark.parametrize(
    ("leaf", "array", "encoded"),
    [
        (_leaf(Type.INT32), pa.array([1, 2, 3, 4], pa.int32()), lambda v: struct.pack("<i", v)),
        (_leaf(Type.DOUBLE), pa.array([1.0, 2.0, 3.0, 4.0]), lambda v: struct.pack("<d", v)),
        (_leaf(Type.BYTE_ARRAY), pa.array([b"a", b"bc", b"", b"d"]), bytes),
        (_leaf(Type.BYTE_ARRAY), pa.array([b"a", b"bc", b"", b"d"], pa.large_binary()), bytes),
        (
            _leaf(Type.FIXED_LEN_BYTE_ARRAY, type_length=2),
            pa.array([b"ab", b"cd", b"ef", b"gh"], pa.binary(2)),
            bytes,
        ),
    ],
    ids=["int32", "double", "binary", "large_binary", "fixed"],
)
def test_of_a_slice_only_its_own_values_are_inserted(leaf: Leaf, array, encoded) -> None:
    for part in (array, array.slice(1, 2), array.slice(3), array.slice(0, 0)):
        got, wanted = SplitBlockBloomFilter(4), SplitBlockBloomFilter(4)
        insert_entries(got, leaf, as_entries(leaf, part))
        for value in part.to_pylist():
            wanted.insert(encoded(value))
        assert got == wanted


@pytest.mark.parametrize("type_length", [1, 3, 4])
def test_a_float16_of_another_width_is_hashed_as_the_bytes_it_is(type_length: int) -> None:
    member = LogicalType.of(FLOAT16=SchemaElement())
    leaf = _leaf(Type.FIXED_LEN_BYTE_ARRAY, type_length=type_length, logicalType=member)
    values = [bytes([i]) * type_length for i in range(5)]
    built: BuiltFilter = build_filter(
        leaf,
        ChunkEntries(
            source="pages",
            upper_bound=5,
            entries=iter([as_entries(leaf, pa.array(values, pa.binary(type_length)))]),
        ),
        BloomFilterOptions(),
    )
    assert all(built.filter.check(value) for value in values)
    assert physical_values(leaf, values[0]) == (values[0],)


def test_values_of_python_and_of_the_file_meet() -> None:
    """One of each, spelled out: what is inserted is what a person asks for."""
    cases: list[tuple[pa.Array, Any]] = [
        (pa.array([Decimal("12.50")], pa.decimal128(9, 2)), "12.5"),
        (pa.array([dt.date(2024, 3, 1)]), "2024-03-01"),
        (pa.array([uuid.UUID(int=7).bytes], pa.binary(16)).cast(pa.uuid()), str(uuid.UUID(int=7))),
    ]
    for array, text in cases:
        leaf, built = _build(array, BloomFilterOptions())
        (encoding,) = physical_values(leaf, text) or ()
        assert built.filter.check(encoding)
