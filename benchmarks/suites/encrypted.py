"""The same table encrypted, beside Spark reading it and writing it with its own encrypted filters.

`python -m benchmarks.suites.encrypted FOLDER ROWS RUNS` is the process that both run in: Spark's
start-up and one run of each side do not count.  Spark gets the number of distinct values in one of
its two turns; in the other it makes filters of their largest size, as it does by default.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness.data import COLUMNS, ROW_GROUPS, add, fresh_copy, write_policy, write_wide
from benchmarks.harness.results import Result
from benchmarks.harness.sessions import local_session
from benchmarks.harness.timing import Side, medians, python
from secure_bloom.spark import session_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = {"id": "k_finance", "email": "k_pii"}


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """In place and by replacing the files."""
    rows, runs = (200_000, 1) if quick else (4_000_000, 5)
    times = json.loads(python("-m", __spec__.name, folder, str(rows), str(runs)))
    for way, goal in (("in place", 15.0), ("replace", None)):
        yield Result(
            case=f"add to 2 of 11 encrypted columns, {rows:,} rows, {way}",
            against="Spark reads, writes with encrypted filters",
            unit="s",
            ours=times[way],
            other=min(times["default"], times["ndv"]),
            goal=goal,
            note="footer and both columns encrypted, AES-GCM; Spark's faster way: "
            f"{times['default']:.2f} s without the number of distinct values, "
            f"{times['ndv']:.2f} s with it; its start-up is not counted",
        )


def main() -> None:
    """The process that is measured; prints the medians as JSON."""
    folder, rows, runs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    policy = write_policy(folder, KEYS)
    plain = write_wide(folder / "plain.parquet", rows)
    table, work = folder / "table", folder / "work"
    with local_session(2, folder, session_config(policy)) as spark:
        spark.read.parquet(str(plain)).write.parquet(str(table))

        def copy() -> None:
            fresh_copy(table, work)

        times = medians(
            Side(run=lambda: add(work, None, policy=policy, in_place=True), before=copy),
            Side(run=lambda: add(work, None, policy=policy), before=copy),
            Side(run=lambda: rewrite(spark, table, folder / "new", rows=None)),
            Side(run=lambda: rewrite(spark, table, folder / "new", rows=rows)),
            runs=runs,
        )
    names = ("in place", "replace", "default", "ndv")
    print(json.dumps(dict(zip(names, times, strict=True))))


def rewrite(spark: SparkSession, table: Path, target: Path, *, rows: int | None) -> None:
    """Read the table, write it with Spark's filters; with ``rows`` it knows the distinct values."""
    options = {}
    for column in COLUMNS:
        options[f"parquet.bloom.filter.enabled#{column}"] = "true"
        options[f"parquet.bloom.filter.fpp#{column}"] = "0.01"
        if rows is not None:
            options[f"parquet.bloom.filter.expected.ndv#{column}"] = str(rows // ROW_GROUPS)
    writer = spark.read.parquet(str(table)).write.mode("overwrite").options(**options)
    writer.parquet(str(target))


if __name__ == "__main__":
    main()
