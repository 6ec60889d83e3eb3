"""Rows that delete files remove are never read, and all others are."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.types import LongType, StringType

import secure_bloom as sb
from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError
from tests.lakes.iceberg.tables import (
    BY_CITY,
    NAME,
    all_rows,
    commit_deletes,
    data_files,
    delete_by_vector,
    delete_equal,
    delete_positions,
    entries,
    local,
    people,
    rows,
)


def ids(where: str | None = None, **options: object) -> list[int]:
    """The ids that are read."""
    return sorted(sb.read_table(NAME, where=where, columns=["id"], **options)["id"].to_pylist())  # type: ignore[arg-type]


def first_ids(table: Table) -> list[str]:
    """The data files in the order of their rows."""
    return sorted(data_files(table), key=lambda path: least_id(local(path)))


def least_id(path: Path) -> int:
    """The smallest id in a data file."""
    return min(pq.read_table(path)["id"].to_pylist())


def others(*gone: int, most: int = 300) -> list[int]:
    return [i for i in range(most) if i not in gone]


def test_positions_of_one_file_and_of_several(catalog: SqlCatalog) -> None:
    table = people(catalog)
    one, two, three = first_ids(table)
    delete_positions(table, one, [3, 4], "one")
    delete_positions(table, {two: [0, 99], three: [50]}, [], "two")
    assert ids() == others(3, 4, 100, 199, 250)
    assert ids() == [row["id"] for row in all_rows(table)]
    assert ids("id = 3") == []
    assert ids("email = 'user5@example.org'") == [5]
    assert sb.read_table(NAME, limit=5)["id"].to_pylist().count(3) == 0


def test_equal_values_are_deleted_from_older_files_alone(catalog: SqlCatalog) -> None:
    table = people(catalog)
    delete_equal(table, [7, 150], "eq")
    table.append(rows(7, 1))
    assert ids() == sorted([*others(7, 150), 7])
    assert ids("id = 150") == []
    assert ids("city = 'city1' and id < 10") == [1, 4, 7]
    # The key column is neither asked for nor in the condition.
    found = sb.read_table(NAME, columns=["email"], where="city = 'city0'")
    assert "user150@example.org" not in found["email"].to_pylist()
    assert found.num_rows == 99


def test_equality_deletes_of_a_partition_and_of_all(catalog: SqlCatalog) -> None:
    table = people(catalog, spec=BY_CITY)
    (like,) = [it for it in entries(table) if least_id(local(it.data_file.file_path)) == 1]
    # 2 is in another partition, where the delete does not apply.
    delete_equal(table, [1, 2], "of-city1", like=like.data_file)
    assert ids() == others(1)
    delete_equal(table, [2, 3], "of-all")
    assert ids() == others(1, 2, 3)


def test_nulls_are_equal_and_all_columns_count(catalog: SqlCatalog) -> None:
    table = people(catalog, files=1)
    table.append(
        pa.table(
            {"id": [500, 501, None], "email": [None, None, "x"], "city": ["a", "b", None]},
            schema=rows(0, 1).schema,
        )
    )
    keys = {"city": ["a", None, "city1"], "email": [None, "x", "user2@example.org"]}
    delete_equal(table, pa.table(keys), "eq")
    # 2 has another city than the delete.
    found = sb.read_table(NAME)["id"].to_pylist()
    assert sorted(found) == [*range(100), 501]


def test_keys_are_found_by_their_ids(catalog: SqlCatalog) -> None:
    table = people(catalog)
    delete_equal(table, pa.table({"email": ["user9@example.org"]}), "renamed")
    with table.update_schema() as update:
        update.rename_column("email", "mail")
    assert ids() == others(9)
    with table.update_schema() as update:
        update.delete_column("mail")
        update.add_column("email", StringType())
    table.append(rows(300, 1))
    assert ids() == others(9, most=301)


def test_a_file_without_the_key_column_has_its_default(catalog: SqlCatalog) -> None:
    table = people(catalog, files=1)
    with table.update_schema() as update:
        update.add_column("age", LongType())
    table.append(rows(100).append_column("age", pa.array([*range(100)], pa.int64())))
    delete_equal(table, pa.table({"age": pa.array([None, 5], pa.int64())}), "eq")
    assert ids() == [i for i in range(100, 200) if i != 105]


def test_deletion_vectors(catalog: SqlCatalog) -> None:
    table = people(catalog)
    one, two, _ = first_ids(table)
    delete_positions(table, one, [1], "before")
    # A vector takes the place of all position deletes of its file.
    delete_by_vector(table, one, [2, 3], "one")
    path = delete_by_vector(table, two, [0], "two")
    assert ids() == others(2, 3, 100)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"\x00\x00\x10\x00\x00\x00\x00\x00", bytes(8)))
    assert path.read_bytes() != content
    with pytest.raises(FormatError, match="checksum"):
        ids()
    path.write_bytes(content[:10])
    with pytest.raises(FormatError):
        ids()


def test_a_plan_carries_the_deletes(catalog: SqlCatalog) -> None:
    table = people(catalog)
    one, two, _ = first_ids(table)
    delete_positions(table, one, [0], "pos")
    delete_by_vector(table, two, [0], "vector")
    delete_equal(table, [205], "eq")
    plan = pickle.loads(pickle.dumps(sb.plan_read(NAME)))
    found = [
        value
        for file in plan.files
        for batch in sb.read_row_groups(plan, file)
        for value in batch.column("id").to_pylist()
    ]
    assert sorted(found) == others(0, 100, 205)


def test_other_verbs_look_at_the_data_files(catalog: SqlCatalog) -> None:
    table = people(catalog)
    delete_equal(table, [7], "eq")
    delete_positions(table, first_ids(table)[0], [1], "pos")
    assert len(sb.inspect(NAME).files) == len(sb.probe(NAME, "id", 1).files) == 3


def test_a_snapshot_has_its_own_deletes_and_columns(catalog: SqlCatalog) -> None:
    table = people(catalog, files=2)
    before = table.current_snapshot()
    assert before is not None
    delete_equal(table, [7], "eq")
    with table.update_schema() as update:
        update.rename_column("email", "mail")
    table.append(rows(200).rename_columns(["id", "mail", "city"]))
    assert ids(snapshot=before.snapshot_id) == others(most=200)
    old = sb.read_table(NAME, snapshot=before.snapshot_id)
    assert old.column_names == ["id", "email", "city"]
    assert len(sb.inspect(NAME, snapshot=before.snapshot_id).files) == 2
    assert len(sb.probe(NAME, "email", "x", snapshot=before.snapshot_id).files) == 2
    at = pa.scalar(before.timestamp_ms, pa.timestamp("ms", "UTC")).as_py()
    assert ids(timestamp=at) == others(most=200)
    assert ids() == others(7)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"snapshot": 5}, "no snapshot 5"),
        ({"version": 1}, "snapshots, not versions"),
        ({"timestamp": "2001-01-01"}, "no snapshot until"),
        ({"timestamp": "2100-01-01", "snapshot": 5}, "one is enough"),
    ],
)
def test_snapshots_that_are_not_there(
    catalog: SqlCatalog, asked: dict[str, object], match: str
) -> None:
    people(catalog, files=1)
    with pytest.raises(PolicyError, match=match):
        ids(**asked)


def _no_parquet(table: Table, data_file: str) -> None:
    delete_positions(table, data_file, [1], "pos")
    (local(table.location()) / "data/pos.parquet").write_bytes(b"PAR1 this is none PAR1")


def _beyond_the_end(table: Table, data_file: str) -> None:
    delete_positions(table, data_file, [100], "pos")


def _before_the_start(table: Table, data_file: str) -> None:
    delete_positions(table, data_file, [-1], "pos")


def _no_columns(table: Table, data_file: str) -> None:
    delete_positions(table, data_file, [1], "pos")
    delete_equal(table, [1], "eq")
    (local(table.location()) / "data/eq.parquet").rename(
        local(table.location()) / "data/pos.parquet"
    )


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (_no_parquet, "cannot be read as Parquet"),
        (_beyond_the_end, "outside the file's 100 rows"),
        (_before_the_start, "outside the file's 100 rows"),
        (_no_columns, "has no columns|no such file"),
    ],
)
def test_damage_is_an_error(catalog: SqlCatalog, damage: object, match: str) -> None:
    table = people(catalog, files=1)
    damage(table, data_files(table)[0])  # type: ignore[operator]
    with pytest.raises(sb.SecureBloomError, match=match):
        ids()


def test_a_delete_file_of_another_form_is_refused(catalog: SqlCatalog) -> None:
    table = people(catalog, files=1)
    path = f"{table.location()}/data/deletes.orc"
    local(path).write_bytes(b"ORC")
    kind = DataFileContent.EQUALITY_DELETES
    commit_deletes(table, path, kind, 1, equality_ids=[1], file_format=FileFormat.ORC)
    with pytest.raises(UnsupportedFeatureError, match="delete file in ORC"):
        ids()
    assert len(sb.inspect(NAME).files) == 1
