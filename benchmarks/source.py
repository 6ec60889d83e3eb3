"""A key looked up on Spark: `python -m benchmarks.source [FOLDER [ROWS]]`.

Spark's own reader with the filters, the data source and `sb.read_table` look the same key up in the
tables of `benchmarks/reading.py`, in turns, in one session that is warm.  FOLDER keeps the tables,
whose row groups have ROWS rows.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import secure_bloom as sb
from benchmarks.reading import FILES, GROUPS, KEYS, ROWS, address, write_tables
from benchmarks.timing import Side, medians
from secure_bloom.spark import register, session_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = "Spark's own reader"


def sides(
    spark: SparkSession, table: Path, key: str, keyring: Path
) -> dict[str, Callable[[], int]]:
    """Every way to find the key; each says how many rows it found."""
    where = f"email = '{key}'"

    def source(**options: str) -> int:
        read = spark.read.format("secure_bloom").option("keyring", str(keyring)).options(**options)
        return len(read.load(str(table)).where(where).collect())

    # What Spark lists and reads when a table is loaded is not timed for its own reader alone.
    loaded = spark.read.parquet(str(table))
    return {
        SPARK: lambda: len(loaded.where(where).collect()),
        f"{SPARK}, loading": lambda: len(spark.read.parquet(str(table)).where(where).collect()),
        "sb.read_table": lambda: sb.read_table(table, where=where, keys=KEYS).num_rows,
        "data source, where": lambda: source(where=where),
        "data source, pushed": source,
    }


def compare(title: str, found: dict[str, Callable[[], int]]) -> None:
    """Run all sides in turns, print their medians and how they stand to Spark's own reader."""
    rows = {name: run() for name, run in found.items()}
    if len(set(rows.values())) > 1:
        raise SystemExit(f"{title}: the sides found different rows: {rows}")
    spent = dict(zip(found, medians(*(Side(run=run) for run in found.values())), strict=True))
    print(f"{title}: {rows[SPARK]} rows")
    for name, seconds in spent.items():
        print(f"  {name:32} {1000 * seconds:7.0f} ms  {spent[SPARK] / seconds:6.2f} times as fast")


def session(folder: Path) -> tuple[SparkSession, Path]:
    """A local session that can read the tables natively too, and the keyring."""
    from pyspark.sql import SparkSession

    keyring, policy = folder / "keyring.json", folder / "policy.toml"
    keys = {name: base64.b64encode(key).decode() for name, key in KEYS.master_keys.items()}
    keyring.write_text(json.dumps({"version": 1, "master_keys": keys}))
    keyring.chmod(0o600)
    policy.write_text(
        '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n'
        '[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\n'
    )
    os.environ["PYSPARK_PYTHON"] = sys.executable
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    config = session_config(policy, writes=False) | quiet
    spark = SparkSession.builder.master("local[*]").config(map=config).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    register(spark, push_filters=True)
    return spark, keyring


def main() -> None:
    """Both tables, a key that is there once and one that is not."""
    with tempfile.TemporaryDirectory() as temporary:
        tables = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        rows = int(sys.argv[2]) if len(sys.argv) > 2 else ROWS
        write_tables(tables, rows)
        spark, keyring = session(Path(temporary))
        keys = {"absent": address(FILES * GROUPS * rows + 1), "present once": address(rows * 7 + 5)}
        for name in ("encrypted", "plain"):
            for told, key in keys.items():
                compare(f"{name}, key {told}", sides(spark, tables / name, key, keyring))
        spark.stop()


if __name__ == "__main__":
    main()
