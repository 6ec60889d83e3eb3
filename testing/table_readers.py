"""The rows of a Delta table at a version, by every reader at hand; and deletion vectors by hand."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from testing.delta_tables import deltalake, rows

Rows = list[dict[str, Any]]
#: Where `make` has put a DuckDB for which there is an extension for Delta.
DUCKDB = Path(sys.prefix) / "duckdb-delta"
_DUCKDB = """
import importlib.util, json, pathlib, sys
import duckdb
found = importlib.util.find_spec("duckdb_extension_delta")
(extension,) = pathlib.Path(found.origin).parent.rglob("*.duckdb_extension")
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
connection.execute(f"LOAD '{extension}'")
told = []
for version in map(int, sys.argv[2:]):
    rows = connection.execute(
        "SELECT * FROM delta_scan(?, version=?)", [sys.argv[1], version]
    )
    names = [column[0] for column in rows.description]
    told.append([dict(zip(names, row)) for row in rows.fetchall()])
print(json.dumps(told, default=str))
"""


def _sorted(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: int(row["id"]))


def by_polars(folder: str, version: int) -> Rows:
    polars = pytest.importorskip("polars")
    return _sorted(polars.scan_delta(folder, version=version).collect().to_dicts())


def by_datafusion(folder: str, version: int) -> Rows:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.register_table("t", deltalake.DeltaTable(folder, version=version))
    return _sorted(context.sql("SELECT * FROM t").to_pylist())


READERS: dict[str, Callable[[str, int], Rows]] = {
    "deltalake": rows,
    "Polars": by_polars,
    "DataFusion": by_datafusion,
}


def by_duckdb(folder: str, versions: Sequence[int]) -> list[Rows]:
    """The rows of several versions: a process starts for them."""
    if not DUCKDB.exists():
        pytest.skip("needs DuckDB with its extension for Delta, which make installs")
    program = [sys.executable, "-c", _DUCKDB, folder, *map(str, versions)]
    environment = {**os.environ, "PYTHONPATH": str(DUCKDB)}
    done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
    return [_sorted(found) for found in json.loads(done.stdout.splitlines()[-1])]


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def deletion_vector(rows: Sequence[int]) -> dict[str, Any]:
    """An inline deletion vector of a few row positions, as an action has it.

    PROTOCOL.md, "Deletion Vector Format": a magic number, then a bitmap of 64-bit numbers, here
    one 32-bit Roaring bitmap with one container of at most 4,096 numbers.
    """
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16)
    bitmap += b"".join(struct.pack("<H", row) for row in sorted(rows))
    content = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    padded = content + bytes(-len(content) % 4)
    return {
        "storageType": "i",
        "pathOrInlineDv": "".join(map(_z85, struct.iter_unpack(">I", padded))),
        "sizeInBytes": len(content),
        "cardinality": len(rows),
    }


def _z85(word: tuple[int]) -> str:
    (number,) = word
    return "".join(_Z85[number // 85**power % 85] for power in range(4, -1, -1))
