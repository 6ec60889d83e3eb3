"""Verbs look at the live files of a Delta table alone, of whichever version was asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.api.inspect import keys_used
from secure_bloom.cli import main
from secure_bloom.errors import (
    FormatError,
    MissingPathError,
    PolicyError,
    UnsupportedFeatureError,
)
from secure_bloom.lakes import TableVersion, list_tables
from testing.delta_logs import add, column, commit, remove, start
from tests.auditing.examples import rules


def orders(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "day": ["a/b" if i % 2 else "" for i in ids]})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three versions in a folder that also holds what the log does not name."""
    path = tmp_path / "lake/orders"
    for ids in ([1, 2], [3, 4]):
        deltalake.write_deltalake(path, orders(*ids), partition_by=["day"], mode="append")
    deltalake.DeltaTable(path).delete("id = 1")
    pq.write_table(orders(9), path / "left-behind.parquet")
    return path


def uris(table: Path, **version: Any) -> list[str]:
    return sorted(deltalake.DeltaTable(table, **version).file_uris())


def paths_of(report: Any) -> list[str]:
    return [file.path for file in report.files]


def test_verbs_look_at_the_live_files(table: Path) -> None:
    policy = sb.KeyPolicy(columns={})
    for version in (None, 0, 1, 2):
        wanted = uris(table, version=version)
        assert paths_of(sb.inspect(table, version=version)) == wanted
        assert paths_of(sb.probe(table, "id", [1], version=version)) == wanted
        assert list(sb.audit(table, policy=policy, version=version).paths) == wanted
        assert paths_of(keys_used(table, version=version)) == wanted


def test_the_command_line_takes_a_version(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verbs = [
        ["inspect", str(table)],
        ["probe", str(table), "id", "1"],
        ["keys", "used", str(table)],
    ]
    for arguments in verbs:
        with pytest.raises(SystemExit):
            main([*arguments, "--version", "1", "--json"])
        shown = json.loads(capsys.readouterr().out)
        assert [file["path"] for file in shown["files"]] == uris(table, version=1)
    with pytest.raises(SystemExit) as end:
        main(["inspect", str(table), "--timestamp", "1999-01-01"])
    assert end.value.code == 2
    assert "no version as old" in capsys.readouterr().err


def test_paths_within_a_table_mean_its_live_files_there(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = uris(table)
    partition = table / Path(live[0]).relative_to(table).parts[0]
    there = [path for path in live if path.startswith(f"{partition}/")]
    assert 0 < len(there) < len(live)
    assert list(list_tables([str(partition)]).paths) == there
    assert list(list_tables([f"{partition}/*.parquet", live[0]]).paths) == there
    assert list(list_tables([str(table.parent)]).paths) == live
    monkeypatch.chdir(table.parent)
    assert list(list_tables(["orders"]).paths) == [
        str(Path(path).relative_to(table.parent)) for path in live
    ]


def test_a_file_that_is_not_live_is_an_error(table: Path) -> None:
    dead = (set(uris(table, version=1)) - set(uris(table))).pop()
    for path in (dead, str(table / "left-behind.parquet")):
        with pytest.raises(PolicyError, match="no file of the table's version"):
            list_tables([path])
    assert list(list_tables([dead], TableVersion(version=1)).paths) == [dead]


def test_links_lead_to_the_live_files(table: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(table)
    assert list(list_tables([f"{tmp_path}/link"]).paths) == [
        path.replace("lake/orders", "link") for path in uris(table)
    ]
    # Two ways to a file are one file.
    assert len(list_tables([str(table), f"{tmp_path}/link"]).paths) == len(uris(table))


@pytest.mark.parametrize("link", ["files", "folders", "a hidden table", "from above"])
def test_links_among_plain_files_lead_to_live_rows_alone(
    table: Path, tmp_path: Path, link: str
) -> None:
    """Other readers of the folder take rows that the log has deleted for rows of the table."""
    mine = tmp_path / "mine"
    mine.mkdir()
    if link == "folders":
        for folder in [*table.iterdir()][::-1]:
            if "=" in folder.name:
                (mine / folder.name).symlink_to(folder)
    else:
        place = {"a hidden table": mine / "_hidden", "from above": mine / "z"}.get(link, table)
        if place != table:
            table.rename(place)
        for ordinal, file in enumerate(place.rglob("*.parquet")):
            if "_delta_log" not in file.parts:
                (mine / f"{ordinal}.parquet").symlink_to(file)
        table = place
    wanted = [2, 3, 4]

    assert sorted(sb.read_table(mine, columns=["id"])["id"].to_pylist()) == wanted
    query = f'SELECT id FROM "{mine}" ORDER BY id'
    assert sb.sql(query)["id"].to_pylist() == wanted
    for call in (lambda: sb.probe(mine, "id", [1]), lambda: sb.inspect(mine)):
        assert len(call().files) == len(uris(table))
    # The audit also looks at files that no reader of the table reads.
    policy = sb.KeyPolicy(footer_key="f", columns=rules(id="k"))
    found = {
        os.path.realpath(it.path or "")
        for it in sb.audit(mine, policy=policy, without_keys=True).findings
    }
    assert len(found) > len(uris(table))


def test_a_version_is_one_of_a_delta_table(tmp_path: Path) -> None:
    pq.write_table(orders(1), tmp_path / "x.parquet")
    with pytest.raises(PolicyError, match="only Delta, Iceberg and Paimon tables have"):
        sb.inspect(tmp_path, version=0)


def test_verbs_that_write_and_other_tables_still_refuse(table: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match="a Delta table"):
        sb.decrypt([table, table], output=table.parent / "out")
    for inside in (next(table.glob("day=*")), table / "left-behind.parquet", f"{table}/*"):
        with pytest.raises(UnsupportedFeatureError, match="a Delta table") as caught:
            sb.add_bloom_filters(inside, columns="id")
        assert "the table's folder alone" in str(caught.value.hint)
    (table.parent / ".hoodie").mkdir()
    with pytest.raises(UnsupportedFeatureError, match="a Hudi table"):
        list_tables([str(table)])


def mapped(table: Path, mode: str) -> None:
    """A table with column mapping; `old` is a column that was dropped, `name` was renamed."""
    arrow = pa.schema(
        [
            pa.field("col-1", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("name", pa.string(), metadata={"PARQUET:field_id": "2"}),
            pa.field(
                "col-3",
                pa.list_(
                    pa.field(
                        "element",
                        pa.struct(
                            [pa.field("col-4", pa.int64(), metadata={"PARQUET:field_id": "4"})]
                        ),
                    )
                ),
                metadata={"PARQUET:field_id": "3"},
            ),
        ]
    )
    rows = [{"col-1": 1, "name": "ada", "col-3": [{"col-4": 5}]}]
    table.mkdir()
    pq.write_table(pa.Table.from_pylist(rows, arrow), table / "x.parquet")

    def of(name: str, kind: Any, number: int, physical: str) -> dict[str, Any]:
        mapping = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": physical,
        }
        return column(name, kind, **mapping)

    item = {"type": "struct", "fields": [of("price", "long", 4, "col-4")]}
    items = {"type": "array", "elementType": item, "containsNull": True}
    commit(
        table,
        0,
        *start(
            of("id", "long", 1, "col-1"),
            of("name", "string", 9, "col-9"),
            of("items", items, 3, "col-3"),
            features=["columnMapping"],
            delta_columnMapping_mode=mode,
        ),
        add("x.parquet", (table / "x.parquet").stat().st_size),
    )


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_have_the_names_of_the_table(tmp_path: Path, mode: str) -> None:
    table = tmp_path / "t"
    mapped(table, mode)
    (file,) = sb.inspect(table).files
    shown = [found.column for found in file.row_groups[0].columns]
    assert shown == ["id", "name (not in the table)", "items.list.element.price"]
    assert sb.probe(table, "items", [5]).column == "items"
    with pytest.raises(PolicyError, match="no column col-1"):
        sb.probe(table, "col-1", [5])
    with pytest.raises(PolicyError, match="column name was dropped from the table"):
        sb.probe(table, "name", ["ada"])


def test_a_policy_has_the_names_of_the_table(tmp_path: Path) -> None:
    mapped(tmp_path / "t", "name")
    path = tmp_path / "policy.toml"
    path.write_text('[footer]\nkey = "k_footer"\n[columns.id]\nkey = "k_pii"\n')
    policy = sb.KeyPolicy.load(path)
    found = sb.audit(tmp_path / "t", policy=policy, without_keys=True).findings
    assert ("column-in-clear", "id") in {(f.id, f.column) for f in found}, found


def test_a_table_without_files_is_one(tmp_path: Path) -> None:
    commit(tmp_path, 0, *start(), add("x"))
    commit(tmp_path, 1, remove("x"))
    listing = list_tables([str(tmp_path)])
    assert listing.paths == ()
    assert listing.tables[0].state.version == 1


def test_damage_in_a_schema_tells_the_table(tmp_path: Path) -> None:
    twice = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c1"}
    columns = [column(name, **twice) for name in ("a", "b")]
    mapped = start(*columns, features=["columnMapping"], delta_columnMapping_mode="name")
    commit(tmp_path, 0, *mapped, add("x"))
    with pytest.raises(FormatError, match="the same name or id in its files") as caught:
        list_tables([str(tmp_path)])
    assert caught.value.path == str(tmp_path)


def test_a_file_that_vacuum_took_is_told_with_its_reason(tmp_path: Path) -> None:
    folder = str(tmp_path / "table")
    for row in (1, 2):
        deltalake.write_deltalake(folder, pa.table({"id": [row]}), mode="overwrite")
    deltalake.DeltaTable(folder).vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=False
    )

    with pytest.raises(MissingPathError, match="no such file") as caught:
        sb.read_table(folder, version=0)

    assert "VACUUM" in (caught.value.hint or "")
    assert sb.read_table(folder)["id"].to_pylist() == [2]


def test_links_are_followed_once_for_the_files_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed: list[str] = []
    real = os.path.realpath

    def follow(path: str) -> str:
        followed.append(path)
        return real(path)

    monkeypatch.setattr(os.path, "realpath", follow)
    counts = []
    for ordinal in range(9):
        pq.write_table(orders(ordinal), tmp_path / f"{ordinal}.parquet")
        followed.clear()
        assert len(list_tables([str(tmp_path)]).paths) == ordinal + 1
        counts.append(len(followed))
    assert len(set(counts)) == 1
