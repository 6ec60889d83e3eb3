"""Other versions of readers, each in a folder of its own below the environment: ``make judges``.

    with Judge("duckdb-1.5") as judge: judge.counts(path, ["x = 1"])

A judge runs in a process of its own, which finds its packages in that folder first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Self

from testing.columns import Column

FOLDER = Path(sys.prefix) / "judges"
#: Judge -> the package that is installed for it; one without a version is that of the environment.
JUDGES = {
    "duckdb-1.4": "duckdb==1.4.*",
    "duckdb-1.5": "duckdb==1.5.*",
    "duckdb": None,
    "datafusion-54": "datafusion==54.*",
    "datafusion": None,
    "deltalake-1.6.2": "deltalake==1.6.2",
    "deltalake": None,
}
_LOOP = """
import json, sys
for line in sys.stdin:
    path, conditions = json.loads(line)
    try:
        print(json.dumps(counts(path, conditions)), flush=True)
    except Exception as error:
        print(json.dumps(None), flush=True)
"""
_WORKERS = {
    "duckdb": """
import duckdb
database = duckdb.connect()
database.execute("SET TimeZone = 'UTC'")
def counts(path, conditions):
    query = "SELECT count(*) FROM '{}' WHERE {}"
    return [database.execute(query.format(path, it)).fetchall()[0][0] for it in conditions]
""",
    "datafusion": """
import datafusion
def counts(path, conditions):
    context = datafusion.SessionContext()
    context.register_parquet("t", path)
    query = "SELECT count(*) AS n FROM t WHERE {}"
    return [context.sql(query.format(it)).to_pydict()["n"][0] for it in conditions]
""",
    # A deletion counts the rows that it found, and a table is put back to its first version.
    "deltalake": """
import os, shutil, tempfile, deltalake
def counts(path, conditions):
    found = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, folder)
        deltalake.convert_to_deltalake(folder)
        for it in conditions:
            table = deltalake.DeltaTable(folder)
            found.append(table.delete(it)["num_deleted_rows"])
            if found[-1]:
                table.restore(0)
    return found
""",
}
#: DuckDB's names of types -> DataFusion's, or None for a type that it does not have.
_DATAFUSION = {
    "UTINYINT": "TINYINT UNSIGNED",
    "USMALLINT": "SMALLINT UNSIGNED",
    "UINTEGER": "INT UNSIGNED",
    "UBIGINT": "BIGINT UNSIGNED",
    "TIMESTAMPTZ": "TIMESTAMP",
    "TIMESTAMP_NS": "TIMESTAMP",
    "TIMESTAMPTZ_NS": "TIMESTAMP",
    "JSON": "VARCHAR",
}


class Judge:
    """A reader in a process of its own."""

    def __init__(self, name: str) -> None:
        self._kind = name.split("-")[0]
        environment = {**os.environ, "PYTHONPATH": str(FOLDER / name)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORKERS[self._kind] + _LOOP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def counts(self, path: Path, conditions: list[str]) -> list[int] | None:
        """How many rows each condition finds, or None if the file cannot be read or asked so."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(path), conditions]) + "\n")
        self._process.stdin.flush()
        found: list[int] | None = json.loads(self._process.stdout.readline())
        return found

    def condition(self, column: Column, number: int) -> str:
        """The equality of a column with one of its values, in the reader's own SQL."""
        if self._kind == "duckdb":
            return column.lookup.format(column.literal(number))
        text = column.written(number)
        if column.sql == "BLOB":
            return f"x = X'{text.removeprefix('hex:')}'"
        return f"x = CAST('{text}' AS {_DATAFUSION.get(column.sql, column.sql)})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.communicate("")


if __name__ == "__main__":
    for name, package in JUDGES.items():
        if package is not None and not (FOLDER / name).is_dir():
            command = ["-m", "pip", "install", "--quiet", "--no-deps"]
            target = ["--target", str(FOLDER / name), package]
            subprocess.run([sys.executable, *command, *target], check=True)
