"""Paimon tables are read as Paimon's own engine reads them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pypaimon_rust")

import secure_bloom as sb
from testing.paimon_tables import Warehouse, delete_rows


@pytest.fixture
def lake(tmp_path: Path) -> Warehouse:
    return Warehouse(path=str(tmp_path))


def rows(path: str, **options: Any) -> list[dict[str, Any]]:
    return sorted(sb.read_table(path, **options).to_pylist(), key=str)


def test_live_files_of_the_latest_snapshot_are_read(lake: Warehouse) -> None:
    folder = lake.create(
        "id bigint, name string, day date, amount decimal(10, 2), at timestamp(3)",
        partitioned="day",
        row_tracking__enabled="true",
    )
    for day in (1, 2, 3):
        lake.sql(
            f"insert into t values ({day}, 'n{day}', date '2024-01-0{day}', 1.25, "
            f"timestamp '2024-01-0{day} 10:11:12.123'), (1{day}, null, null, null, null)"
        )
    lake.sql("delete from t where id = 2")
    assert rows(folder) == lake.rows()
    assert rows(f"paimon://{lake.path}/default.t") == lake.rows()
    assert rows(folder, where="day = '2024-01-03'") == lake.rows("day = date '2024-01-03'")
    assert len(rows(folder, snapshot=1)) == 2
    assert len(rows(folder, timestamp="2999-01-01")) == 5
    with sb.open_table(folder) as table:
        assert table.read(where="id = 13").num_rows == 1


def test_an_evolved_table_is_read_by_ids(lake: Warehouse) -> None:
    folder = lake.create("id int, name string, gone string, tags array<string>")
    lake.sql("insert into t values (1, 'a', 'x', array['p', 'q'])")
    lake.sql("alter table t rename column name to title")
    lake.sql("alter table t drop column gone")
    lake.sql("alter table t add column late bigint")
    lake.sql("alter table t alter column id type bigint")
    lake.sql("insert into t values (2, 'b', array['r'], 7)")
    assert rows(folder) == lake.rows()
    assert rows(folder, where="title = 'a'") == lake.rows("title = 'a'")
    assert sb.probe(folder, "title", ["b"]).to_dict()["column"] == "title"
    assert "title" in sb.read_table(folder).column_names


def test_a_name_that_another_column_got_is_refused_for_reads(lake: Warehouse) -> None:
    folder = lake.create("id bigint, a string")
    lake.insert([(1, "x")])
    lake.sql("alter table t rename column a to b")
    lake.sql("alter table t add column a string")
    lake.sql("insert into t values (2, 'y', 'z')")
    with pytest.raises(sb.UnsupportedFeatureError, match="the name a was given to another column"):
        sb.read_table(folder)
    # Each file by itself has its own names.
    assert len(sb.inspect(folder).files) == 2


def test_deleted_rows_are_not_read(lake: Warehouse) -> None:
    folder = lake.create("id bigint, name string", deletion_vectors__enabled="true")
    lake.insert([(i, f"n{i}") for i in range(40)])
    [path] = map(str, Path(folder).rglob("data-*.parquet"))
    delete_rows(folder, path, [3, 5, 39])
    assert len(lake.rows()) == 37
    assert rows(folder) == lake.rows()
    # The vectors stay when an index is committed.
    sb.paimon.build_index(folder, ["id"])
    assert len(lake.rows()) == 37
    assert lake.rows("id = 5") == rows(folder, where="id = 5") == []
    assert lake.rows("id = 6") == rows(folder, where="id = 6")


def test_a_damaged_deletion_vector_is_an_error(lake: Warehouse) -> None:
    folder = lake.create("id bigint", deletion_vectors__enabled="true")
    lake.insert([(1,), (2,)])
    [path] = map(str, Path(folder).rglob("data-*.parquet"))
    delete_rows(folder, path, [1])
    [index] = Path(folder, "index").iterdir()
    content = bytearray(index.read_bytes())
    content[-1] ^= 1
    index.write_bytes(content)
    with pytest.raises(sb.FormatError, match="checksum"):
        sb.read_table(folder)


def test_a_table_with_a_primary_key_is_refused_until_it_is_compacted(lake: Warehouse) -> None:
    folder = lake.create("id bigint, v bigint, primary key (id)", bucket="1")
    lake.insert([(1, 10)])
    lake.insert([(1, 11)])
    with pytest.raises(sb.UnsupportedFeatureError, match="not compacted"):
        sb.read_table(folder)
    assert len(sb.probe(folder, "id", [1]).files) == 2
    assert len(sb.inspect(folder).files) == 2


def test_inspect_shows_the_index_of_the_manifest(lake: Warehouse) -> None:
    folder = lake.create("id bigint")
    lake.insert([(1,), (2,)])
    [file] = sb.inspect(folder).files
    assert file.paimon is None
    sb.paimon.build_index(folder, ["id"])
    [file] = sb.inspect(folder).files
    assert file.paimon is not None
    assert [index.column for index in file.paimon.indexes] == ["id"]


def test_advise_takes_the_table(lake: Warehouse) -> None:
    folder = lake.create("id bigint, name string")
    for start in (0, 1):
        lake.insert([(i, f"name-{i % 1000}") for i in range(start, 4000, 2)])
    advice = sb.advise(folder)
    assert {column.column for column in advice.columns} == {"id", "name"}


def test_a_branch_is_opened_by_its_folder(lake: Warehouse) -> None:
    """The folder is in that of the table, but has no data files."""
    folder = Path(lake.create("id bigint, email string"))
    lake.insert([(1, "both")])
    for name in ("schema", "snapshot"):
        shutil.copytree(folder / name, folder / "branch" / "branch-side" / name)
    lake.insert([(2, "main")])
    side = folder / "branch" / "branch-side"
    for path in (side, f"{side}/", f"{folder}$branch_side"):
        assert sb.read_table(path)["id"].to_pylist() == [1]
        assert len(sb.inspect(path).files) == 1
    assert len(sb.audit(side, policy=sb.KeyPolicy(columns={})).paths) == 1
    assert sorted(sb.read_table(folder)["id"].to_pylist()) == [1, 2]
