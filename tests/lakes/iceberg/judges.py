"""Other readers of Iceberg tables: DuckDB with its extension for Iceberg."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from testing.table_readers import DUCKDB

Rows = list[dict[str, Any]]
_DUCKDB = """
import importlib.util, json, pathlib, sys
import duckdb
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
for name in ("avro", "iceberg"):
    found = importlib.util.find_spec(f"duckdb_extension_{name}")
    (extension,) = pathlib.Path(found.origin).parent.rglob("*.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
scans = []
for line in sys.stdin:
    path, snapshot = json.loads(line)
    at = "" if snapshot is None else f", snapshot_from_id = {snapshot}"
    rows = connection.execute(f"SELECT * FROM iceberg_scan(?{at}) ORDER BY id", [path])
    names = [column[0] for column in rows.description]
    scans.append([dict(zip(names, row)) for row in rows.fetchall()])
print(json.dumps(scans, default=str))
"""


def by_duckdb(scans: Sequence[tuple[str, int | None]]) -> list[Rows]:
    """Return the rows of metadata files, each at a snapshot or the current one, by their ids.

    One process reads all of them.
    """
    if not (DUCKDB / "duckdb_extension_iceberg").exists():
        pytest.skip("needs DuckDB with its extension for Iceberg, which make installs")
    done = subprocess.run(
        [sys.executable, "-c", _DUCKDB],
        input="".join(json.dumps(scan) + "\n" for scan in scans),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(DUCKDB)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[Rows] = json.loads(done.stdout.splitlines()[-1])
    return found
