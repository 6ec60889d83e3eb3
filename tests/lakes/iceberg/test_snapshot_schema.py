"""A snapshot that is asked for has its own schema, also while it is the current one."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import secure_bloom as sb
from tests.lakes.iceberg.tables import NAME, people


def test_the_current_snapshot_has_its_own_schema_where_it_is_asked_for(
    catalog: SqlCatalog,
) -> None:
    table = people(catalog, files=1)
    with table.update_schema() as update:
        update.delete_column("city")
        update.rename_column("email", "mail")
        update.add_column("late", update._schema.find_type("id"))
    current = table.refresh().current_snapshot()
    assert current is not None
    judged = table.scan(snapshot_id=current.snapshot_id).to_arrow()
    assert judged.column_names == ["id", "email", "city"]
    for path in (NAME, table.metadata_location):
        for at in ({"snapshot": current.snapshot_id}, {"timestamp": "2100-01-01T00:00:00Z"}):
            found = sb.read_table(path, **at)
            assert found.to_pylist() == judged.to_pylist()
            assert sb.open_table(path, **at).columns == judged.column_names
        assert sb.read_table(path).column_names == table.scan().to_arrow().column_names


@pytest.mark.parametrize(("column", "value"), [("city", "city1"), ("email", "user7@example.org")])
def test_conditions_name_the_columns_of_the_snapshot(
    catalog: SqlCatalog, column: str, value: str
) -> None:
    table = people(catalog, files=1)
    with table.update_schema() as update:
        update.delete_column("city")
        update.rename_column("email", "mail")
    snapshot = table.refresh().metadata.current_snapshot_id
    # pyiceberg itself cannot evaluate the condition: it binds it to the current schema.
    judged = table.scan(snapshot_id=snapshot).to_arrow().filter(pc.field(column) == value)
    where = f"{column} = '{value}'"
    assert sb.read_table(NAME, where, snapshot=snapshot).to_pylist() == judged.to_pylist()
    with pytest.raises(sb.PolicyError, match="there is no column"):
        sb.read_table(NAME, where)
