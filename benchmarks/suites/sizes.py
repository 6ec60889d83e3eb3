"""The size of filters where nobody knows the number of distinct values, beside what others make.

Columns of one row group, int64 without a dictionary, each with another number of distinct values.
`python -m benchmarks.suites.sizes FOLDER` is the process in which Spark writes its filters.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secure_bloom as sb
from benchmarks.harness.data import OURS, PYARROW, PYARROW_TOLD, SPARK_TOLD, add, stored_filter
from benchmarks.harness.results import Measure, Point, Result
from benchmarks.harness.sessions import local_session
from benchmarks.harness.timing import python
from secure_bloom.bloom import xxh64
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from testing.surgery import opened

Filters: TypeAlias = Sequence[SplitBlockBloomFilter]

ROWS = 1_000_000
DISTINCT = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
FPP = 0.01
#: What pyarrow asks for where it is told nothing; Spark asks for ``FPP``.
PYARROW_FPP = 0.05
REQUESTS = (0.1, 0.01, 0.001, 0.0001)
#: Absent values, which no column has: they are below 0.
ABSENT = xxh64.hash_fixed(-1 - np.arange(1_000_000))
SPARK_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "Spark's default": {},
    "Spark's adaptive filters": {"parquet.bloom.filter.adaptive.enabled": "true"},
}


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """Ours at the request, and at the rate that each of the others happens to have."""
    distinct = DISTINCT[:3] if quick else DISTINCT
    plain = folder / "plain.parquet"
    write(plain, table(distinct, distinct[-1] if quick else ROWS))
    python("-m", __spec__.name, folder)
    yield smallest(ours_at(plain, [FPP] * len(distinct)))
    for name in SPARK_OPTIONS:
        yield from compared(name, plain, distinct, FPP, by_spark(folder, name))
    yield from compared(PYARROW, plain, distinct, PYARROW_FPP, by_pyarrow(plain, True))
    for request in REQUESTS:
        exact = [{"ndv": count, "fpp": request} for count in distinct]
        yield in_all(PYARROW_TOLD, plain, distinct, request, by_pyarrow(plain, *exact))
    yield in_all(SPARK_TOLD, plain, distinct, FPP, by_spark(folder, SPARK_TOLD))


def table(distinct: Sequence[int], rows: int) -> pa.Table:
    """A column for each number of distinct values."""
    numbers = np.arange(rows)
    return pa.table({f"n{count}": numbers % count * 1_000_003 for count in distinct})


def write(path: Path, content: pa.Table, **options: Any) -> None:
    """One row group, no dictionaries."""
    pq.write_table(content, path, row_group_size=len(content), use_dictionary=False, **options)


def ours_at(plain: Path, requests: Sequence[float]) -> Filters:
    """Our filters, with a request for each column; the number of distinct values is not known."""
    work = plain.with_name("work.parquet")
    shutil.copyfile(plain, work)
    names = pq.read_schema(plain).names
    options = [sb.BloomFilterOptions(fpp=request) for request in requests]
    add(work, dict(zip(names, options, strict=True)))
    return filters_of(work)


def filters_of(path: Path) -> Filters:
    """The filter of every column."""
    with opened(path) as it:
        return [stored_filter(it, leaf.name) for leaf in it.footer.leaves]


def by_spark(folder: Path, name: str) -> Filters:
    """Filters that Spark has written."""
    (path,) = (folder / name).glob("*.parquet")
    return filters_of(path)


def by_pyarrow(plain: Path, *options: Any) -> Filters:
    """Filters that pyarrow makes, with options for each column, or with the same for all."""
    content, path = pq.read_table(plain), plain.with_name("other.parquet")
    names = content.column_names
    each = options if len(options) == len(names) else options * len(names)
    write(path, content, bloom_filter_options=dict(zip(names, each, strict=True)))
    return filters_of(path)


def smallest(ours: Filters) -> Result:
    """Whether half of each filter would break the request."""
    wasteful = [
        each
        for each in ours
        if each.fpp() > FPP or (each.block_count > 1 and each.folded().fpp() <= FPP)
    ]
    return Result(
        case=f"filters at {100 * FPP:g} % that are not the smallest power of two",
        unit=f"of {len(ours)}",
        ours=len(wasteful),
        measure=Measure.VALUE,
        goal=0,
        note="the number of distinct values is not known",
    )


def compared(
    name: str, plain: Path, distinct: Sequence[int], request: float, theirs: Filters
) -> Iterator[Result]:
    """Against one of the others, at its own rate and at its own request."""
    same = ours_at(plain, [each.fpp() for each in theirs])
    shares = [mine.byte_count / its.byte_count for mine, its in zip(same, theirs, strict=True)]
    yield Result(
        case=f"filter size at the same fpp, worst of {len(same)} columns",
        against=name,
        unit="of its bytes",
        ours=max(shares),
        measure=Measure.VALUE,
        goal=1,
    )
    yield in_all(name, plain, distinct, request, theirs)


def in_all(
    name: str, plain: Path, distinct: Sequence[int], request: float, theirs: Filters
) -> Result:
    """All columns together, both sides asked for the same."""
    ours = ours_at(plain, [request] * len(distinct))
    return Result(
        case=f"filters of {len(ours)} columns, {distinct[0]} to {distinct[-1]:,} values, "
        f"{100 * request:g} %",
        against=name,
        unit="KiB",
        ours=sum(each.byte_count for each in ours) / 1024,
        other=sum(each.byte_count for each in theirs) / 1024,
        measure=Measure.TIMES,
        note=f"beyond the request: {beyond(ours, request)} of ours, {beyond(theirs, request)} of "
        "theirs",
        points=(
            *points(OURS, distinct, request, ours),
            *points(name, distinct, request, theirs),
        ),
    )


def beyond(filters: Filters, request: float) -> int:
    """How many let through more than they should."""
    return sum(each.fpp() > request for each in filters)


def points(name: str, distinct: Sequence[int], request: float, filters: Filters) -> list[Point]:
    """Each filter's size and the share of a million absent values that it lets pass."""
    return [
        {
            "maker": name,
            "distinct": count,
            "request": request,
            "bytes": each.byte_count,
            "fpp": float(each.check_hashes(ABSENT).mean()),
        }
        for count, each in zip(distinct, filters, strict=True)
    ]


def main() -> None:
    """The process in which Spark writes: all columns in one row group."""
    folder = Path(sys.argv[1])
    with local_session(1, folder) as spark:
        content = spark.read.parquet(str(folder / "plain.parquet")).coalesce(1)
        told = {f"parquet.bloom.filter.expected.ndv#{name}": name[1:] for name in content.columns}
        for name, options in {**SPARK_OPTIONS, SPARK_TOLD: told}.items():
            writer = content.write.options(**options)
            writer = writer.option("parquet.enable.dictionary", "false")
            writer.option("parquet.bloom.filter.enabled", "true").parquet(str(folder / name))


if __name__ == "__main__":
    main()
