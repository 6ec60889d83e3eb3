"""Physical values as Arrow arrays of what they mean: pyarrow's own reader is the oracle."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.parquet.column_values import read_entries
from secure_bloom.parquet.logical_arrays import logical_array
from testing.surgery import opened

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000)
COLUMNS = {
    "text": pa.array(["anna", "bob", "äö"]),
    "bytes": pa.array([b"\0\1", b""]),
    "fixed": pa.array([b"ab", b"cd"], pa.binary(2)),
    "integer": pa.array([-5, 7], pa.int32()),
    "unsigned": pa.array([5, 2**63 + 1], pa.uint64()),
    "double": pa.array([1.5, -2.0]),
    "half": pa.array([1.5], pa.float16()),
    "date": pa.array([NOW.date()]),
    "timestamp": pa.array([NOW], pa.timestamp("ms")),
    "small decimal": pa.array([Decimal("-1.25")], pa.decimal128(9, 2)),
    "large decimal": pa.array([Decimal("-12345678901234567890.25")], pa.decimal128(30, 2)),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("dictionary", [False, True])
def test_values_mean_what_pyarrow_reads(tmp_path: Path, name: str, dictionary: bool) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(
        pa.table({"x": COLUMNS[name]}),
        path,
        use_dictionary=dictionary,
        store_decimal_as_integer=True,
    )
    with opened(path) as it:
        chunk = it.chunk(0, "x")
        arrays = [logical_array(chunk.leaf, one) for one in read_entries(it.file, chunk).entries]
    found = [value for array in arrays for value in array.to_pylist()]
    wanted = [
        value.encode() if isinstance(value, str) else value for value in COLUMNS[name].to_pylist()
    ]
    assert found == wanted


def test_old_timestamps_lose_their_nanoseconds(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": [NOW]}), path, use_deprecated_int96_timestamps=True)
    with opened(path) as it:
        chunk = it.chunk(0, "x")
        (entries,) = read_entries(it.file, chunk).entries
        assert logical_array(chunk.leaf, entries).to_pylist() == [NOW]
