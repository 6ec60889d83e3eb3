"""Iceberg tables of a catalog in SQLite, with deletes as merge-on-read engines write them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
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
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.utils.config import Config

NAME = "iceberg://lake/db.people"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "email", StringType(), required=False),
    NestedField(3, "city", StringType(), required=False),
)


def in_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> SqlCatalog:
    """A catalog called ``lake`` that pyiceberg's settings know."""
    uri, warehouse = f"sqlite:///{folder / 'catalog.db'}", (folder / "warehouse").as_uri()
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", uri)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", warehouse)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    catalog = SqlCatalog("lake", uri=uri, warehouse=warehouse)
    catalog.create_namespace("db")
    return catalog


def people(
    catalog: SqlCatalog,
    *,
    spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
    version: int = 2,
    files: int = 3,
    **properties: str,
) -> Table:
    """A table of ``files`` appends with 100 rows each."""
    table = catalog.create_table(
        "db.people",
        SCHEMA,
        partition_spec=spec,
        properties={"format-version": str(version), **properties},
    )
    for number in range(files):
        table.append(rows(100 * number))
    return table


def rows(start: int, count: int = 100) -> pa.Table:
    """Rows with the ids from ``start`` on."""
    ids = range(start, start + count)
    columns = {
        "id": list(ids),
        "email": [f"user{i}@example.org" for i in ids],
        "city": [f"city{i % 3}" for i in ids],
    }
    return pa.table(columns)


def all_rows(table: Table, snapshot_id: int | None = None) -> list[dict[str, Any]]:
    """The rows as pyiceberg reads them, in the order of their ids."""
    return sorted(
        table.refresh().scan(snapshot_id=snapshot_id).to_arrow().to_pylist(),
        key=lambda it: it["id"],
    )


def data_files(table: Table) -> list[str]:
    """The live data files, as the manifests name them."""
    return sorted(task.file.file_path for task in table.refresh().scan().plan_files())


def entries(table: Table) -> list[ManifestEntry]:
    """The live entries of the current snapshot."""
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return [
        entry
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    ]


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


class _Deletes(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def delete_positions(table: Table, data_file: str, positions: list[int], name: str) -> None:
    """Commit a position delete file, as a merge-on-read engine does."""
    path = f"{table.location()}/data/{name}.parquet"
    content = pa.table(
        {"file_path": [data_file] * len(positions), "pos": pa.array(positions, pa.int64())}
    )
    pq.write_table(_with_ids(content, {"file_path": 2147483546, "pos": 2147483545}), local(path))
    _commit_deletes(table, path, DataFileContent.POSITION_DELETES, len(positions))


def delete_equal(table: Table, ids: list[int], name: str) -> None:
    """Commit an equality delete file on the column ``id``."""
    path = f"{table.location()}/data/{name}.parquet"
    pq.write_table(_with_ids(pa.table({"id": pa.array(ids, pa.int64())}), {"id": 1}), local(path))
    _commit_deletes(table, path, DataFileContent.EQUALITY_DELETES, len(ids), equality_ids=[1])


def _with_ids(table: pa.Table, ids: dict[str, int]) -> pa.Table:
    fields = [it.with_metadata({"PARQUET:field_id": str(ids[it.name])}) for it in table.schema]
    return table.cast(pa.schema(fields))


def _commit_deletes(
    table: Table, path: str, content: DataFileContent, count: int, **more: Any
) -> None:
    current = table.refresh().current_snapshot()
    assert current is not None
    deletes = DataFile.from_args(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=entries(table)[0].data_file.partition,
        record_count=count,
        file_size_in_bytes=local(path).stat().st_size,
        **more,
    )
    deletes.spec_id = table.spec().spec_id
    snapshot_id = table.metadata.new_snapshot_id()
    entry = ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=deletes
    )
    output = table.io.new_output(f"{table.location()}/metadata/m-{snapshot_id}.avro")
    with _Deletes(table.spec(), table.schema(), output, snapshot_id, "gzip") as writer:
        writer.add_entry(entry)
    listed = f"{table.location()}/metadata/snap-{snapshot_id}.avro"
    number = table.metadata.next_sequence_number()
    with write_manifest_list(
        2, table.io.new_output(listed), snapshot_id, current.snapshot_id, number, "gzip"
    ) as manifests:
        manifests.add_manifests([*current.manifests(table.io), writer.to_manifest_file()])
    snapshot = Snapshot(
        **{
            "snapshot-id": snapshot_id,
            "parent-snapshot-id": current.snapshot_id,
            "sequence-number": number,
            "timestamp-ms": current.timestamp_ms + 1,
            "manifest-list": listed,
            "summary": Summary(Operation.DELETE),
            "schema-id": table.schema().schema_id,
        }
    )
    reference: Any = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}
    table.catalog.commit_table(
        table, (), (AddSnapshotUpdate(snapshot=snapshot), SetSnapshotRefUpdate(**reference))
    )
    table.refresh()


@contextmanager
def committed_meanwhile(monkeypatch: pytest.MonkeyPatch, change: Any) -> Iterator[None]:
    """Run ``change`` once, right before the first request of a commit."""
    from secure_bloom.iceberg.catalog import CommitTable

    asked, left = CommitTable.commit, [change]

    def commit(self: CommitTable, *given: Any) -> None:
        if left:
            left.pop()()
        asked(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(CommitTable, "commit", commit)
        yield
