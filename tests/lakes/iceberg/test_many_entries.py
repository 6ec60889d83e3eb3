"""A commit to a table of many data files stays within the memory budget."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import (
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
from pyiceberg.types import LongType, NestedField, StringType

from secure_bloom.lakes.avro_blocks import AvroBlocks
from tests.lakes.avro_files import avro, framed, number
from tests.lakes.iceberg.tables import local
from tests.lakes.test_metadata_bombs import schema_of

#: In the path and in the bounds of an entry; each entry has its own number there.
NUMBER, EACH, BLOCK = "00000000", 50_000, 100

PROGRAM = """
import re, sys
from pathlib import Path
import secure_bloom as sb
where = "c0 = '00000000'"
report = sb.add_bloom_filters("iceberg://lake/db.t", columns=["c0"], where=where, jobs=1)
print([file.status for file in report.files], len(report.commits))
print(int(re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1]) >> 10)
"""


def deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def manifest(path: Path, schema: bytes, entry: bytes, numbers: range) -> None:
    """Entries that differ in their number, in blocks as large as writers make them."""
    with path.open("wb") as file:
        for start in numbers[::BLOCK]:
            block = range(start, min(start + BLOCK, numbers.stop))
            content = deflated(b"".join(entry.replace(NUMBER.encode(), b"%08d" % n) for n in block))
            if start == numbers.start:
                file.write(avro(schema, "deflate", len(block), content))
            else:
                file.write(number(len(block)) + framed(content) + bytes(16))


def with_entries(catalog: SqlCatalog, count: int) -> Table:
    """A table of 20 columns with this number of entries, of which the first names a file."""
    fields = [
        NestedField(n + 1, f"c{n}", LongType() if n % 2 else StringType(), required=False)
        for n in range(20)
    ]
    table = catalog.create_table("db.t", schema=Schema(*fields))
    columns = {f"c{n}": [n] * 3 if n % 2 else [NUMBER] * 3 for n in range(20)}
    table.append(pa.table(columns).cast(table.schema().as_arrow()))
    head = table.current_snapshot()
    assert head is not None
    (only,) = head.manifests(table.io)
    (entry,) = only.fetch_manifest_entry(table.io)
    path = f"{table.location()}/data/{NUMBER}.parquet"
    local(entry.data_file.file_path).rename(local(path))
    entry.data_file[1] = path
    folder, snapshot_id, sequence = f"{table.location()}/metadata", 77, head.sequence_number + 1
    one = table.io.new_output(f"{folder}/one.avro")
    with write_manifest(2, table.spec(), table.schema(), one, snapshot_id, "null") as writer:
        added = ManifestEntryStatus.ADDED
        writer.add_entry(ManifestEntry.from_args(status=added, data_file=entry.data_file))
    like = local(f"{folder}/one.avro")
    ((_, content),) = AvroBlocks(io.BytesIO(like.read_bytes()), lambda _: None)
    manifests = []
    for start in range(0, count, EACH):
        numbers, place = range(start, min(start + EACH, count)), f"{folder}/m{start}.avro"
        manifest(local(place), schema_of(like), bytes(content), numbers)
        manifests.append(
            ManifestFile.from_args(
                manifest_path=place,
                manifest_length=local(place).stat().st_size,
                partition_spec_id=0,
                content=only.content,
                sequence_number=sequence,
                min_sequence_number=sequence,
                added_snapshot_id=snapshot_id,
                added_files_count=len(numbers),
                existing_files_count=0,
                deleted_files_count=0,
                added_rows_count=3,
                existing_rows_count=0,
                deleted_rows_count=0,
                partitions=[],
            )
        )
    listed = table.io.new_output(f"{folder}/list.avro")
    with write_manifest_list(2, listed, snapshot_id, head.snapshot_id, sequence, "deflate") as it:
        it.add_manifests(manifests)
    snapshot = {
        "snapshot-id": snapshot_id,
        "parent-snapshot-id": head.snapshot_id,
        "sequence-number": sequence,
        "timestamp-ms": head.timestamp_ms + 1,
        "manifest-list": f"{folder}/list.avro",
        "summary": Summary(Operation.APPEND),
        "schema-id": 0,
    }
    branch = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}
    updates = AddSnapshotUpdate(snapshot=Snapshot(**snapshot)), SetSnapshotRefUpdate(**branch)
    catalog.commit_table(table, (), updates)
    return table.refresh()


@pytest.mark.slow
@pytest.mark.parametrize(("count", "most_mib"), [(2_000, 400), (500_000, 1_024)])
def test_a_commit_keeps_the_entries_of_all_files(
    catalog: SqlCatalog, count: int, most_mib: int
) -> None:
    table = with_entries(catalog, count)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=os.environ
    )
    *said, peak = done.stdout.splitlines()
    assert said == ["['added'] 1"]
    assert int(peak) < most_mib
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    entries = [it for m in snapshot.manifests(table.io) for it in m.fetch_manifest_entry(table.io)]
    assert len({it.data_file.file_path for it in entries}) == count
