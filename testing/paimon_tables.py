"""Tables that ``pypaimon-rust`` writes, and its answers to queries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Warehouse:
    """A warehouse of Paimon tables. Each statement has a session of its own, which caches nothing.

    ``options`` are those of its catalog: ``warehouse``, and the settings of a store.
    """

    path: str
    options: Mapping[str, str] = field(default_factory=dict)

    def sql(self, statement: str) -> list[dict[str, Any]]:
        """Return the rows of a statement."""
        from pypaimon_rust.datafusion import SQLContext

        context = SQLContext()
        context.register_catalog("paimon", {"warehouse": self.path, **self.options})
        context.set_current_catalog("paimon")
        context.set_current_database("default")
        return [row for batch in context.sql(statement) for row in batch.to_pylist()]

    def table(self, name: str = "t") -> Any:
        """Return a table of the catalog."""
        from pypaimon_rust.datafusion import PaimonCatalog

        return PaimonCatalog({"warehouse": self.path, **self.options}).get_table(f"default.{name}")

    def folder(self, name: str = "t") -> str:
        """Return the folder of a table."""
        return f"{self.path}/default.db/{name}"

    def create(
        self, columns: str, *, name: str = "t", partitioned: str = "", **options: str
    ) -> str:
        """Create a table of Parquet files. Return its folder."""
        given = {"file.format": "parquet", **{_dashed(k): v for k, v in options.items()}}
        listed = ", ".join(f"'{key}'='{value}'" for key, value in given.items())
        partitions = f"partitioned by ({partitioned})" if partitioned else ""
        self.sql(f"create table {name} ({columns}) {partitions} with ({listed})")
        return self.folder(name)

    def insert(self, rows: Sequence[Sequence[object]], *, name: str = "t") -> None:
        """Insert rows. Each call makes a snapshot, with at least one data file."""
        values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
        self.sql(f"insert into {name} values {values}")

    def rows(self, where: str = "", *, name: str = "t") -> list[dict[str, Any]]:
        """Return the rows of a table that satisfy a condition, in a fixed order."""
        found = self.sql(f"select * from {name}" + (f" where {where}" if where else ""))
        return sorted(found, key=str)


def _dashed(name: str) -> str:
    # file_index__read_enabled -> file-index.read-enabled would be ambiguous, so dots are given.
    return name.replace("__", ".").replace("_", "-")


def _literal(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return value if value.startswith("date '") else f"'{value}'"
    return str(value)


def latest(folder: str) -> dict[str, Any]:
    """Return the document of a table's latest snapshot, by the largest number."""
    path = max(
        Path(folder, "snapshot").glob("snapshot-*"), key=lambda it: int(it.name.split("-")[1])
    )
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def files_below(folder: str) -> dict[str, bytes]:
    """Return the content of each file of a table, by its path in the table's folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def damage(path: str) -> None:
    """Overwrite a data file, so that no reader can read a row of it."""
    file = Path(path)
    file.write_bytes(bytes(file.stat().st_size))


def delete_rows(folder: str, path: str, positions: Sequence[int]) -> None:
    """Delete rows of a data file by a deletion vector, as Paimon does, in a snapshot of its own.

    pypaimon-rust reads deletion vectors and writes none for such tables.
    """
    import io
    import uuid
    import zlib

    import fastavro
    import pyroaring

    body = (1581511376).to_bytes(4, "big") + pyroaring.BitMap(positions).serialize()
    framed = len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    name, manifest = f"index-{uuid.uuid4()}-0", f"index-manifest-{uuid.uuid4()}-0"
    Path(folder, "index").mkdir(exist_ok=True)
    Path(folder, "index", name).write_bytes(b"\x01" + framed)
    record = {
        "_VERSION": 1,
        "_KIND": 0,
        "_PARTITION": bytes(12),
        "_BUCKET": 0,
        "_INDEX_TYPE": "DELETION_VECTORS",
        "_FILE_NAME": name,
        "_FILE_SIZE": 1 + len(framed),
        "_ROW_COUNT": 1,
        "_DELETIONS_VECTORS_RANGES": [
            {"f0": Path(path).name, "f1": 1, "f2": len(body), "_CARDINALITY": len(positions)}
        ],
    }
    content = io.BytesIO()
    fastavro.writer(content, _INDEX_MANIFEST, [record])
    Path(folder, "manifest", manifest).write_bytes(content.getvalue())
    before = latest(folder)
    document = before | {
        "id": before["id"] + 1,
        "indexManifest": manifest,
        "commitKind": "OVERWRITE",
        "totalRecordCount": before["totalRecordCount"] - len(positions),
        "deltaRecordCount": -len(positions),
    }
    Path(folder, "snapshot", f"snapshot-{document['id']}").write_text(json.dumps(document))
    Path(folder, "snapshot/LATEST").write_text(str(document["id"]))


_RANGE = {
    "type": "record",
    "name": "range",
    "fields": [
        {"name": "f0", "type": "string"},
        {"name": "f1", "type": "int"},
        {"name": "f2", "type": "int"},
        {"name": "_CARDINALITY", "type": ["null", "long"], "default": None},
    ],
}
_INDEX_MANIFEST = {
    "type": "record",
    "name": "entry",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_INDEX_TYPE", "type": "string"},
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_ROW_COUNT", "type": "long"},
        {
            "name": "_DELETIONS_VECTORS_RANGES",
            "type": ["null", {"type": "array", "items": _RANGE}],
            "default": None,
        },
    ],
}
