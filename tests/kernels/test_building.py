"""Filters that the C extension builds have the bits of those that numpy builds."""

from __future__ import annotations

import decimal
import itertools
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.bloom.build import build_filter
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.calling.options import BloomFilterOptions
from secure_bloom.kernels import extension
from secure_bloom.parquet.column_values import read_encoded
from secure_bloom.parquet.value_arrays import EncodedValues
from testing.surgery import opened

native = extension.native
pytestmark = pytest.mark.skipif(native is None, reason="needs the C extension")
NUMBERS = np.random.default_rng(5).integers(0, 2**62, 3000)
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
NANS = np.array([0x7FF0000000000001, 0xFFF8000000000000, 0x7FF8000000000001], np.uint64)
COLUMNS = {
    "int32": pa.array(NUMBERS.astype(np.int32)),
    "int64": pa.array(NUMBERS),
    "nulls": pa.array([None if n % 3 else int(n) for n in NUMBERS], pa.int64()),
    "float16": pa.array(HALVES),
    "float16 without zeros": pa.array(HALVES[(HALVES != 0) & ~np.isnan(HALVES)]),
    "float": pa.array(np.array([1.5, np.nan, -0.0, np.inf, 1e-45], np.float32)),
    "float without zeros": pa.array(np.arange(1, 3000, dtype=np.float32)),
    "double": pa.array([*NUMBERS[:600] / 7, 0.0]),
    "double NaN": pa.array(np.concatenate([NANS.view(np.float64), [1.0]])),
    "text": pa.array([str(n)[: n % 20] for n in NUMBERS]),
    "fixed": pa.array([b"%03d" % (n % 1000) for n in NUMBERS], pa.binary(3)),
    "uuid": pa.array([struct.pack("<QQ", n, i) for i, n in enumerate(NUMBERS)], pa.binary(16)),
    "wide": pa.array([struct.pack("<Q", n) * 9 for n in NUMBERS], pa.binary(72)),
    "nothing": pa.array([None, None], pa.int64()),
}


def bits(path: Path, fpp: float = 0.01) -> bytes:
    """The filter of the column of a file."""
    with opened(path) as it:
        chunk = it.chunk(0, it.footer.leaves[0].name)
        options = BloomFilterOptions(fpp=fpp)
        return build_filter(chunk.leaf, read_encoded(it.file, chunk), options).filter.to_bytes()


def by_numpy(path: Path) -> bytes:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(extension, "native", None)
        return bits(path)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_of_value(tmp_path: Path, name: str, version: str) -> None:
    path = tmp_path / "f.parquet"
    table = pa.table({"x": COLUMNS[name]})
    pq.write_table(table, path, use_dictionary=False, data_page_version=version)
    with opened(path) as it:
        chunk = it.chunk(0, "x")
        found = list(read_encoded(it.file, chunk).entries)
    assert all(isinstance(values, EncodedValues) for values in found)
    assert bits(path) == by_numpy(path)


@given(
    st.integers(0, 9).map(lambda exponent: 1 << exponent),
    st.lists(st.integers(0, 2**64 - 1), max_size=300),
    st.sampled_from([1e-9, 0.001, 0.01, 0.05, 0.5, 1.0]),
)
def test_folding_and_its_probability(z: int, hashes: list[int], fpp: float) -> None:
    filters = []
    for way in (native, None):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(extension, "native", way)
            whole = SplitBlockBloomFilter(z)
            whole.insert_hashes(np.array(hashes, np.uint64))
            folded = whole.folded_to(fpp)
            filters.append((folded.to_bytes(), folded.fpp(), whole.to_bytes(), whole.fpp()))
            assert (folded is whole) == (len(folded.to_bytes()) == len(whole.to_bytes()))
    assert filters[0] == filters[1]


BYTE_ARRAYS = b"\x01\x00\x00\x00a\x03\x00\x00\x00bcd"


def test_values_that_leave_the_page_are_damage() -> None:
    for size, count in itertools.product(range(len(BYTE_ARRAYS)), (2, 3)):
        content = BYTE_ARRAYS[:size]
        assert native.byte_array_offsets(content, count, np.empty(0, np.int64)) == -1
        assert native.insert_plain(bytearray(32), content, count, 0) == -1
        assert native.insert_plain(bytearray(32), content, size // 4 + 1, 4) == -1


def test_a_request_that_does_not_fit_is_refused() -> None:
    for arguments in (
        (bytearray(31), b"", 0, 0),
        (bytearray(32), b"", -1, 0),
        (bytearray(32), b"", 0, -1),
    ):
        with pytest.raises(ValueError, match="insert_plain"):
            native.insert_plain(*arguments)
    for size in (0, 31, 96):
        with pytest.raises(ValueError, match="fold"):
            native.fold(bytearray(size), 0)


def test_a_decimal_column(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    numbers = [decimal.Decimal(n) for n in (0, 1, -1, 127, 128, -128, -129, 10**20)]
    pq.write_table(pa.table({"x": pa.array(numbers, pa.decimal128(38, 0))}), path)
    assert bits(path) == by_numpy(path)
