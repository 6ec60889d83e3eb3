"""Files of Iceberg's metadata are read through this package's storage, and only read."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import json
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

import secure_bloom as sb
from secure_bloom.errors import FileChangedError, FormatError, UnsupportedFeatureError
from secure_bloom.lakes.iceberg import table as iceberg_reader
from secure_bloom.lakes.iceberg.live_files import Manifests
from secure_bloom.lakes.iceberg.metadata_files import (
    CatalogFiles,
    CheckedFiles,
    StoredFiles,
    manifest_entries,
)
from secure_bloom.lakes.iceberg.metadata_files import check_decoded_size as counted
from secure_bloom.running.memory_budget import VARIABLE, DecodedBytes, MemoryBudgetError
from testing.iceberg_tables import iceberg, with_delete_file
from testing.storage import Bucket
from tests.lakes.avro_files import avro


def test_a_table_that_is_read_is_not_written(tmp_path: Path) -> None:
    files = StoredFiles(str)
    path = tmp_path / "x.avro"
    path.write_bytes(b"abc")
    found = files.new_input(str(path))
    assert (len(found), found.open().read()) == (3, b"abc")
    for call in (files.new_output, files.delete):
        with pytest.raises(UnsupportedFeatureError, match="is not written"):
            call(str(path))
    assert path.exists()


def test_manifests_of_deletes_and_of_data(tmp_path: Path) -> None:
    table = with_delete_file(iceberg(tmp_path))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    files = StoredFiles(lambda location: location.removeprefix("file://"))
    manifests = snapshot.manifests(table.io)
    live = [entry for manifest in manifests for entry in manifest_entries(manifest, files)]
    every = [
        entry
        for manifest in manifests
        for entry in manifest_entries(manifest, files, with_deleted=True)
    ]
    # A rewrite left an entry of the file that it replaced.
    assert (len(live), len(every)) == (3, 4)


def test_a_file_of_a_catalog_s_table_in_a_store(bucket: Bucket) -> None:
    files, uri = CatalogFiles({"a": "b"}, None), bucket.uri("metadata/x.avro")
    assert files.properties == {"a": "b"}
    written = files.new_output(uri)
    with written.create() as stream:
        stream.write(b"abc")
    assert (len(written), written.to_input_file().open().read()) == (3, b"abc")
    with pytest.raises(FileChangedError, match="is there already"), written.create() as stream:
        stream.write(b"other")
    ended = written.create(overwrite=True)
    ended.write(b"a part")
    ended.__exit__(KeyboardInterrupt, None, None)
    assert files.new_input(uri).open().read() == b"abc"
    files.delete(uri)
    assert "metadata/x.avro" not in bucket.objects()


SCHEMA = json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]})


def check_decoded_size(data: bytes) -> None:
    counted(data, DecodedBytes("the metadata"))


def _deflated(text: bytes) -> bytes:
    one = zlib.compressobj(9, zlib.DEFLATED, -15)
    return one.compress(text) + one.flush()


PACK: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": _deflated,
    "zstandard": lambda text: pa.Codec("zstd").compress(text).to_pybytes(),
    "bzip2": bz2.compress,
    "snappy": lambda text: (
        pa.Codec("snappy").compress(text).to_pybytes() + zlib.crc32(text).to_bytes(4, "big")
    ),
}


@pytest.mark.parametrize("codec", list(PACK))
def test_blocks_count_unpacked(monkeypatch: pytest.MonkeyPatch, codec: str) -> None:
    monkeypatch.setenv(VARIABLE, "16MiB")
    check_decoded_size(avro(SCHEMA.encode(), codec, 100, PACK[codec](bytes(100_000))))
    for records, size in ((1, 2_000_000), (20_000, 100_000)):
        with pytest.raises(MemoryBudgetError, match="metadata takes"):
            check_decoded_size(avro(SCHEMA.encode(), codec, records, PACK[codec](bytes(size))))


def test_packed_json_counts_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "16MiB")
    small, large = b'{"a":[0]}', b'{"a":[' + b"0," * 200_000 + b"0]}"
    for packed in (gzip.compress(small), small, gzip.compress(small) * 2):
        check_decoded_size(packed)
    for packed in (gzip.compress(large), large, gzip.compress(b" ") + gzip.compress(large)):
        with pytest.raises(MemoryBudgetError):
            check_decoded_size(packed)


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "fixed", "name": "f", "size": 0},
        {"type": "record", "name": "n", "fields": [{"name": "x", "type": "null"}]},
        {"type": {"type": "null"}},
        "an.earlier.name",
    ],
)
def test_items_that_take_no_byte_are_refused(items: Any) -> None:
    kind = {"type": "array", "items": items}
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}
    with pytest.raises((FormatError, UnsupportedFeatureError), match=r"take no byte|not read"):
        check_decoded_size(avro(json.dumps(schema).encode(), "null", 1, b"\2\0"))


def test_damage_is_an_error() -> None:
    good = avro(SCHEMA.encode(), "null", 1, b"\2")
    check_decoded_size(good)
    for size in range(4, len(good)):
        # A header alone is an empty file.
        try:
            check_decoded_size(good[:size])
        except FormatError:
            continue
    with pytest.raises(UnsupportedFeatureError, match="compressed with 'lzo'"):
        check_decoded_size(avro(SCHEMA.encode(), "lzo", 1, b"\2"))
    with pytest.raises(FormatError, match="cannot be unpacked"):
        check_decoded_size(avro(SCHEMA.encode(), "deflate", 1, b"\xff\xff"))
    with pytest.raises(FormatError, match="records in"):
        check_decoded_size(avro(SCHEMA.encode(), "null", 5, b"\2"))


def test_items_of_a_byte_count_as_the_objects_that_they_become(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "16MiB")
    fields = [{"name": n, "type": ["null", "bytes"]} for n in "abc"]
    item = {"type": "record", "name": "i", "fields": fields}
    for kind, is_read in ({"type": "array", "items": item}, False), ("bytes", True):
        schema = {"type": "record", "name": "r", "fields": [{"name": "l", "type": kind}]}
        data = avro(json.dumps(schema).encode(), "null", 1, bytes(500_000))
        with nullcontext() if is_read else pytest.raises(MemoryBudgetError):
            check_decoded_size(data)


def test_a_run_counts_all_manifests_together_and_a_read_what_it_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = iceberg(tmp_path / "warehouse")
    days = [dt.date(2026, 3, 1) + dt.timedelta(day) for day in range(30)]
    for _ in range(2):
        table.append(pa.table({"id": range(30), "day": days}))
    snapshot = table.current_snapshot()
    manifests = [it.manifest_path for it in snapshot.manifests(table.io)]
    names = [table.metadata_location, snapshot.manifest_list, *manifests]
    sizes = []
    for name in names:
        decoded = DecodedBytes("it")
        counted(Path(name.removeprefix("file://")).read_bytes(), decoded)
        sizes.append(decoded._size)
    kept = Manifests(CheckedFiles(table.io))
    assert len(kept.live(snapshot)) == 62
    # Less than pyiceberg's objects: what is looked at rarely is packed.
    monkeypatch.setenv(VARIABLE, str(kept._kept._size))
    assert kept._kept._size < sum(sizes[2:])
    assert len(Manifests(CheckedFiles(table.io)).live(snapshot)) == 62
    monkeypatch.setenv(VARIABLE, str(kept._kept._size - 1))
    with pytest.raises(MemoryBudgetError, match="the table's metadata"):
        Manifests(CheckedFiles(table.io)).live(snapshot)
    monkeypatch.setenv(VARIABLE, str(sum(sizes[2:]) - 1))
    assert len(sb.inspect(table.metadata_location).files) == 62
    # 62 files with a value of the partition column each.
    monkeypatch.setattr(iceberg_reader, "_FILE_BYTES", sum(sizes) // 62)
    with pytest.raises(MemoryBudgetError, match="the data files of the table"):
        sb.inspect(table.metadata_location)


def test_lists_of_many_entries_are_refused_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each entry is small enough; all of them are not, and the file is 1/1000 of them."""
    monkeypatch.setenv(VARIABLE, "16MiB")
    files = PyArrowFileIO()
    with write_manifest(
        2, PartitionSpec(), Schema(), files.new_output(f"{tmp_path}/m.avro"), 1, "deflate"
    ) as writer:
        for n in range(40):
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"{n}" + 500_000 * "f",
                file_format=FileFormat.PARQUET,
                partition=Record(),
                record_count=1,
                file_size_in_bytes=1,
            )
            status = ManifestEntryStatus.ADDED
            writer.add_entry(ManifestEntry.from_args(status=status, data_file=file))
    assert (tmp_path / "m.avro").stat().st_size < 32_000
    manifests = Manifests(files)
    with pytest.raises(MemoryBudgetError, match="the table's metadata"):
        manifests.entries(writer.to_manifest_file())


def test_files_of_pyiceberg_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = iceberg(tmp_path / "warehouse")
    monkeypatch.setenv(VARIABLE, "1MiB")
    paths = list((tmp_path / "warehouse").rglob("metadata/*"))
    assert len(paths) > 5
    assert table.metadata_location
    for path in paths:
        check_decoded_size(path.read_bytes())
