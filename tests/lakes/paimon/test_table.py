"""Paimon tables are listed as their own engine lists them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pypaimon_rust")

import secure_bloom as sb
from secure_bloom.lakes.paimon.names import is_table, table_folder
from secure_bloom.lakes.paimon.schema import read_schema
from secure_bloom.lakes.paimon.snapshot import latest_snapshot, snapshot_at, snapshot_numbers
from secure_bloom.lakes.paimon.table import paimon_table
from secure_bloom.lakes.table_version import TableVersion
from testing.paimon_tables import Warehouse, latest


@pytest.fixture
def lake(tmp_path: Path) -> Warehouse:
    return Warehouse(path=str(tmp_path))


PARTITIONS = [
    ("string", "a b/c=%?*\\é\"'x"),
    ("string", " "),
    ("string", None),
    ("bigint", -5),
    ("date", "date '1969-12-31'"),
    ("boolean", True),
]


@pytest.mark.parametrize(("kind", "value"), PARTITIONS)
def test_the_paths_of_partitions_are_those_of_the_files(
    lake: Warehouse, kind: str, value: object
) -> None:
    folder = lake.create(f"id bigint, p {kind}", partitioned="p")
    shown = value.replace("'", "''") if isinstance(value, str) and kind == "string" else value
    lake.insert([(1, shown)])
    assert sorted(paimon_table(folder).files) == sorted(map(str, Path(folder).rglob("data-*")))


def test_files_that_were_taken_away_are_not_live(lake: Warehouse) -> None:
    folder = lake.create("id bigint", row_tracking__enabled="true")
    lake.insert([(1,), (2,)])
    lake.insert([(3,)])
    assert len(paimon_table(folder).files) == 2
    lake.sql("delete from t where id = 2")
    table = paimon_table(folder)
    assert sum(file.entry.file["_ROW_COUNT"] for file in table.files.values()) == 2
    assert len(paimon_table(folder, TableVersion(snapshot=1)).files) == 1
    with pytest.raises(sb.PolicyError, match="has no snapshot 9"):
        paimon_table(folder, TableVersion(snapshot=9))
    with pytest.raises(sb.PolicyError, match="not versions"):
        paimon_table(folder, TableVersion(version=1))


def test_snapshots_are_found_without_the_hint(lake: Warehouse) -> None:
    folder = lake.create("id bigint")
    assert latest_snapshot(folder) is None
    lake.insert([(1,)])
    lake.insert([(2,)])
    Path(folder, "snapshot/LATEST").write_text("1")
    assert snapshot_numbers(folder) == [1, 2]
    found = latest_snapshot(folder)
    assert found is not None
    assert found.id == 2
    assert snapshot_at(folder, "2999-01-01").id == 2
    with pytest.raises(sb.PolicyError, match="no snapshot until that time"):
        snapshot_at(folder, "1999-01-01")


def test_columns_keep_their_ids(lake: Warehouse) -> None:
    folder = lake.create("id bigint, name string")
    lake.insert([(1, "a")])
    lake.sql("alter table t rename column name to title")
    assert [f.name for f in read_schema(folder, 1).fields] == ["id", "title"]
    table = paimon_table(folder)
    [file] = table.files.values()
    assert table.mapping(file).logical("name") == "title"


def test_a_table_is_recognized(lake: Warehouse, tmp_path: Path) -> None:
    folder = lake.create("id bigint")
    assert is_table(folder)
    assert table_folder(f"paimon://{lake.path}/default.t") == folder
    (tmp_path / "plain/schema").mkdir(parents=True)
    assert not is_table(str(tmp_path / "plain"))


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".."])
def test_names_that_lead_elsewhere_are_refused(lake: Warehouse, name: str) -> None:
    folder = lake.create("id bigint")
    lake.insert([(1,)])
    path = Path(folder, "snapshot/snapshot-1")
    path.write_text(path.read_text().replace(latest(folder)["deltaManifestList"], name))
    with pytest.raises(sb.FormatError, match="by a path"):
        paimon_table(folder)


@pytest.mark.parametrize("damage", ["{", "[]", '{"id": "x"}', '{"id": 1}', "[" * 100_000])
def test_damaged_snapshots_and_schemas_are_refused(lake: Warehouse, damage: str) -> None:
    folder = lake.create("id bigint")
    lake.insert([(1,)])
    for name in ("snapshot/snapshot-1", "schema/schema-0"):
        path = Path(folder, name)
        before = path.read_text()
        path.write_text(damage)
        with pytest.raises(sb.FormatError):
            paimon_table(folder)
        path.write_text(before)
    paimon_table(folder)
