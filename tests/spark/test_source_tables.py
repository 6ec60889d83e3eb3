"""The data source reads tables with a log as `read_table` does: by the files that the log names."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.spark.source import SecureBloomSource
from testing.delta_logs import add, column, commit, inline_vector, start
from testing.delta_tables import batch, deltalake, rows, write_table
from testing.iceberg_tables import iceberg

DAY = {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "c2"}


def read(folder: Path | str, **options: str) -> list[dict[str, Any]]:
    """The rows that the tasks of a query return, by their ids."""
    source = SecureBloomSource({"path": str(folder), **options})
    reader = source.reader(source.schema())
    found = [part for task in reader.partitions() for part in reader.read(task)]
    return sorted(pa.Table.from_batches(found).to_pylist() if found else [], key=lambda r: r["id"])


def test_a_delta_table_has_the_rows_and_columns_of_its_log(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "people")
    deltalake.DeltaTable(folder).delete("id = 4")
    assert read(folder) == rows(folder)
    assert SecureBloomSource({"path": folder}).schema().names == ["id", "email", "day"]


def test_files_that_the_log_does_not_name_are_not_read(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "people")
    before = rows(folder, 2)
    deltalake.write_deltalake(folder, batch(100), mode="overwrite")
    assert read(folder) == rows(folder) != before
    assert read(folder, version="2") == before


def test_conditions_on_columns_of_files_and_on_partition_columns(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "people")
    wanted = sb.read_table(folder, where="day = 'a b/c' and id > 3").to_pylist()
    assert read(folder, where="day = 'a b/c' and id > 3") == sorted(wanted, key=lambda r: r["id"])
    assert [row["id"] for row in read(folder, where="day is null", columns="id, email")] == [
        row["id"] for row in rows(folder) if row["day"] is None
    ]


def test_deleted_rows_and_names_of_columns_are_those_of_the_log(tmp_path: Path) -> None:
    pq.write_table(pa.table({"c1": range(10)}), tmp_path / "x.parquet", row_group_size=4)
    mapped = column("id", **{"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c1"})
    features = ["columnMapping", "deletionVectors"]
    first = start(
        mapped,
        column("day", "date", **DAY),
        features=features,
        partitions=["day"],
        delta_columnMapping_mode="name",
    )
    file = add(
        "x.parquet",
        (tmp_path / "x.parquet").stat().st_size,
        partitionValues={"c2": "2026-11-20"},
        deletionVector=inline_vector([0, 7]),
    )
    commit(tmp_path, 0, *first, file)
    day = dt.date(2026, 11, 20)
    wanted = [{"id": i, "day": day} for i in range(10) if i not in (0, 7)]
    assert read(tmp_path) == wanted
    assert read(tmp_path, where="id = 7") == []
    assert read(tmp_path, where="day = '2026-11-20' and id < 3") == wanted[:2]


def test_an_iceberg_table_by_its_metadata_file(tmp_path: Path) -> None:
    table = iceberg(tmp_path)
    wanted = table.scan().to_arrow().sort_by("id").to_pylist()
    assert read(table.metadata_location) == wanted
    assert read(table.metadata_location, where="text = 'u2' and id > 2") == wanted[-1:]


def test_a_table_without_rows(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "people", 1)
    deltalake.DeltaTable(folder).delete()
    assert read(folder) == []
    assert SecureBloomSource({"path": folder}).schema().names == ["id", "email", "day"]


def test_only_the_committed_files_of_a_streaming_sink_are_read(tmp_path: Path) -> None:
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    for name in ("committed", "torn"):
        pq.write_table(batch(0 if name == "committed" else 50), tmp_path / f"{name}.parquet")
    entry = {
        "path": (tmp_path / "committed.parquet").as_uri(),
        "size": (tmp_path / "committed.parquet").stat().st_size,
        "isDir": False,
        "modificationTime": 0,
        "blockReplication": 1,
        "blockSize": 1,
        "action": "add",
    }
    (log / "0").write_text(f"v1\n{json.dumps(entry)}")
    assert [row["id"] for row in read(tmp_path)] == list(range(6))


def test_a_table_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    with pytest.raises(UnsupportedFeatureError, match="Hudi"):
        SecureBloomSource({"path": str(tmp_path)}).schema()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"where": "emial = 'x'"}, "emial"),
        ({"where": "id = 'x'"}, "id"),
        ({"where": "id ="}, "condition|value|end"),
        ({"version": "two"}, "'version' is not a number"),
        ({"version": "99"}, "99"),
    ],
)
def test_what_is_wrong_shows_when_the_table_is_loaded(
    tmp_path: Path, options: dict[str, str], complaint: str
) -> None:
    folder = write_table(tmp_path / "people", 1)
    with pytest.raises(PolicyError, match=complaint):
        SecureBloomSource({"path": folder, **options}).schema()
