"""Iceberg tables of a catalog in SQLite, with deletes as merge-on-read engines write them."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
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
from pyiceberg.partitioning import (
    UNPARTITIONED_PARTITION_SPEC,
    PartitionField,
    PartitionSpec,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSnapshotUpdate,
    SetSnapshotRefUpdate,
)
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.utils.config import Config

from testing.storage import Bucket

NAME = "iceberg://lake/db.people"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "email", StringType(), required=False),
    NestedField(3, "city", StringType(), required=False),
)
BY_CITY = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "city"))


def in_settings(folder: Path, monkeypatch: pytest.MonkeyPatch, **properties: str) -> SqlCatalog:
    """A catalog called ``lake`` that pyiceberg's settings know, on disk if nothing else is said."""
    settings = {
        "uri": f"sqlite:///{folder / 'catalog.db'}",
        "warehouse": (folder / "warehouse").as_uri(),
    } | properties
    in_environment(settings, monkeypatch)
    catalog = SqlCatalog("lake", **settings)
    catalog.create_namespace("db")
    return catalog


def in_environment(settings: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of pyiceberg for the catalog ``lake``, and no other ones."""
    prefix = "PYICEBERG_CATALOG__LAKE__"
    for name in [it for it in os.environ if it.startswith(prefix)]:
        monkeypatch.delenv(name)
    for name, value in settings.items():
        monkeypatch.setenv(prefix + name.upper().replace(".", "__").replace("-", "_"), value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())


def in_store(port: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a catalog says of a new bucket that the environment knows no way into."""
    rights = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION")
    with monkeypatch.context() as patch:
        for name in rights:
            patch.setenv(name, "us-east-1")
        bucket = Bucket(port)
    for name in (*rights, "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    return {
        "warehouse": f"s3://{bucket.name}/lake",
        "s3.endpoint": f"http://127.0.0.1:{port}",
        "s3.region": "us-east-1",
    }


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
    files = (entry.data_file for entry in entries(table))
    return sorted(it.file_path for it in files if it.content == DataFileContent.DATA)


def entries(table: Table) -> list[ManifestEntry]:
    """The live entries of the current snapshot."""
    snapshot = table.refresh().current_snapshot()
    return (
        []
        if snapshot is None
        else [
            entry
            for manifest in snapshot.manifests(table.io)
            for entry in manifest.fetch_manifest_entry(table.io)
        ]
    )


def local(location: str) -> Path:
    # Java writes file:/x, Python file:///x.
    return Path(location.removeprefix("file:"))


class _Deletes(ManifestWriterV2):
    """A manifest of delete files, with the fields of version 3 if ``with_vectors``."""

    with_vectors = False

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}

    def _with_partition(self, format_version: Any) -> Schema:
        return super()._with_partition(3 if self.with_vectors else format_version)


def delete_positions(
    table: Table, data_file: str | dict[str, list[int]], positions: list[int], name: str
) -> None:
    """Commit a position delete file, as a merge-on-read engine does.

    Several data files are given with their own positions; they are of one partition.
    """
    path = f"{table.location()}/data/{name}.parquet"
    by_file = {data_file: positions} if isinstance(data_file, str) else data_file
    named = [(file, at) for file, places in by_file.items() for at in places]
    content = pa.table(
        {
            "file_path": [file for file, _ in named],
            "pos": pa.array([at for _, at in named], pa.int64()),
        }
    )
    pq.write_table(_with_ids(content, {"file_path": 2147483546, "pos": 2147483545}), local(path))
    (like,) = [it for it in entries(table) if it.data_file.file_path == named[0][0]]
    commit_deletes(table, path, DataFileContent.POSITION_DELETES, len(named), like=like.data_file)


def delete_equal(
    table: Table,
    ids: list[int] | pa.Table,
    name: str,
    *,
    like: DataFile | None = None,
    equality_ids: list[int] | None = None,
) -> None:
    """Commit an equality delete file on the column ``id``, or on the columns of ``ids``.

    ``like`` is a data file of the partition; without it all partitions are meant.
    ``equality_ids`` are the columns that count, if there are more.
    """
    path = f"{table.location()}/data/{name}.parquet"
    content = ids if isinstance(ids, pa.Table) else pa.table({"id": pa.array(ids, pa.int64())})
    numbers = {
        column: table.schema().find_field(column).field_id for column in content.schema.names
    }
    pq.write_table(_with_ids(content, numbers), local(path))
    commit_deletes(
        table,
        path,
        DataFileContent.EQUALITY_DELETES,
        content.num_rows,
        like=like,
        equality_ids=equality_ids or [*numbers.values()],
    )


def delete_by_vector(table: Table, data_file: str, positions: list[int], name: str) -> Path:
    """Commit a deletion vector, as writers of version 3 do; the path of its Puffin file."""
    path = f"{table.location()}/data/{name}.puffin"
    blob = framed_vector(positions)
    footer = json.dumps(
        {
            "blobs": [
                {
                    "type": "deletion-vector-v1",
                    "fields": [],
                    "snapshot-id": -1,
                    "sequence-number": -1,
                    "offset": 4,
                    "length": len(blob),
                    "properties": {
                        "referenced-data-file": data_file,
                        "cardinality": str(len(positions)),
                    },
                }
            ]
        }
    ).encode()
    end = struct.pack("<I", len(footer)) + bytes(4) + b"PFA1"
    local(path).write_bytes(b"PFA1" + blob + b"PFA1" + footer + end)
    (like,) = [it for it in entries(table) if it.data_file.file_path == data_file]
    commit_deletes(
        table,
        path,
        DataFileContent.POSITION_DELETES,
        len(positions),
        like=like.data_file,
        file_format=FileFormat.PUFFIN,
        _table_format_version=3,
        referenced_data_file=data_file,
        content_offset=4,
        content_size_in_bytes=len(blob),
    )
    return local(path)


def framed_vector(positions: list[int]) -> bytes:
    """A vector of a few positions below 65,536: Puffin's `deletion-vector-v1`."""
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(positions) - 1, 16)
    bitmap += b"".join(struct.pack("<H", at) for at in sorted(positions))
    data = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def _with_ids(table: pa.Table, ids: dict[str, int]) -> pa.Table:
    fields = [it.with_metadata({"PARQUET:field_id": str(ids[it.name])}) for it in table.schema]
    return table.cast(pa.schema(fields))


def commit_deletes(
    table: Table,
    path: str,
    content: DataFileContent,
    count: int,
    *,
    like: DataFile | None = None,
    **more: Any,
) -> None:
    """Commit a delete file in the partition of a data file; without it in that of no partition."""
    current = table.refresh().current_snapshot()
    assert current is not None
    fields: dict[str, Any] = {
        "content": content,
        "file_path": path,
        "file_format": FileFormat.PARQUET,
        "partition": Record() if like is None else like.partition,
        "record_count": count,
        "file_size_in_bytes": local(path).stat().st_size,
    }
    deletes = DataFile.from_args(**{**fields, **more})
    spec = _global_spec(table) if like is None else table.specs()[like.spec_id]
    deletes.spec_id = spec.spec_id
    snapshot_id = table.metadata.new_snapshot_id()
    entry = ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=deletes
    )
    output = table.io.new_output(f"{table.location()}/metadata/m-{snapshot_id}.avro")
    writer = _Deletes(spec, table.schema(), output, snapshot_id, "gzip")
    writer.with_vectors = len(deletes) > 16
    with writer:
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


def _global_spec(table: Table) -> PartitionSpec:
    """A spec without partitions: deletes of it are of all partitions."""
    found = [spec for spec in table.specs().values() if spec.is_unpartitioned()]
    if found:
        return found[0]
    spec = PartitionSpec(spec_id=max(table.specs()) + 1)
    table.catalog.commit_table(table, (), (AddPartitionSpecUpdate(spec=spec),))
    table.refresh()
    return spec


@contextmanager
def committed_meanwhile(monkeypatch: pytest.MonkeyPatch, change: Any) -> Iterator[None]:
    """Run ``change`` once, right before the first request of a commit."""
    from secure_bloom.lakes.iceberg.commit_table import CommitTable

    asked, left = CommitTable.commit, [change]

    def commit(self: CommitTable, *given: Any) -> None:
        if left:
            left.pop()()
        asked(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(CommitTable, "commit", commit)
        yield
