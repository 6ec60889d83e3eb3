"""Files of Iceberg's metadata are read through this package's storage, and only read."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import FileChangedError, UnsupportedFeatureError
from secure_bloom.lakes.iceberg.metadata_files import CatalogFiles, StoredFiles, manifest_entries
from testing.iceberg_tables import iceberg, with_delete_file
from testing.storage import Bucket


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
