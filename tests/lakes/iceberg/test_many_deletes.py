"""Tables with as many delete files as data files, and lists that say one thing many times."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry
from pyiceberg.typedef import Record

import secure_bloom as sb
from secure_bloom.errors import FormatError
from secure_bloom.lakes.avro_blocks import AvroBlocks
from secure_bloom.lakes.iceberg.deletes import FILE_PATH_FIELD, DeleteIndex
from secure_bloom.lakes.iceberg.live_files import Manifests, _position_deletes
from secure_bloom.running.memory_budget import VARIABLE, MemoryBudgetError
from testing.growth import growth
from testing.iceberg_tables import iceberg
from tests.lakes.avro_files import avro
from tests.lakes.test_metadata_bombs import files_of, schema_of


def entry(number: int, content: DataFileContent, form: FileFormat, **fields: Any) -> ManifestEntry:
    file = DataFile.from_args(
        _table_format_version=3,
        content=content,
        file_path=f"{content.name}-{number:06}",
        file_format=form,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=1,
        **fields,
    )
    file.spec_id = 0
    return ManifestEntry.from_args(sequence_number=number + 1, data_file=file)


def data(count: int) -> dict[str, ManifestEntry]:
    found = (entry(n, DataFileContent.DATA, FileFormat.PARQUET) for n in range(count))
    return {it.data_file.file_path: it for it in found}


def test_no_delete_file_is_compared_with_each_data_file() -> None:
    def work(count: int) -> None:
        live = data(count)
        names = list(live)
        deletes = [
            entry(
                count,
                DataFileContent.POSITION_DELETES,
                FileFormat.ORC,
                lower_bounds={FILE_PATH_FIELD: names[n].encode()},
                upper_bounds={FILE_PATH_FIELD: names[n + 1].encode()},
            )
            for n in range(count - 1)
        ]
        found = _position_deletes(deletes, live, Manifests(None))
        assert {len(it) for it in found.values()} == {1, 2}

    assert growth(work, 60) < 5


@pytest.mark.parametrize("has_other_numbers", [False, True])
def test_delete_files_of_a_partition_are_listed_once_for_all_its_data_files(
    monkeypatch: pytest.MonkeyPatch, has_other_numbers: bool
) -> None:
    """Data files of one commit share the list; those of others count towards the budget."""
    monkeypatch.setenv(VARIABLE, "1MiB")
    index = DeleteIndex({}, str, lambda _: None)  # type: ignore[arg-type, return-value]
    for number in range(1_000):
        index.add(entry(2_000 + number, DataFileContent.POSITION_DELETES, FileFormat.PARQUET))
    found = [
        entry(number * has_other_numbers, DataFileContent.DATA, FileFormat.PARQUET)
        for number in range(1_000)
    ]
    if has_other_numbers:
        with pytest.raises(MemoryBudgetError):
            list(map(index.of, found))
        return
    listed = [index.of(it).positions for it in found]
    assert all(it is not None and it.files is listed[0].files for it in listed)  # type: ignore[union-attr]
    assert len(listed[0].files) == 1_000  # type: ignore[union-attr]


@pytest.mark.parametrize("verb", ["read", "list"])
def test_a_list_that_names_a_manifest_twice_is_damaged(tmp_path: Path, verb: str) -> None:
    """A few bytes of the list, and much time, each time that the manifest is read."""
    table = iceberg(tmp_path / "warehouse")
    path = files_of(table)["list"]
    ((records, content),) = AvroBlocks(io.BytesIO(path.read_bytes()), lambda _: None)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(2 * bytes(content)) + packer.flush()
    path.write_bytes(avro(schema_of(path), "deflate", 2 * records, packed))
    reader = {
        "read": lambda: sb.read_table(table.metadata_location),
        "list": lambda: Manifests(table.io).live_paths(table.current_snapshot()),
    }[verb]
    with pytest.raises(FormatError, match="names a manifest twice"):
        reader()
