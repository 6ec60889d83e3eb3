"""The false positives that a filter really lets through, of every type, at every request.

A million values that are absent from a column are asked of its filter.  They are read from a file
of their own, in the form in which the values of that type are stored.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import secure_bloom as sb
from benchmarks.harness.data import add, stored_filter
from benchmarks.harness.results import Measure, Point, Result
from secure_bloom.bloom.entries import count_missed
from secure_bloom.bloom.sizing import expected_fpp
from secure_bloom.parquet.column_values import read_entries
from testing.surgery import opened

REQUESTS = (0.1, 0.01, 0.001, 0.0001)
ABSENT = 1_000_000
#: Filters are filled to just within the request, so that any false positive too many shows.
BLOCKS, FILLED = 4096, 0.99
#: Of so many standard deviations of a binomial count, chance takes one in 30,000.
DEVIATIONS = 4


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """The highest rate of any type, for each request."""
    absent, blocks = (ABSENT // 10, BLOCKS // 16) if quick else (ABSENT, BLOCKS)
    for request in REQUESTS:
        present = values_within(request, blocks)
        numbers = np.random.default_rng(0).permutation(present + absent)
        filtered, others = folder / "present.parquet", folder / "absent.parquet"
        write_types(filtered, numbers[:present])
        write_types(others, numbers[present:])
        points = tuple(measure(filtered, others, request))
        yield Result(
            case=f"false positives, worst of {len(points)} types, {100 * request:g} % requested",
            unit="share",
            ours=max(point["fpp"] for point in points),
            measure=Measure.VALUE,
            goal=request,
            tolerance=DEVIATIONS * math.sqrt(request * (1 - request) / absent),
            points=points,
            note=f"{absent:,} absent values of each type, filters filled to {100 * FILLED:g} % of"
            f" the request; {DEVIATIONS} standard deviations of the count are left to chance",
        )


def values_within(request: float, blocks: int) -> int:
    """How many distinct values so many blocks hold at little less than ``request``."""
    limit = FILLED * request
    return bisect_right(range(blocks * 256), limit, key=lambda n: expected_fpp(n, blocks)) - 1


def write_types(path: Path, numbers: NDArray[np.int64]) -> None:
    """One row group with a column for each type; equal numbers are equal in every type."""
    columns = typed_columns(pa.array(numbers))
    pq.write_table(
        pa.table(columns),
        path,
        row_group_size=len(numbers),
        use_deprecated_int96_timestamps=True,
        store_decimal_as_integer=True,
    )


def typed_columns(n: pa.Array) -> dict[str, pa.Array]:
    """Each column is named for its type in the file."""
    text, whole = n.cast(pa.string()), n.cast(pa.decimal128(19))
    fixed = n.to_numpy().view("S8").astype("S16")
    return {
        "INT32": n.cast(pa.int32()),
        "INT64": n,
        "FLOAT": n.cast(pa.float32()),
        "DOUBLE": pa.array(n.to_numpy() / 7),
        "BYTE_ARRAY (string)": text,
        "BYTE_ARRAY (binary)": text.cast(pa.binary()),
        "FIXED_LEN_BYTE_ARRAY(16)": pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(16), len(n), [None, pa.py_buffer(fixed)]
        ),
        "DECIMAL(9, 2) as INT32": whole.cast(pa.decimal128(9, 2)),
        "DECIMAL(18, 2) as INT64": whole.cast(pa.decimal128(18, 2)),
        "DECIMAL(30, 4)": whole.cast(pa.decimal128(30, 4)),
        "DATE": n.cast(pa.int32()).cast(pa.date32()),
        "INT96 (timestamp)": pa.array(n.to_numpy() * 1_000_003, pa.timestamp("us")),
    }


def measure(filtered: Path, others: Path, request: float) -> Iterator[Point]:
    """Build all filters anew for ``request``, and ask each for the absent values of its type."""
    options = sb.BloomFilterOptions(fpp=request)
    names = pq.read_schema(filtered).names
    add(filtered, dict.fromkeys(names, options), replace_filters=True)
    with opened(filtered) as it, opened(others) as absent:
        for name in names:
            bloom_filter = stored_filter(it, name)
            values = read_entries(absent.file, absent.chunk(0, name))
            asked = missed = 0
            for entries in values.entries:
                asked += len(entries)
                missed += count_missed(bloom_filter, entries)
            yield {
                "type": name,
                "request": request,
                "fpp": 1 - missed / asked,
                "exact": bloom_filter.fpp(),
                "bytes": bloom_filter.byte_count,
            }
