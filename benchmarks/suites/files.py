"""Adding filters to a file, beside reading it and writing it again with a writer that makes them.

pyarrow gets what it cannot find out by itself: the exact number of distinct values.  It does not
sync its file, we do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.harness.data import COLUMNS, ROW_GROUPS, WORDS, add, fresh_copy, write_wide
from benchmarks.harness.results import Result
from benchmarks.harness.timing import Side, medians, process

#: The same by pyarrow alone, as a process: its arguments are the file, the new one, rows a group.
REWRITE = """
import sys
import pyarrow.parquet as pq
plain, other, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = {column: {"ndv": rows, "fpp": 0.01} for column in ("id", "email")}
pq.write_table(pq.read_table(plain), other, row_group_size=rows, bloom_filter_options=options)
"""


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """In place and by replacing the file, warm and as whole processes."""
    rows = 200_000 if quick else 4_000_000
    plain = write_wide(folder / "plain.parquet", rows)
    in_place, replace, other, tuned = warm(folder, plain, rows)
    name, against = f"add to 2 of 11 columns, {rows:,} rows, ", "pyarrow reads, writes with filters"
    yield Result(
        case=f"{name}in place", against=against, unit="s", ours=in_place, other=other, goal=8
    )
    yield Result(
        case=f"{name}replace", against=against, unit="s", ours=replace, other=other, goal=3
    )
    yield Result(
        case=f"{name}in place",
        against="pyarrow tuned does the same",
        unit="s",
        ours=in_place,
        other=tuned,
        note="memory-mapped, the columns of few values read as dictionaries",
    )
    in_place, replace, other = whole_processes(folder, plain, rows)
    for way, ours in (("in place", in_place), ("replace", replace)):
        case = f"{name}{way}, whole process"
        yield Result(case=case, against=against, unit="s", ours=ours, other=other)


def warm(folder: Path, plain: Path, rows: int) -> list[float]:
    """In place, replacing, and pyarrow at its defaults and tuned, in this process."""
    work, target = folder / "work.parquet", folder / "other.parquet"
    return medians(
        Side(run=lambda: add(work, in_place=True), before=lambda: fresh_copy(plain, work)),
        Side(run=lambda: add(work), before=lambda: fresh_copy(plain, work)),
        Side(run=lambda: rewrite(plain, target, rows)),
        Side(run=lambda: rewrite_tuned(plain, target, rows)),
    )


def rewrite(plain: Path, target: Path, rows: int) -> None:
    """Read with pyarrow, write with filters."""
    write_with_filters(pq.read_table(plain), target, rows)


def rewrite_tuned(plain: Path, target: Path, rows: int) -> None:
    """The same as fast as its options make it."""
    table = pq.read_table(plain, memory_map=True, read_dictionary=list(WORDS))
    write_with_filters(table, target, rows)


def write_with_filters(table: object, target: Path, rows: int) -> None:
    """Write with filters of the exact number of distinct values."""
    size = rows // ROW_GROUPS
    options = {column: {"ndv": size, "fpp": 0.01} for column in COLUMNS}
    pq.write_table(table, target, row_group_size=size, bloom_filter_options=options)


def whole_processes(folder: Path, plain: Path, rows: int) -> list[float]:
    """Our command line in place, replacing, and pyarrow alone: start to end."""
    work = folder / "work.parquet"
    command: list[str | Path] = [
        "-m",
        "secure_bloom",
        "add",
        work,
        *(f"--column={name}" for name in COLUMNS),
    ]
    size = str(rows // ROW_GROUPS)
    return medians(
        process(*command, "--in-place", before=lambda: fresh_copy(plain, work)),
        process(*command, before=lambda: fresh_copy(plain, work)),
        process("-c", REWRITE, plain, folder / "other.parquet", size),
        runs=3,
    )
