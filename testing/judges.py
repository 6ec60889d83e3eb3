"""Other readers and other versions of readers, each in a folder of its own: ``make judges``.

    with Judge("duckdb-1.5") as judge: judge.ask(file, numbers)

A judge runs in a process of its own, which finds its packages in that folder first.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple, Self

from packaging.requirements import Requirement

from testing.columns import Column
from testing.project import ROOT
from testing.typed_files import TypedFile

FOLDER = Path(sys.prefix) / "judges"
#: Judge -> the packages that are installed for it.
JUDGES = {
    "clickhouse": ("chdb", "chdb-core"),
    "daft": ("daft",),
    "datafusion-54": ("datafusion==54.*",),
    "datafusion-55": ("datafusion==55.*",),
    "deltalake-1.6.2": ("deltalake==1.6.2",),
    "deltalake": ("deltalake",),
    "duckdb-1.4": ("duckdb==1.4.*",),
    "duckdb-1.5": ("duckdb==1.5.*",),
    "duckdb-2.0": ("duckdb==2.0.*",),
    "hyparquet": ("hyparquet", "hyparquet-compressors"),
}


class Kind(NamedTuple):
    """A reader: how the page calls it, the distribution that has its version, and its process."""

    title: str
    distribution: str
    worker: str


#: A worker's ``rows(path)`` gives the text of all rows, ``count(path, condition)`` how many match.
_LOOP = """
import json, sys
def attempt(ask, *arguments):
    try:
        return ask(*arguments)
    except BaseException as error:
        return None
for line in sys.stdin:
    path, conditions = json.loads(line)
    found = attempt(rows, path)
    counts = attempt(lambda: [count(path, it) for it in conditions])
    print(json.dumps([found and sorted(found), counts]), flush=True)
"""
_DUCKDB = """
import duckdb
database = duckdb.connect()
database.execute("SET TimeZone = 'UTC'")
def ask(query):
    return [row[0] for row in database.execute(query).fetchall()]
def rows(path):
    return list(map(str, ask(f"SELECT x::VARCHAR FROM '{path}'")))
def count(path, condition):
    return ask(f"SELECT count(*) FROM '{path}' WHERE {condition}")[0]
"""
#: Python's times have no nanoseconds: rows are compared by the stored numbers.
_TEXTS = """
import pyarrow as pa
def texts(column):
    of = column.type
    if pa.types.is_timestamp(of) or pa.types.is_time64(of):
        column = column.cast(pa.int64())
    return list(map(repr, column.to_pylist()))
"""
_DATAFUSION = f"""{_TEXTS}
import datafusion
def ask(path, query):
    context = datafusion.SessionContext()
    context.register_parquet("t", path)
    return context.sql(query).to_arrow_table()["x"]
def rows(path):
    return texts(ask(path, "SELECT x FROM t"))
def count(path, condition):
    return ask(path, f"SELECT count(*) AS x FROM t WHERE {{condition}}")[0].as_py()
"""
#: A deletion counts the rows that it found, and the table is put back to its first version.  A
#: condition that deletions do not take is asked by a query.
_DELTALAKE = f"""{_TEXTS}
import os, shutil, tempfile, deltalake
folder = tempfile.TemporaryDirectory()
known = dict()
def table(path):
    version = (path, os.path.getsize(path), os.path.getmtime(path))
    if known.get("version") != version:
        known.update(version=version, folder=tempfile.mkdtemp(dir=folder.name))
        shutil.copy(path, known["folder"])
        deltalake.convert_to_deltalake(known["folder"])
    return deltalake.DeltaTable(known["folder"])
def query(path, text):
    return pa.table(deltalake.QueryBuilder().register("t", table(path)).execute(text))["x"]
def rows(path):
    return texts(query(path, "SELECT x FROM t"))
def count(path, condition):
    try:
        found = table(path).delete(condition)["num_deleted_rows"]
    except Exception:
        return query(path, f"SELECT count(*) AS x FROM t WHERE {{condition}}")[0].as_py()
    if found:
        table(path).restore(0)
    return found
"""
#: Without the option it looks into a dictionary before it looks into a filter.
_CLICKHOUSE = """
from chdb.session import Session
session = Session()
session.query("SET input_format_parquet_dictionary_filter_push_down = 0")
def ask(query):
    return session.query(query, "JSONCompactEachRow").data().splitlines()
def rows(path):
    return ask(f"SELECT hex(toString(x)) FROM file('{path}', Parquet)")
def count(path, condition):
    (found,) = ask(f"SELECT count() FROM file('{path}', Parquet) WHERE {condition}")
    return int(json.loads(found)[0])
"""
#: Every value is one that Daft read: it has no literals of all types.
_DAFT = """
import daft, os
os.environ["DAFT_PROGRESS_BAR"] = "0"
def values(path):
    return daft.read_parquet(path).to_pydict()["x"]
def rows(path):
    return list(map(repr, values(path)))
def count(path, condition):
    present = [it for it in values(path) if it is not None]
    value = present[int(condition) % len(present)]
    table = daft.read_parquet(path)
    literal = daft.lit(value).cast(table.schema()["x"].dtype)
    return table.where(daft.col("x") == literal).count_rows()
"""
KINDS = {
    "clickhouse": Kind("ClickHouse", "chdb-core", _CLICKHOUSE),
    "daft": Kind("Daft", "daft", _DAFT),
    "datafusion": Kind("DataFusion", "datafusion", _DATAFUSION),
    "deltalake": Kind("deltalake", "deltalake", _DELTALAKE),
    "duckdb": Kind("DuckDB", "duckdb", _DUCKDB),
    "hyparquet": Kind("hyparquet", "hyparquet", "hyparquet_worker.mjs"),
}
#: DuckDB's names of types -> those of another reader.
_DATAFUSION_TYPES = {
    "UTINYINT": "TINYINT UNSIGNED",
    "USMALLINT": "SMALLINT UNSIGNED",
    "UINTEGER": "INT UNSIGNED",
    "UBIGINT": "BIGINT UNSIGNED",
    "TIMESTAMPTZ": "TIMESTAMP",
    "TIMESTAMP_NS": "TIMESTAMP",
    "TIMESTAMPTZ_NS": "TIMESTAMP",
    "JSON": "VARCHAR",
}
_CLICKHOUSE_TYPES = {
    "TINYINT": "Int8",
    "SMALLINT": "Int16",
    "INTEGER": "Int32",
    "BIGINT": "Int64",
    "UTINYINT": "UInt8",
    "USMALLINT": "UInt16",
    "UINTEGER": "UInt32",
    "UBIGINT": "UInt64",
    "FLOAT": "Float32",
    "DOUBLE": "Float64",
    "VARCHAR": "String",
    "JSON": "String",
    "DATE": "Date32",
    "TIME": "Time64(6)",
    "TIMETZ": "Time64(6)",
    "TIME_NS": "Time64(9)",
    "TIMESTAMP": "DateTime64(6, 'UTC')",
    "TIMESTAMP_NS": "DateTime64(9, 'UTC')",
    "TIMESTAMPTZ": "DateTime64(6, 'UTC')",
    "TIMESTAMPTZ_NS": "DateTime64(9, 'UTC')",
}
#: DuckDB's conditions on nested columns -> ClickHouse's.
_CLICKHOUSE_LOOKUPS = {
    "list_contains(x, {})": "has(x, {})",
    "list_contains(map_values(x), {})": "has(mapValues(x), {})",
    "list_contains(list_transform(x.a, lambda y: y.b), {})": "has(x.a.b, {})",
    "map_contains(x, {})": "mapContains(x, {})",
}


class Answer(NamedTuple):
    """What a judge found: the text of each row, and how many rows each lookup found.

    None is for a file that cannot be read, and for a column that cannot be looked up.
    """

    rows: list[str] | None
    counts: list[int] | None


class Judge:
    """A reader in a process of its own."""

    def __init__(self, name: str, **environment: str) -> None:
        self.name = name
        self.kind = _kind(name)
        folder = FOLDER / name if is_installed(name) else ""
        self._process = subprocess.Popen(
            self._command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **environment, "PYTHONPATH": str(folder)},
        )

    def _command(self) -> list[str]:
        if self.kind.worker.endswith(".mjs"):
            # Packages are looked for beside the module that imports them.
            worker = shutil.copy(ROOT / "testing" / self.kind.worker, FOLDER / self.name)
            return ["node", str(worker)]
        return [sys.executable, "-c", self.kind.worker + _LOOP]

    @property
    def version(self) -> str:
        """The version of the reader."""
        found = _installed_version(self.name) or _environment_version(self.name)
        assert found is not None
        return found

    def ask(self, file: TypedFile, numbers: list[int]) -> Answer:
        """Return all rows, and how many equal each of the column's values with these numbers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        conditions = [self.condition(file.column, number) for number in numbers]
        self._process.stdin.write(json.dumps([str(file.path), conditions]) + "\n")
        self._process.stdin.flush()
        return Answer(*json.loads(self._process.stdout.readline()))

    def condition(self, column: Column, number: int) -> str:
        """The equality of a column with one of its values, in the reader's own words."""
        return _CONDITIONS[self.kind.title](column, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.communicate("")


def _by_duckdb(column: Column, number: int) -> str:
    return column.lookup.format(column.literal(number))


def _by_datafusion(column: Column, number: int) -> str:
    if column.sql == "UUID":
        return f"x = X'{column.stored(number).hex()}'"
    if column.sql.startswith("TIME") and "time" in column.logical.split():
        kind, unit = str(column.arrow).rstrip("]").split("[")
        words = {"ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
        return f"x = arrow_cast('{column.written(number)}', '{kind.title()}({words[unit]})')"
    return _equality(column, number, _DATAFUSION_TYPES, "X'{}'")


def _by_clickhouse(column: Column, number: int) -> str:
    return _equality(column, number, _CLICKHOUSE_TYPES, "unhex('{}')", _CLICKHOUSE_LOOKUPS)


def _equality(
    column: Column,
    number: int,
    types: Mapping[str, str],
    binary: str,
    lookups: Mapping[str, str] | None = None,
) -> str:
    text = column.written(number)
    value = f"CAST('{text}' AS {types.get(column.sql, column.sql)})"
    if column.sql == "BLOB":
        value = binary.format(text.removeprefix("hex:"))
    lookup = column.lookup if lookups is None else lookups.get(column.lookup, column.lookup)
    return lookup.format(value)


def _by_place(_column: Column, number: int) -> str:
    """The place of a row, whose value the reader takes from the rows that it reads."""
    return str(number)


_CONDITIONS = {
    "ClickHouse": _by_clickhouse,
    "Daft": _by_place,
    "DataFusion": _by_datafusion,
    "deltalake": _by_datafusion,
    "DuckDB": _by_duckdb,
    "hyparquet": _by_place,
}


def is_there(name: str) -> bool:
    """Return whether the reader was installed apart, or is the environment's own version."""
    return is_installed(name) or _environment_version(name) is not None


def is_installed(name: str) -> bool:
    """Return whether ``make judges`` has installed the reader into its folder."""
    return (FOLDER / name / ".installed").exists()


def _installed_version(name: str) -> str | None:
    distribution = _kind(name).distribution
    package = FOLDER / name / "node_modules" / distribution / "package.json"
    if package.exists():
        return str(json.loads(package.read_text())["version"])
    return _version_in([str(FOLDER / name)], distribution)


def _environment_version(name: str) -> str | None:
    """Return the version of the environment, if it is one that the judge may have."""
    wanted = Requirement(JUDGES[name][0])
    found = _version_in(sys.path, wanted.name)
    return found if found is not None and found in wanted.specifier else None


def _version_in(path: list[str], distribution: str) -> str | None:
    of = {re.sub(r"[-_.]+", "-", it.name).lower(): it.version for it in distributions(path=path)}
    return of.get(distribution)


def _kind(name: str) -> Kind:
    return KINDS[name.split("-")[0]]


def install(name: str) -> None:
    """Install a reader into its folder; its parts come at once, since they share folders."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if _kind(name).worker.endswith(".mjs"):
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        command = ["npm", "install", *options, "--prefix", str(folder), *JUDGES[name]]
    else:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command = [*pip, "--target", str(folder), *JUDGES[name]]
    subprocess.run(command, check=True)
    (folder / ".installed").touch()


if __name__ == "__main__":
    for judge in JUDGES:
        if not is_installed(judge):
            install(judge)
