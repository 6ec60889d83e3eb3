"""Single rows of a table that stays open, beside the decoding of one row group, DuckDB and Polars.

Every round asks for another key, so that each side reads another row group.  `python -m
benchmarks.suites.lookups FOLDER` keeps the tables (6 GB) in FOLDER, and publishes nothing.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

import secure_bloom as sb
from benchmarks.harness.lake import Lake, email_of
from benchmarks.harness.results import Measure, Result
from benchmarks.harness.tables import print_table
from benchmarks.harness.timing import Side, medians
from testing.tables import KEYRING, crypto_factory

DECODED, DUCKDB, POLARS = "pyarrow decodes the one row group", "DuckDB", "Polars"
#: Keys of the long list, and how many of them the table has.
MANY, FOUND = 10_000, 10
#: Rows of the files that are read whole.
SCANNED = 200_000
#: An odd number, so that keys of consecutive rounds are in different row groups.
STRIDE = 209_899


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What asks one table, and its plain twin by others."""

    lake: Lake
    table: Path
    con: duckdb.DuckDBPyConnection

    def asked(self, table: sb.Table, row_of: Callable[[int], int], *columns: str) -> Side:
        """One key after the other, of an open table."""
        numbers = count()

        def ask() -> None:
            where = [("email", "=", email_of(row_of(next(numbers))))]
            table.read(where, columns=list(columns) or None)

        return Side(run=ask)

    def duckdb(self, row_of: Callable[[int], int]) -> Side:
        """The same keys, looked up by DuckDB in the plain files."""
        numbers, files = count(), f"read_parquet('{self.lake.plain}/*.parquet')"

        def ask() -> None:
            key = email_of(row_of(next(numbers)))
            self.con.sql(f"select * from {files} where email = '{key}'").to_arrow_table()

        return Side(run=ask)

    def decoded(self) -> Side:
        """The row groups with the same keys, decoded whole from files that are open."""
        files = [opened(path) for path in sorted(self.table.iterdir())]
        numbers, of_file = count(), self.lake.groups * self.lake.rows

        def decode() -> None:
            row = self.present(next(numbers))
            group = row % of_file // self.lake.rows
            files[row // of_file].read_row_group(group, use_threads=False)

        return Side(run=decode)

    def present(self, number: int) -> int:
        """A row of the table."""
        return (number * STRIDE + 5) % self.lake.absent

    def absent(self, number: int) -> int:
        """A row that the table does not have."""
        return self.lake.absent + number


def opened(path: Path) -> pq.ParquetFile:
    """A file as pyarrow opens it, decrypting it where that is needed."""
    properties = None
    if path.parent.name == "encrypted":
        properties = crypto_factory().file_decryption_properties(
            pe.KmsConnectionConfig(), pe.DecryptionConfiguration()
        )
    return pq.ParquetFile(path, decryption_properties=properties)


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """One key, a list, the first question, and a whole scan; then more row groups."""
    runs = 3 if quick else 101
    lake = Lake(
        folder=folder / "lake",
        files=5 if quick else 50,
        rows=1_000 if quick else 16_000,
        note=20,
        amounts=4,
    )
    lake.write()
    with duckdb.connect() as con:
        con.execute("set parquet_metadata_cache = true")
        for table in (lake.plain, lake.encrypted):
            sides = Sides(lake=lake, table=table, con=con)
            yield from one_key(sides, runs)
            yield many_keys(sides, runs=min(runs, 5))
            yield first_question(sides, runs=min(runs, 11))
            yield scan(sides, runs=min(runs, 11))
        yield from read_once(Sides(lake=lake, table=lake.plain, con=con), runs=min(runs, 21))
        yield more_row_groups(folder / "larger", con, runs=min(runs, 41), quick=quick)


def one_key(sides: Sides, runs: int) -> Iterator[Result]:
    """A key in an open table: present, with all columns and with one, and absent."""
    name = sides.table.name
    with (
        sb.open_table(sides.table, keys=KEYRING) as kept,
        sb.open_table(sides.table, keys=KEYRING, stale_after=1) as fresh,
    ):
        whole, one, decoded, theirs, absent, of_fresh, nothing = medians(
            sides.asked(kept, sides.present),
            sides.asked(kept, sides.present, "id"),
            sides.decoded(),
            sides.duckdb(sides.present),
            sides.asked(kept, sides.absent),
            sides.asked(fresh, sides.absent),
            sides.duckdb(sides.absent),
            runs=runs,
        )
    for columns, ours, goal in (("all nine columns", whole, 0.6), ("one column", one, 0.3)):
        yield Result(
            case=f"present key, {columns}, {name}",
            against=DECODED,
            unit="s",
            ours=ours,
            other=decoded,
            measure=Measure.TIMES,
            goal=goal,
        )
    yield against_duckdb(f"present key, all nine columns, {name}", whole, theirs, 10)
    yield against_duckdb(f"absent key, {name}", absent, nothing, 50)
    yield Result(
        case=f"absent key, stale_after=1, {name}",
        against=DUCKDB,
        unit="s",
        ours=of_fresh,
        other=nothing,
        goal=50,
        note="at most 0.3 ms were wanted",
    )


def against_duckdb(case: str, ours: float, other: float, goal: float) -> Result:
    """A time beside DuckDB's, which reads plain files and keeps its metadata cache."""
    return Result(case=case, against=DUCKDB, unit="s", ours=ours, other=other, goal=goal)


def many_keys(sides: Sides, runs: int) -> Result:
    """A long list of keys, of which few are in the table."""
    lake = sides.lake
    keys = [email_of(lake.absent + i) for i in range(MANY - FOUND)]
    keys += [email_of(sides.present(i)) for i in range(FOUND)]
    plain = lake.plain / "*.parquet"
    with sb.open_table(sides.table, keys=KEYRING) as kept:
        ours, theirs = medians(
            Side(run=lambda: kept.read([("email", "in", keys)])),
            Side(run=lambda: pl.scan_parquet(plain).filter(pl.col("email").is_in(keys)).collect()),
            runs=runs,
        )
    return Result(
        case=f"{MANY:,} keys, {FOUND} of them present, {sides.table.name}",
        against=POLARS,
        unit="s",
        ours=ours,
        other=theirs,
        goal=4,
    )


def first_question(sides: Sides, runs: int) -> Result:
    """A table that is opened for one question, beside a read that keeps nothing."""
    where = [("email", "=", email_of(sides.absent(0)))]

    def first() -> None:
        with sb.open_table(sides.table, keys=KEYRING) as table:
            table.read(where)

    ours, once = medians(
        Side(run=first),
        Side(run=lambda: sb.read_table(sides.table, where=where, keys=KEYRING)),
        runs=runs,
    )
    return Result(
        case=f"opening and first lookup, {sides.table.name}",
        against="sb.read_table",
        unit="s",
        ours=ours,
        other=once,
        measure=Measure.TIMES,
        goal=1.3,
    )


def scan(sides: Sides, runs: int) -> Result:
    """All columns of some rows without a condition: CPU of both sides, in turns."""
    groups = max(1, SCANNED // sides.lake.rows)
    paths = sorted(sides.table.iterdir())[: max(1, groups // sides.lake.groups)]
    rounds = [
        (
            cpu(lambda: sb.read_table(paths, keys=KEYRING)),
            cpu(lambda: pa.concat_tables([opened(path).read() for path in paths])),
        )
        for _ in range(runs + 1)
    ]
    ours, theirs = (statistics.median(times) for times in zip(*rounds[1:], strict=True))
    return Result(
        case=f"scan of all columns, {sides.table.name}",
        against="pyarrow",
        unit="s",
        ours=ours,
        other=theirs,
        measure=Measure.TIMES,
        goal=1.2,
        note="CPU of all threads",
    )


def cpu(run: Callable[[], object]) -> float:
    """The CPU seconds of one call, with all threads of the process."""
    start = time.process_time()
    run()
    return time.process_time() - start


def read_once(sides: Sides, runs: int) -> Iterator[Result]:
    """One key by the function that keeps nothing, beside connections that keep much and nothing."""
    numbers = count()

    def read() -> None:
        where = [("email", "=", email_of(sides.present(next(numbers))))]
        sb.read_table(sides.table, where=where, keys=KEYRING)

    def connect() -> None:
        key = email_of(sides.present(next(numbers)))
        with duckdb.connect() as con:
            con.sql(
                f"select * from read_parquet('{sides.lake.plain}/*.parquet') where email = '{key}'"
            ).to_arrow_table()

    case = "sb.read_table of a present key, plain"
    ours, kept, new = medians(
        Side(run=read), sides.duckdb(sides.present), Side(run=connect), runs=runs
    )
    yield against_duckdb(case, ours, kept, 1.5)
    yield Result(
        case=case,
        against="DuckDB, a new connection",
        unit="s",
        ours=ours,
        other=new,
        goal=1.5,
        note="a new connection keeps no footers, as read_table does not",
    )


def more_row_groups(
    folder: Path, con: duckdb.DuckDBPyConnection, runs: int, *, quick: bool
) -> Result:
    """An absent key in three times as many row groups, of which filters let some pass."""
    lake = Lake(
        folder=folder,
        files=10 if quick else 150,
        rows=1_000 if quick else 16_000,
        note=20,
        amounts=4,
    )
    lake.write()
    sides = Sides(lake=lake, table=lake.plain, con=con)
    with sb.open_table(lake.plain, keys=KEYRING) as kept:
        ours, theirs = medians(
            sides.asked(kept, sides.absent), sides.duckdb(sides.absent), runs=runs
        )
    return against_duckdb(
        f"absent key, {lake.absent:,} rows in {lake.files * lake.groups:,} row groups, plain",
        ours,
        theirs,
        20,
    )


if __name__ == "__main__":
    print_table(cases(Path(sys.argv[1]), quick=False))
