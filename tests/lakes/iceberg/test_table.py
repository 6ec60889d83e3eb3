"""Iceberg tables from their metadata files: the data files and rows that pyiceberg has."""

from __future__ import annotations

import copy
import datetime as dt
import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema

import secure_bloom as sb
from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError
from secure_bloom.lakes.iceberg import metadata_files, schema_fields
from secure_bloom.lakes.iceberg.old_metadata import old_metadata
from secure_bloom.lakes.iceberg.table import iceberg_table
from testing.iceberg_tables import iceberg, with_delete_file
from tests.lakes.test_metadata_bombs import files_of


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


def test_a_manifest_of_many_snapshots_is_read_once_for_the_bounds_of_old_files(
    tmp_path: Path,
) -> None:
    table = iceberg(tmp_path)
    for n in range(4):
        day = pa.array([dt.date(2026, 1, 1)])
        table.overwrite(pa.table({"id": [n], "day": day, "text": ["x"]}))
    found = iceberg_table(table.metadata_location)
    with mock.patch.object(
        metadata_files, "manifest_entries", wraps=metadata_files.manifest_entries
    ) as read:
        bounds = old_metadata(found).bounds
    places = [call.args[0].manifest_path for call in read.call_args_list]
    assert len(places) == len(set(places)) > 4
    # Under both of its names: those of the schemas when the files were written, and now.
    assert bounds["s"] == bounds["text"] == bounds["id"] > 4


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
    with pytest.raises(PolicyError, match="snapshots, not versions"):
        sb.inspect(table.metadata_location, version=1)


def test_a_delete_file_that_is_gone_stops_a_read_and_nothing_else(tmp_path: Path) -> None:
    table = with_delete_file(iceberg(tmp_path))
    path = table.metadata_location
    assert any(task.delete_files for task in table.scan().plan_files())
    with pytest.raises(PolicyError, match=r"deletes\.parquet: no such file"):
        sb.read_table(path)
    assert len(sb.inspect(path).files) == len(sb.probe(path, "id", 1).files) == 2


DEFAULTS = {
    "int": 7,
    "string": "none",
    "date": "2020-01-02",
    "decimal(9, 2)": "14.20",
    "timestamptz": "2020-01-02T03:04:05.000006+00:00",
    "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
    "boolean": True,
    "binary": "0102",
}


def test_a_column_that_a_file_lacks_has_its_default(table: Any, tmp_path: Path) -> None:
    metadata = json.loads(Path(table.metadata_location).read_text())
    (schema,) = [
        it for it in metadata["schemas"] if it["schema-id"] == metadata["current-schema-id"]
    ]
    for number, (kind, value) in enumerate(DEFAULTS.items(), 50):
        field = {"id": number, "name": kind[:4], "type": kind, "required": False}
        schema["fields"].append({**field, "initial-default": value})
    path = changed(
        table,
        tmp_path / "x.metadata.json",
        schemas=metadata["schemas"],
        **{"format-version": 3, "next-row-id": 100},
    )
    wanted = table.scan().to_arrow().num_rows
    found = sb.read_table(path)
    for name in (kind[:4] for kind in DEFAULTS):
        assert found[name].null_count == 0
        assert len({*map(str, found[name])}) == 1
    assert found["int"][0].as_py() == 7
    assert str(found["date"][0]) == "2020-01-02"
    assert str(found["deci"][0].as_py()) == "14.20"
    assert sb.read_table(path, where="int = 7 and stri = 'none'").num_rows == wanted
    assert sb.read_table(path, where="int is null").num_rows == 0
    assert sb.read_table(path, where="date > '2020-01-02'").num_rows == 0
    plan = sb.plan_read(path, where="bool = true", columns=["int"])
    rows = [batch for file in plan.files for batch in sb.read_row_groups(plan, file)]
    assert {value for batch in rows for value in batch.column("int").to_pylist()} == {7}


def test_a_default_inside_a_structure_is_refused(table: Any, tmp_path: Path) -> None:
    metadata = json.loads(Path(table.metadata_location).read_text())
    (schema,) = [
        it for it in metadata["schemas"] if it["schema-id"] == metadata["current-schema-id"]
    ]
    (structure,) = [it for it in schema["fields"] if it["name"] == "st"]
    part = {"id": 60, "name": "b", "type": "int", "required": False, "initial-default": 1}
    structure["type"]["fields"].append(part)
    path = changed(table, tmp_path / "x.metadata.json", schemas=metadata["schemas"])
    with pytest.raises(UnsupportedFeatureError, match="part of column st has a default"):
        sb.read_table(path)
    assert len(sb.inspect(path).files) == 2


def test_an_imported_file_has_the_values_of_its_partition(tmp_path: Path) -> None:
    table = iceberg(tmp_path)
    for path in planned(table):
        # As of a table of Hive: the column of the partition is in the name of the folder alone.
        pq.write_table(pq.read_table(path).drop(["day"]), path)
    found = sb.read_table(table.metadata_location)
    assert sorted(found["day"].to_pylist()) == sorted(
        [dt.date(2026, 1, 1)] * 2 + [dt.date(2026, 1, 2)] * 3
    )
    where = "day = '2026-01-01'"
    assert sb.read_table(table.metadata_location, where=where).num_rows == 2


LIVE = "secure_bloom.lakes.iceberg.table"


@pytest.mark.parametrize("partitions", [1, 90])
def test_the_values_of_a_partition_are_made_once(tmp_path: Path, partitions: int) -> None:
    table = iceberg(tmp_path)
    path = files_of(table)["manifest"]
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        schema, metadata, (first, *_) = reader.writer_schema, reader.metadata, list(reader)
    for n, entry in enumerate(entries := [copy.deepcopy(first) for _ in range(90)]):
        entry["data_file"]["file_path"] += f"{n}"
        entry["data_file"]["partition"]["part"] += dt.timedelta(days=n % partitions)
    kept = {name: it for name, it in metadata.items() if not name.startswith("avro.")}
    with path.open("wb") as file:
        fastavro.writer(file, schema, entries, metadata=kept)
    schema_fields.arrow_of.cache_clear()
    with (
        mock.patch.object(Schema, "as_arrow", autospec=True, side_effect=Schema.as_arrow) as types,
        mock.patch(f"{LIVE}.partition_values", wraps=schema_fields.partition_values) as made,
    ):
        found = iceberg_table(table.metadata_location)
    days = {it.fills["day"].as_py() for name, it in found.live.items() if name[-1].isdigit()}
    assert days == {dt.date(2026, 1, 1) + dt.timedelta(days=n) for n in range(partitions)}
    assert made.call_count <= partitions + 1
    assert types.call_count < 9


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
