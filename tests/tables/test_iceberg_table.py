"""Iceberg tables from their metadata files: the data files and rows that pyiceberg has."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError
from secure_bloom.tables.iceberg_table import iceberg_table
from tests.tables.iceberg_tables import iceberg, with_delete_file


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return iceberg(tmp_path_factory.mktemp("warehouse"))


def planned(table: Any) -> list[str]:
    return sorted(t.file.file_path.removeprefix("file://") for t in table.scan().plan_files())


def rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: row["id"])


def test_rows_are_those_of_pyiceberg(table: Any) -> None:
    found = sb.read_table(table.metadata_location)
    assert rows(found) == rows(table.scan().to_arrow())
    assert found.column_names == ["id", "day", "text", "st", "new"]
    some = sb.read_table(table.metadata_location, where="text = 'u2' and id < 4")
    assert rows(some) == rows(table.scan("text = 'u2' and id < 4").to_arrow())
    assert sb.read_table(table.metadata_location, where="new is not null").num_rows == 0


def test_verbs_look_at_the_data_files_that_are_planned(table: Any) -> None:
    path, wanted = table.metadata_location, planned(table)
    assert len(wanted) == 2
    policy = sb.KeyPolicy(columns={})
    assert [file.path for file in sb.inspect(path).files] == wanted
    assert [file.path for file in sb.probe(path, "text", "u1").files] == wanted
    assert list(sb.audit(path, policy=policy).paths) == wanted
    with pytest.raises(PolicyError, match="no column s"):
        sb.probe(path, "s", "u1")


def test_an_older_metadata_file_is_an_older_table(table: Any) -> None:
    folder = Path(table.metadata_location).parent
    (first,) = folder.glob("00002-*.metadata.json")
    assert rows(sb.read_table(first))[-1]["id"] == 2
    assert sb.read_table(first).column_names == ["id", "day", "s", "st"]


def test_the_folder_and_what_writes_are_refused(table: Any) -> None:
    folder = str(Path(table.metadata_location).parent.parent)
    for call in (
        lambda: sb.read_table(folder),
        lambda: sb.probe(planned(table)[0], "text", "x"),
        lambda: sb.add_bloom_filters(folder, columns=["id"]),
        lambda: sb.add_bloom_filters(table.metadata_location, columns=["id"]),
    ):
        with pytest.raises(UnsupportedFeatureError, match="an Iceberg table"):
            call()
    with pytest.raises(PolicyError, match="only Delta tables have versions"):
        sb.inspect(table.metadata_location, version=1)


def test_delete_files_stop_a_read_and_nothing_else(tmp_path: Path) -> None:
    table = with_delete_file(iceberg(tmp_path))
    path = table.metadata_location
    assert any(task.delete_files for task in table.scan().plan_files())
    with pytest.raises(UnsupportedFeatureError, match="delete files") as caught:
        sb.read_table(path)
    assert caught.value.path == path
    assert len(sb.inspect(path).files) == len(sb.probe(path, "id", 1).files) == 2


def test_a_file_without_ids_is_refused(tmp_path: Path) -> None:
    table = iceberg(tmp_path)
    for path in planned(table):
        pq.write_table(pa.table({"id": [1], "day": [None], "s": ["x"]}), path)
    with pytest.raises(UnsupportedFeatureError, match="no ids of fields"):
        sb.read_table(table.metadata_location)


def changed(table: Any, path: Path, **properties: Any) -> str:
    metadata = json.loads(Path(table.metadata_location).read_text()) | properties
    path.write_text(json.dumps(metadata))
    return str(path)


def test_metadata_are_not_believed(table: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.metadata.json"
    path.write_text("{}")
    with pytest.raises(FormatError, match="cannot read the table's metadata"):
        iceberg_table(str(path))
    # A class that a property names is not imported.
    hostile = {"py-io-impl": "secure_bloom_hostile.Module"}
    assert iceberg_table(changed(table, path, properties=hostile)).files
    snapshots = json.loads(Path(table.metadata_location).read_text())["snapshots"]
    elsewhere = [snapshot | {"manifest-list": "s3://b/list.avro"} for snapshot in snapshots]
    with pytest.raises(UnsupportedFeatureError, match="files elsewhere"):
        iceberg_table(changed(table, path, snapshots=elsewhere))
    with pytest.raises(UnsupportedFeatureError, match="object store"):
        iceberg_table("s3://b/t/metadata/x.metadata.json")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("pipe", "not a regular file"),
        ("sparse", "a file of the metadata takes"),
        ("gone", "no such file"),
    ],
)
def test_a_manifest_that_is_no_file_is_neither_waited_for_nor_read(
    table: Any, tmp_path: Path, kind: str, told: str
) -> None:
    manifest = tmp_path / "list.avro"
    if kind == "pipe":
        os.mkfifo(manifest)
    elif kind == "sparse":
        with manifest.open("wb") as file:
            file.truncate(100 << 30)
    snapshots = json.loads(Path(table.metadata_location).read_text())["snapshots"]
    hostile = [snapshot | {"manifest-list": str(manifest)} for snapshot in snapshots]
    with pytest.raises(sb.SecureBloomError, match=told):
        iceberg_table(changed(table, tmp_path / "x.metadata.json", snapshots=hostile))
