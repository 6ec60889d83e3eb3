"""Columns of all schemas of a table: those that were dropped have each older name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import ListType, LongType, NestedField, StringType, StructType

from secure_bloom.lakes.iceberg.schema_fields import TableColumns
from tests.lakes.iceberg.tables import in_settings

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "email", StringType(), required=False),
    NestedField(
        3,
        "home",
        StructType(
            NestedField(4, "zip", StringType(), required=False),
            NestedField(5, "city", StringType(), required=False),
        ),
        required=False,
    ),
    NestedField(6, "tags", ListType(7, StringType(), element_required=False), required=False),
)


def test_dropped_columns_are_found_by_each_older_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = in_settings(tmp_path, monkeypatch).create_table("db.people", SCHEMA)
    with table.update_schema() as update:
        update.rename_column("email", "mail")
    with table.update_schema() as update:
        update.delete_column("mail")
        update.delete_column(("home", "zip"))
    with table.update_schema() as update:
        update.add_column("email", StringType())
    columns = TableColumns.of(table.metadata)
    ids = {field: table.schema().find_field(field).field_id for field in ("email", "tags.element")}
    assert columns.current[ids["tags.element"]] == ("tags", "list", "element")
    paths = [list(it) for it in columns.dropped.values()]
    assert sorted(paths) == [[("email",), ("mail",)], [("home", "zip")]]
    assert columns.ids == {*columns.current, *columns.dropped}
    for name in ("email", "mail", "home", "home.zip", "home.city", "tags.list.element", "tags"):
        assert columns.has(name), name
    for name in ("tags.element", "zip", "emai"):
        assert not columns.has(name), name
    secret = columns.secret(lambda path: path[0] == "email")
    assert secret == {ids["email"], *columns.dropped} - {
        number for number, paths in columns.dropped.items() if ("email",) not in paths
    }
    assert {columns.name(number) for number in columns.dropped} == {"mail", "home.zip"}
