"""Delta tables to write to: by deltalake, and what its own reader sees in them."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import secure_bloom as sb

deltalake = pytest.importorskip("deltalake", reason="needs the package deltalake")

DAYS = ("2026-11-20", "a b/c", None)


def batch(first: int, rows: int = 6) -> pa.Table:
    ids = list(range(first, first + rows))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "email": [f"user{i}@example.com" for i in ids],
            "day": [DAYS[i % len(DAYS)] for i in ids],
        }
    )


def write_table(
    folder: Path | str, versions: int = 3, *, partitioned: bool = True, **options: Any
) -> str:
    """A table of so many versions, each with six rows more."""
    for version in range(versions):
        deltalake.write_deltalake(
            str(folder),
            batch(6 * version),
            mode="append",
            partition_by=["day"] if partitioned and version == 0 else None,
            **(options if version == 0 else {}),
        )
    return str(folder)


def rows(folder: Path | str, version: int | None = None) -> list[dict[str, Any]]:
    """What deltalake reads at a version."""
    table = deltalake.DeltaTable(str(folder), version=version)
    # Unlike to_pyarrow_table, it knows of deletion vectors.
    found = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t")
    return sorted(pa.table(found.read_all()).to_pylist(), key=lambda row: int(row["id"]))


def actions(folder: Path | str, version: int) -> list[dict[str, Any]]:
    """The lines of a commit."""
    text = (Path(folder) / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def named(folder: Path | str, version: int, name: str) -> list[dict[str, Any]]:
    """The fields of the actions of one name in a commit."""
    return [action[name] for action in actions(folder, version) if name in action]


def latest(folder: Path | str) -> int:
    return int(deltalake.DeltaTable(str(folder)).version())


def data_files(folder: Path | str) -> set[str]:
    """Every file below the table's folder but its log, hidden ones too."""
    found = (path for path in Path(folder).rglob("*") if path.is_file())
    names = {str(path.relative_to(folder)) for path in found}
    return {name for name in names if not name.startswith("_delta_log")}


def unfiltered(folder: Path | str, column: str) -> list[str]:
    """The live files, below the table's folder, in which a row group lacks the column's filter."""
    found = []
    with tempfile.TemporaryDirectory() as apart:
        for uri in deltalake.DeltaTable(str(folder)).file_uris():
            path = Path(uri.removeprefix("file://"))
            copy = shutil.copy(path, Path(apart) / "x.parquet")
            (file,) = sb.probe(copy, column, ["x"]).to_dict()["files"]
            if not all(group["filter"] for group in file["row_groups"]):
                found.append(str(path.relative_to(folder)))
    return found
