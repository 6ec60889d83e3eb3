"""A key looked up on Spark: the process behind the suite `reading`.

`python -m benchmarks.suites.source FOLDER FILES GROUPS ROWS RUNS` looks keys up in the encrypted
table of :class:`benchmarks.harness.lake.Lake` by Spark's own reader, by the data source on Spark
and by `sb.read_table`, in turns, in one session that is warm; it prints the median seconds as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import secure_bloom as sb
from benchmarks.harness.data import POLICY, write_policy
from benchmarks.harness.lake import Lake, email_of
from benchmarks.harness.sessions import local_session
from benchmarks.harness.timing import Side, medians
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.spark import register, session_config

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession


def main() -> None:
    """The process that is measured."""
    files, groups, rows, runs = map(int, sys.argv[2:6])
    lake = Lake(folder=Path(sys.argv[1]), files=files, groups=groups, rows=rows)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        policy = write_policy(folder, {"email": "k_pii"})
        with local_session(2, folder, session_config(policy, writes=False)) as spark:
            register(spark)
            reader = spark.read.format("secure_bloom").option("policy", str(folder / POLICY))
            print(json.dumps(list(measured(spark, reader, lake, policy, runs))))


def measured(
    spark: SparkSession, reader: DataFrameReader, lake: Lake, policy: KeyPolicy, runs: int
) -> Iterator[dict[str, Any]]:
    """The seconds of every way, for a key that is not there and for one that is once."""
    # What Spark lists and reads when a table is loaded does not count on its side.
    native = spark.read.parquet(str(lake.encrypted))
    for name, row in (("absent", lake.absent), ("present once", lake.present)):
        where = f"email = '{email_of(row)}'"
        ways = {
            "native": lambda where=where: native.where(where).collect(),
            "read": lambda where=where: sb.read_table(
                lake.encrypted, where=where, policy=policy
            ).to_pylist(),
            "source": lambda where=where: (
                reader.option("where", where).load(str(lake.encrypted)).where(where).collect()
            ),
        }
        found = {way: len(run()) for way, run in ways.items()}
        if len(set(found.values())) > 1:
            raise SystemExit(f"key {name}: different numbers of rows were found: {found}")
        seconds = medians(*(Side(run=run) for run in ways.values()), runs=runs)
        yield {"key": name, **dict(zip(ways, seconds, strict=True))}


if __name__ == "__main__":
    main()
