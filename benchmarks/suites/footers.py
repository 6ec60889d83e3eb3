"""Files whose footer is the work: up to 10,000 column chunks, of which one column gets filters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness.data import add, fresh_copy
from benchmarks.harness.results import Measure, Result
from benchmarks.harness.timing import Side, medians

COLUMNS = 100
ROWS = 4


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """Seconds of the largest, and how they grow with the chunks."""
    row_groups = (1, 2) if quick else (10, 25, 50, 100)
    works = [write_footer(folder, count) for count in row_groups]
    times = medians(*works)
    chunks = [COLUMNS * count for count in row_groups]
    points = tuple(
        {"chunks": count, "seconds": time} for count, time in zip(chunks, times, strict=True)
    )
    yield Result(
        case=f"footer of {chunks[-1]:,} chunks, filters on one column, in place",
        unit="s",
        ours=times[-1],
        measure=Measure.VALUE,
        goal=1,
    )
    yield Result(
        case=f"time grows as chunks to the power of, {chunks[0]:,} to {chunks[-1]:,}",
        unit="",
        ours=exponent(chunks, times),
        measure=Measure.VALUE,
        goal=1,
        tolerance=0.1,
        points=points,
        note="the slope of a straight line through the logarithms",
    )


def write_footer(folder: Path, row_groups: int) -> Side:
    """A file of so many row groups, and the add to a copy of it."""
    numbers = np.arange(row_groups * ROWS)
    table = pa.table({f"c{i}": pa.array(numbers + i) for i in range(COLUMNS)})
    plain, work = folder / f"plain-{row_groups}.parquet", folder / f"work-{row_groups}.parquet"
    pq.write_table(table, plain, row_group_size=ROWS)
    return Side(
        run=lambda: add(work, ("c50",), in_place=True), before=lambda: fresh_copy(plain, work)
    )


def exponent(sizes: list[int], times: list[float]) -> float:
    """The power with which the times grow."""
    slope, _ = np.polyfit([math.log(size) for size in sizes], [math.log(t) for t in times], 1)
    return float(slope)
