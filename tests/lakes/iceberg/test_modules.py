"""Small rules of commits: conditions as file filters, names of new files, what still holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, EqualTo, Or

from secure_bloom.errors import FormatError
from secure_bloom.lakes.iceberg.commit import still_standing
from secure_bloom.lakes.iceberg.commit_table import open_table
from secure_bloom.lakes.iceberg.live_files import Manifests, group_by_spec, row_filter
from secure_bloom.lakes.iceberg.replacing_snapshot import NewDataFile, metrics, schema_of
from tests.lakes.iceberg.tables import NAME, SCHEMA, entries, in_settings, people


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqlCatalog:
    return in_settings(tmp_path, monkeypatch)


def test_conditions_become_filters_of_files() -> None:
    found = row_filter("id = 1 and (city = 'a' or not id < 5)", SCHEMA)
    assert isinstance(found, And)
    assert found.left == EqualTo("id", 1)
    assert isinstance(found.right, Or)


def test_a_file_outside_the_table_is_an_error(catalog: SqlCatalog) -> None:
    people(catalog, files=1)
    table = open_table(NAME)
    with pytest.raises(FormatError, match="outside the table"):
        table.location("file:///etc/passwd.parquet")


def test_a_replacement_stands_while_its_file_is_live(catalog: SqlCatalog) -> None:
    old = people(catalog, files=2)
    table = open_table(NAME)
    manifests, base = Manifests(table.io), table.head
    wanted = [NewDataFile(old=it, new="n", opened="n", size=1) for it in entries(old)]
    assert len(list(still_standing(table, manifests, base, wanted))) == 2
    assert metrics(wanted)["added-records"] == "200"
    assert list(group_by_spec(entries(old))) == [0]
    assert schema_of(old.spec(), table) == old.schema()
    old.delete("id < 100")
    table.refresh()
    assert len(list(still_standing(table, manifests, base, wanted))) == 1
