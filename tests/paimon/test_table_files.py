"""Which files of a Paimon table get an index, and of which columns."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pypaimon_rust")

import secure_bloom as sb
from secure_bloom.lakes.paimon.table import paimon_table
from secure_bloom.paimon.column_filter import BuildReport
from secure_bloom.paimon.table_files import IndexSelection, choose, threshold_of
from testing.paimon_tables import Warehouse, damage


@pytest.fixture
def lake(tmp_path: Path) -> Warehouse:
    return Warehouse(path=str(tmp_path))


def build(folder: str, *columns: str) -> BuildReport:
    options = dict.fromkeys(columns, sb.paimon.IndexOptions(items=100, fpp=1e-6))
    return sb.paimon.build_indexes(folder, options)


def test_key_columns_of_files_that_are_merged_are_indexed(lake: Warehouse) -> None:
    folder = lake.create("id bigint, v bigint, primary key (id)", bucket="1")
    lake.insert([(1, 10), (20, 20)])
    lake.insert([(1, 11), (30, 12)])
    report = build(folder, "id", "v")
    assert {c.column for file in report.files for c in file.columns} == {"id"}
    assert lake.rows() == [{"id": 1, "v": 11}, {"id": 20, "v": 20}, {"id": 30, "v": 12}]
    assert lake.rows("id = 1") == [{"id": 1, "v": 11}]
    assert lake.rows("v = 10") == []
    again = build(folder, "id", "v")
    assert {file.status for file in report.files} == {"built"}
    assert {file.status for file in again.files} == {"unchanged"}
    for file in report.files + again.files:
        assert "column v is not part of the primary key" in str(file.note)
    assert all("has the other filters already" in str(file.note) for file in again.files)


def test_other_columns_of_files_that_are_merged_are_refused_by_name(lake: Warehouse) -> None:
    folder = lake.create("id bigint, v bigint, primary key (id)", bucket="1")
    lake.insert([(1, 10)])
    [report] = build(folder, "v").files
    assert report.status == "unchanged"
    assert "column v is not part of the primary key" in str(report.note)


def test_columns_keep_their_index_through_renames(lake: Warehouse) -> None:
    folder = lake.create("id bigint, old bigint, other bigint")
    lake.insert([(1, 10, 100), (90, 90, 900)])
    lake.sql("alter table t rename column old to renamed")
    lake.sql("alter table t rename column other to old")
    lake.insert([(2, 20, 200), (91, 91, 910)])
    report = build(folder, "renamed")
    assert {c.column for file in report.files for c in file.columns} == {"renamed"}
    assert [row["id"] for row in lake.rows("renamed = 10")] == [1]
    assert [row["id"] for row in lake.rows("old = 100")] == [1]
    for path in Path(folder).rglob("data-*.parquet"):
        damage(str(path))
    assert lake.rows("renamed = 57") == []


def test_a_file_without_the_column_is_skipped(lake: Warehouse) -> None:
    folder = lake.create("id bigint")
    lake.insert([(1,)])
    lake.sql("alter table t add column late bigint")
    lake.insert([(2, 20)])
    report = build(folder, "late")
    assert sorted(file.status for file in report.files) == ["built", "unchanged"]
    assert any("was added after the file" in str(file.note) for file in report.files)
    assert [row["id"] for row in lake.rows("late = 20")] == [2]
    assert [row["id"] for row in lake.rows("late is null")] == [1]


def test_a_column_of_another_type_is_skipped_unless_its_hash_is_the_same(lake: Warehouse) -> None:
    folder = lake.create("id int, f float")
    lake.insert([(1, 1.5), (90, 9.5)])
    lake.sql("alter table t alter column id type bigint")
    lake.sql("alter table t alter column f type double")
    [report] = build(folder, "id", "f").files
    assert [c.column for c in report.columns] == ["id"]
    assert [row["id"] for row in lake.rows("id = 1 and f = 1.5")] == [1]
    for path in Path(folder).rglob("data-*.parquet"):
        damage(str(path))
    assert lake.rows("id = 57") == []


def test_a_dropped_column_is_unknown(lake: Warehouse) -> None:
    folder = lake.create("id bigint, gone bigint")
    lake.insert([(1, 2)])
    lake.sql("alter table t drop column gone")
    with pytest.raises(sb.PolicyError, match="there is no column gone"):
        build(folder, "gone")


def test_tables_whose_rows_are_in_several_files_are_refused(lake: Warehouse) -> None:
    folder = lake.create("id bigint", data_evolution__enabled="true", row_tracking__enabled="true")
    lake.sql("insert into t (id) values (1)")
    with pytest.raises(sb.UnsupportedFeatureError, match=r"data-evolution\.enabled"):
        build(folder, "id")


def test_files_of_other_formats_are_skipped(lake: Warehouse) -> None:
    folder = lake.create("id bigint")
    lake.insert([(1,)])
    lake.sql("alter table t set tblproperties ('file.format'='avro')")
    lake.insert([(2,)])
    report = build(folder, "id")
    assert {file.note for file in report.files} == {None, "skipped: not a Parquet file"}


@pytest.mark.parametrize(("text", "size"), [("0 b", 0), ("1 kb", 1024), ("2MB", 2 << 20)])
def test_the_threshold_is_the_tables_option(lake: Warehouse, text: str, size: int) -> None:
    folder = lake.create("id bigint", file_index__in_manifest_threshold=text)
    assert threshold_of(paimon_table(folder)) == size


def test_an_empty_table_has_nothing_to_choose(lake: Warehouse) -> None:
    table = paimon_table(lake.create("id bigint"))
    chosen = choose(table, IndexSelection(), {"id": sb.paimon.IndexOptions()})
    assert (chosen.wanted, chosen.skipped) == ((), {})
    assert build(table.folder, "id").files == ()
