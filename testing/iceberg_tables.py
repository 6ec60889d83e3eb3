"""Iceberg tables for tests, written by pyiceberg with a catalog in memory."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import StringType

DAYS = [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]


def iceberg(folder: Path) -> Table:
    """A table by day, whose column `s` is called `text` since, with a row deleted by a rewrite."""
    catalog = InMemoryCatalog("tests", warehouse=str(folder))
    catalog.create_namespace("db")
    kind = pa.struct({"a": pa.int32()})
    schema = pa.schema({"id": pa.int64(), "day": pa.date32(), "s": pa.string(), "st": kind})
    table = catalog.create_table("db.t", schema=schema)
    with table.update_spec() as update:
        update.add_field("day", IdentityTransform(), "part")
    for start, day in enumerate(DAYS):
        rows = [{"id": 3 * start + i, "day": day, "s": f"u{i}", "st": {"a": i}} for i in range(3)]
        table.append(pa.Table.from_pylist(rows, schema))
    table.delete("id = 1")
    with table.update_schema() as update:
        update.rename_column("s", "text")
        update.add_column("new", StringType())
    return table


def with_delete_file(table: Table) -> Table:
    """The table with a snapshot that has a delete file, as merge-on-read writers make."""
    current, io = table.metadata.current_snapshot(), table.io
    assert current is not None
    folder = f"{table.location()}/metadata"
    data = next(iter(table.scan().plan_files())).file
    deletes = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"{table.location()}/data/deletes.parquet",
        file_format=FileFormat.PARQUET,
        partition=data.partition,
        record_count=1,
        file_size_in_bytes=1,
    )
    deletes.spec_id = data.spec_id
    spec, snapshot_id = table.specs()[data.spec_id], 77

    class Deletes(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    entry = ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=deletes
    )
    output = io.new_output(f"{folder}/deletes.avro")
    with Deletes(spec, table.schema(), output, snapshot_id, "deflate") as writer:
        writer.add_entry(entry)
    listed = f"{folder}/with-deletes.avro"
    number = current.sequence_number + 1
    with write_manifest_list(
        2, io.new_output(listed), snapshot_id, current.snapshot_id, number, "deflate"
    ) as manifests:
        manifests.add_manifests([*current.manifests(io), writer.to_manifest_file()])
    told: dict[str, Any] = {
        "snapshot-id": snapshot_id,
        "parent-snapshot-id": current.snapshot_id,
        "sequence-number": number,
        "timestamp-ms": current.timestamp_ms + 1,
        "manifest-list": listed,
        "summary": Summary(Operation.DELETE),
        "schema-id": table.schema().schema_id,
    }
    name: dict[str, Any] = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}
    updates = AddSnapshotUpdate(snapshot=Snapshot(**told)), SetSnapshotRefUpdate(**name)
    table.catalog.commit_table(table, (), updates)
    return table.refresh()
