"""What a file costs where files are small, or wide: whole lakes of them, beside pyarrow and DuckDB.

`python -m benchmarks.suites.small_files SOURCE TARGET [--synced]` is pyarrow's side: two processes
read each file of a folder and write it anew with filters.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secure_bloom as sb
from benchmarks.harness.data import COLUMNS, add, copy_beside, fresh_copy, wide_table
from benchmarks.harness.results import Measure, Result
from benchmarks.harness.timing import Side, medians, process, seconds

RUNS = 2
_ROWS = 2000
_FILTERS = {name: {"ndv": _ROWS, "fpp": 0.01} for name in COLUMNS}
_AGAINST = "pyarrow reads and writes each with filters, two processes"
_SYNCED = "--synced"
_MEMORY_DISK = Path("/dev/shm")
_ADD = ("-m", "secure_bloom", "add", *(f"--column={name}" for name in COLUMNS))


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """Adding to many files, finding nothing to do, looking at them; one file; wide files."""
    yield from _adding(folder, 16 if quick else 2000, 1 if quick else RUNS)
    yield from _looking(folder, 16 if quick else 10_000, 1 if quick else RUNS)
    yield from _one_file(folder, 1 if quick else RUNS)
    yield from _wide_files(folder, (10, 40) if quick else (1000, 4000), 1 if quick else RUNS)


def write_lake(folder: Path, files: int, rows: int, *, filters: bool = False) -> Path:
    """So many copies of one file, with filters or without."""
    folder.mkdir()
    first = folder / "part-00000.parquet"
    pq.write_table(wide_table(rows), first)
    if filters:
        add(first)
    content = first.read_bytes()
    for number in range(1, files):
        (folder / f"part-{number:05}.parquet").write_bytes(content)
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of a process, on the clock and of all CPUs: its own and those of its children."""

    wall: float
    cpu: float


def costs(*sides: Side, runs: int) -> list[Cost]:
    """As :func:`medians`, of processes."""
    rounds = [[_cost(side) for side in sides] for _ in range(runs + 1)]
    return [
        Cost(
            wall=statistics.median(cost.wall for cost in of_side),
            cpu=statistics.median(cost.cpu for cost in of_side),
        )
        for of_side in zip(*rounds[1:], strict=True)
    ]


def _cost(side: Side) -> Cost:
    side.before()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = seconds(side.run)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Cost(wall=wall, cpu=cpu)


def _adding(folder: Path, files: int, runs: int) -> Iterator[Result]:
    lake, work = write_lake(folder / "lake", files, _ROWS), folder / "work"
    two, one, pyarrow, synced = costs(
        *_adders(lake, work), _pyarrow(lake, work), _pyarrow(lake, work, _SYNCED), runs=runs
    )
    case = f"{files:,} files of {_ROWS:,} rows, filters on two columns"
    note = "whole processes; our files are synced to the disk, pyarrow's are not"
    yield from against_pyarrow(case, two, pyarrow, files, note, goals=(2, 0.4))
    yield Result(
        case=case, against=f"{_AGAINST}, both synced", unit="s", ours=two.wall, other=synced.wall
    )
    yield _against_one(case, two, one)
    if _MEMORY_DISK.is_dir():
        with tempfile.TemporaryDirectory(prefix="bench-", dir=_MEMORY_DISK) as memory:
            work = Path(memory) / "work"
            two, one, pyarrow = costs(*_adders(lake, work), _pyarrow(lake, work), runs=runs)
        case = f"{case}, on a memory disk"
        note = "whole processes; there is nothing to wait for, and to sync costs nothing"
        yield from against_pyarrow(case, two, pyarrow, files, note)
        yield _against_one(case, two, one)


def _adders(lake: Path, work: Path) -> tuple[Side, Side]:
    """Ours: with two processes, with one."""
    copied = partial(copy_beside, lake, work)
    return (
        process(*_ADD, work, "--jobs=2", before=copied),
        process(*_ADD, work, "--jobs=1", before=copied),
    )


def _pyarrow(lake: Path, work: Path, *options: str) -> Side:
    copied = partial(copy_beside, lake, work)
    return process("-m", __spec__.name, lake, work, *options, before=copied)


def against_pyarrow(
    case: str,
    ours: Cost,
    pyarrow: Cost,
    files: int,
    note: str,
    *,
    goals: tuple[float | None, float | None] = (None, None),
) -> Iterator[Result]:
    """Yield the time of whole processes and their CPU a file; ``goals`` are in this order."""
    faster, cpu = goals
    yield Result(
        case=case,
        against=_AGAINST,
        unit="s",
        ours=ours.wall,
        other=pyarrow.wall,
        goal=faster,
        note=note,
    )
    yield Result(
        case=f"{case}, CPU a file",
        against=_AGAINST,
        unit="ms",
        ours=1000 * ours.cpu / files,
        other=1000 * pyarrow.cpu / files,
        measure=Measure.TIMES,
        goal=cpu,
        note=note,
    )


def _against_one(case: str, two: Cost, one: Cost) -> Result:
    return Result(
        case=f"{case}, two processes",
        against="one process",
        unit="s",
        ours=two.wall,
        other=one.wall,
        goal=1.7,
    )


def _looking(folder: Path, files: int, runs: int) -> Iterator[Result]:
    rows = 200
    lake = write_lake(folder / "looked-at", files, rows, filters=True)
    paths = sorted(lake.iterdir())
    calls: dict[str, Callable[[], object]] = {
        "add that finds nothing to do": lambda: sb.add_bloom_filters(lake, columns=COLUMNS),
        "inspect": lambda: sb.inspect(lake),
        "probe of one value": lambda: sb.probe(lake, "email", "nobody@example.com"),
    }
    *ours, other = medians(
        *(Side(run=call) for call in calls.values()),
        Side(run=lambda: [pq.read_metadata(path) for path in paths]),
        runs=runs,
    )
    for name, own in zip(calls, ours, strict=True):
        yield Result(
            case=f"{files:,} files of {rows} rows, {name}",
            against="pyarrow.parquet.read_metadata of each",
            unit="s",
            ours=own,
            other=other,
            measure=Measure.TIMES,
            goal=4,
        )


def _one_file(folder: Path, runs: int) -> Iterator[Result]:
    plain, work = folder / "one.parquet", folder / "one-work.parquet"
    pq.write_table(wide_table(10_000), plain)
    query = f"import duckdb; duckdb.sql(\"from parquet_metadata('{plain}')\").fetchall()"
    ours, other = costs(
        process(*_ADD, work, before=partial(fresh_copy, plain, work)),
        process("-c", query),
        runs=2 * runs,
    )
    yield Result(
        case="one file of 10,000 rows, filters on two columns, the whole process",
        against="DuckDB opens it and reads its metadata, the whole process",
        unit="s",
        ours=ours.wall,
        other=other.wall,
        measure=Measure.TIMES,
        goal=2,
    )


def _wide_files(folder: Path, columns: tuple[int, int], runs: int) -> Iterator[Result]:
    few, many = costs(*(_wide_file(folder, count) for count in columns), runs=runs)
    yield Result(
        case=f"filters on all of {columns[1]:,} columns, CPU",
        against=f"on all of {columns[0]:,} columns",
        unit="s",
        ours=many.cpu,
        other=few.cpu,
        measure=Measure.TIMES,
        goal=4.4,
        note="whole processes",
    )


def _wide_file(folder: Path, columns: int) -> Side:
    plain, work = folder / f"wide-{columns}.parquet", folder / f"wide-{columns}-work.parquet"
    names = [f"c{number:05}" for number in range(columns)]
    pq.write_table(pa.table({name: np.arange(100) + i for i, name in enumerate(names)}), plain)
    options = [f"--column={name}" for name in names]
    return process(
        "-m", "secure_bloom", "add", work, *options, before=partial(fresh_copy, plain, work)
    )


def rewrite(source: Path, target: Path, *, synced: bool = False) -> None:
    """Read a file with pyarrow, and write it with filters."""
    pq.write_table(pq.read_table(source), target, bloom_filter_options=_FILTERS)
    if synced:
        with target.open("rb") as file:
            os.fsync(file.fileno())


def main() -> None:
    """Pyarrow's side."""
    source, target, *options = sys.argv[1:]
    files = sorted(Path(source).iterdir())
    work = partial(rewrite, synced=_SYNCED in options)
    with ProcessPoolExecutor(2) as pool:
        targets = (Path(target) / file.name for file in files)
        list(pool.map(work, files, targets, chunksize=16))


if __name__ == "__main__":
    main()
