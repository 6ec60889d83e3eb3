"""Rows read through filters, beside full scans and other engines: 1,000 row groups in 100 files.

`python -m benchmarks.suites.reading FOLDER` keeps the tables (12 GB) in FOLDER for the next run,
prints the results and publishes nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet.encryption as pe

import secure_bloom as sb
from benchmarks.harness.lake import Lake, email_of, iban_of
from benchmarks.harness.results import Measure, Result
from benchmarks.harness.tables import print_table
from benchmarks.harness.timing import Side, medians, python
from testing.tables import KEYRING, crypto_factory

PYARROW = "pyarrow's full scan"
DUCKDB, POLARS = "DuckDB", "Polars"
SPARK = "Spark's reader, with these filters"
#: Keys of the long list, and how many of them the table has.
LISTED, FOUND = 1000, 10
#: Keys of the list that an open table is asked for.
MANY = 10_000
IN_LIST = "select * from read_parquet('{}/*.parquet') where email in (select unnest(?))"

Count = Callable[[], int]


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """One key, many keys, and questions that no filter answers."""
    lake = Lake(folder=folder, files=10, groups=2, rows=500) if quick else Lake(folder=folder)
    lake.write()
    # A noisy neighbour outlasts a few turns.
    runs = 1 if quick else 11
    yield from one_key(lake, runs)
    yield from on_spark(lake, runs)
    yield many_keys(lake, runs)
    for table in (lake.plain, lake.encrypted):
        yield from open_table(lake, table, runs)
    yield from without_filter(lake, runs)


def one_key(lake: Lake, runs: int) -> Iterator[Result]:
    """Equality on the column with filters."""
    for name, row, goal in (("absent", lake.absent, 50.0), ("present once", lake.present, 20.0)):
        key = email_of(row)
        where = [("email", "=", key)]
        yield compared(
            f"read one key of {lake.absent:,} rows, {name}, encrypted",
            ours(lake.encrypted, where),
            {PYARROW: lambda key=key: scanned(lake.encrypted, pc.field("email") == key)},
            goal=goal,
            runs=runs,
        )
        yield compared(
            f"read one key of {lake.absent:,} rows, {name}, plain",
            ours(lake.plain, where),
            {
                DUCKDB: lambda key=key: asked_of_duckdb(lake.plain, key),
                POLARS: lambda key=key: asked_of_polars(lake.plain, key),
            },
            goal=1,
            runs=runs,
        )
    report = sb.explain(lake.encrypted, where=[("email", "=", email_of(lake.absent))], keys=KEYRING)
    yield Result(
        case="bytes read for an absent key, encrypted",
        against="a full scan",
        unit="share",
        ours=report.bytes_read / report.bytes_full_scan,
        measure=Measure.VALUE,
        goal=0.01,
    )


def on_spark(lake: Lake, runs: int) -> Iterator[Result]:
    """The same keys, beside Spark's own reader; and our data source on Spark."""
    output = python(
        "-m", "benchmarks.suites.source", lake.folder, *map(str, shape(lake)), str(runs)
    )
    for found in json.loads(output.splitlines()[-1]):
        for way, said in (("read", "sb.read_table"), ("source", "data source on Spark")):
            yield Result(
                case=f"one key, {found['key']}, encrypted, {said}",
                against=SPARK,
                unit="s",
                ours=found[way],
                other=found["native"],
                goal=1,
                note="the session is warm, and what Spark lists when it loads a table is not "
                "counted on its side",
            )


def shape(lake: Lake) -> tuple[int, int, int]:
    """The numbers that make a lake."""
    return lake.files, lake.groups, lake.rows


def many_keys(lake: Lake, runs: int) -> Result:
    """A long list of keys, of which few are there."""
    keys = [email_of(lake.absent + i) for i in range(LISTED - FOUND)]
    keys += [email_of(i) for i in range(FOUND)]
    return compared(
        f"read {LISTED:,} keys, {FOUND} of them present, encrypted",
        ours(lake.encrypted, [("email", "in", keys)]),
        {PYARROW: lambda: scanned(lake.encrypted, pc.field("email").isin(keys))},
        goal=5,
        runs=runs,
    )


def open_table(lake: Lake, table: Path, runs: int) -> Iterator[Result]:
    """One key, and a long list, in a table that stays open; the others read the plain files."""
    plain = lake.plain
    with sb.open_table(table, keys=KEYRING) as kept, duckdb.connect() as con:
        con.execute("set parquet_metadata_cache = true")
        for name, row, goal in (
            ("absent", lake.absent, 50.0),
            ("present once", lake.present, 10.0),
        ):
            key = email_of(row)
            yield compared(
                f"open table, one key, {name}, {table.name}",
                lambda key=key: kept.read([("email", "=", key)]).num_rows,
                {
                    DUCKDB: lambda key=key: asked_of_duckdb(plain, key, con),
                    POLARS: lambda key=key: asked_of_polars(plain, key),
                    PYARROW: lambda key=key: scanned(plain, pc.field("email") == key),
                },
                goal=goal,
                runs=runs,
                note="DuckDB keeps its metadata cache",
            )
        keys = [email_of(lake.absent + i) for i in range(MANY - FOUND)]
        keys += [email_of(i) for i in range(FOUND)]
        yield compared(
            f"open table, {MANY:,} keys, {FOUND} of them present, {table.name}",
            lambda: kept.read([("email", "in", keys)]).num_rows,
            {
                DUCKDB: lambda: (
                    con.execute(IN_LIST.format(plain), [keys]).to_arrow_table().num_rows
                ),
                POLARS: lambda: (
                    pl.scan_parquet(plain / "*.parquet")
                    .filter(pl.col("email").is_in(keys))
                    .collect()
                    .height
                ),
            },
            goal=2,
            runs=min(runs, 3),
        )


def without_filter(lake: Lake, runs: int) -> Iterator[Result]:
    """A column without filters, and conditions that most rows satisfy."""
    iban = iban_of(5)
    yield compared(
        "read one row by a column without filters, encrypted",
        ours(lake.encrypted, [("iban", "=", iban)]),
        {PYARROW: lambda: scanned(lake.encrypted, pc.field("iban") == iban)},
        goal=0.95,
        runs=runs,
    )
    for table in (lake.few(lake.encrypted), lake.few(lake.plain)):
        yield compared(
            f"read all rows, by a condition, of {len(list(table.iterdir()))} files, {table.name}",
            ours(table, [("amount0", ">", -9.0)]),
            {PYARROW: lambda table=table: scanned(table, pc.field("amount0") > -9.0)},
            goal=0.95,
            runs=runs,
        )


def compared(
    case: str, us: Count, others: Mapping[str, Count], *, goal: float, runs: int, note: str = ""
) -> Result:
    """All sides in turns; against is the fastest of the others, and all find as many rows."""
    found = {run() for run in (us, *others.values())}
    if len(found) > 1:
        raise SystemExit(f"{case}: the sides found different numbers of rows: {found}")
    mine, *theirs = medians(*(Side(run=run) for run in (us, *others.values())), runs=runs)
    times = dict(zip(others, theirs, strict=True))
    fastest = min(times, key=times.__getitem__)
    return Result(
        case=case,
        against=fastest,
        unit="s",
        ours=mine,
        other=times[fastest],
        goal=goal,
        note=", ".join(
            [f"{n} {1000 * s:.0f} ms" for n, s in times.items() if n != fastest]
            + [note] * bool(note)
        ),
    )


def ours(table: Path, where: object) -> Count:
    """The rows that we find."""
    return lambda: sb.read_table(table, where=where, keys=KEYRING).num_rows


def scanned(table: Path, condition: pc.Expression) -> int:
    """The rows that a full scan by pyarrow's dataset finds, decrypting where that is needed."""
    config = ds.ParquetDecryptionConfig(
        crypto_factory(), pe.KmsConnectionConfig(), pe.DecryptionConfiguration()
    )
    encrypted = table.name == "encrypted"
    options = ds.ParquetFragmentScanOptions(decryption_config=config if encrypted else None)
    form = ds.ParquetFileFormat(default_fragment_scan_options=options)
    return ds.dataset(table, format=form).to_table(filter=condition).num_rows


def asked_of_duckdb(table: Path, key: str, con: duckdb.DuckDBPyConnection | None = None) -> int:
    """One key looked up by DuckDB."""
    query = f"select * from read_parquet('{table}/*.parquet') where email = '{key}'"
    return (con or duckdb).sql(query).to_arrow_table().num_rows


def asked_of_polars(table: Path, key: str) -> int:
    """One key looked up by Polars."""
    return pl.scan_parquet(table / "*.parquet").filter(pl.col("email") == key).collect().height


if __name__ == "__main__":
    print_table(cases(Path(sys.argv[1]), quick=False))
