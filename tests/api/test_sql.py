"""The function sql opens the tables that a query names, and closes them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.api.sql import SqlRequest, answered
from secure_bloom.errors import PolicyError
from testing.tables import KEYRING, Mode, customers, write

ROWS = customers(3)


def test_tables_of_a_query_are_open_inside_the_block(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", ROWS, Mode.ENCRYPTED)
    asked = SqlRequest("SELECT sum(id) AS s FROM t", {"T": path}, keys=KEYRING)
    with answered(asked) as (rows, _):
        assert rows.read_all().to_pylist() == [{"s": 3}]


def test_an_open_table_stays_open(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", ROWS, Mode.ENCRYPTED)
    with sb.open_table(path, keys=KEYRING) as table:
        for _ in range(2):
            assert sb.sql("SELECT count(*) AS n FROM t", {"t": table}).to_pylist() == [{"n": 3}]


def test_requests_are_checked() -> None:
    with pytest.raises(sb.PolicyError, match="query is of type int"):
        sb.sql(1)  # type: ignore[arg-type]


def test_a_table_is_joined_to_open_tables_alone(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "one.parquet")
    with sb.open_table(tmp_path) as table, pytest.raises(PolicyError) as caught:
        table.sql("select * from self join w using (id)", {"w": pa.table({"id": [1]})})  # type: ignore[dict-item]
    assert "w is a Table, wanted an open table" in str(caught.value)
    assert "open_table(PATH)" in str(caught.value.hint)


def test_one_mapping_of_policies_serves_queries_of_some_of_its_tables(tmp_path: Path) -> None:
    path = write(tmp_path / "c.parquet", customers(30), Mode.ENCRYPTED)
    (tmp_path / "p.toml").write_text('[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\n')
    query, policy = "select count(*) as n from c", tmp_path / "p.toml"
    given = {"c": policy, "orders": policy}
    assert sb.sql(query, {"c": path}, policy=given, keys=KEYRING).to_pylist() == [{"n": 30}]
    # The name of this table may be misspelt: it would be read without its policy.
    with pytest.raises(sb.PolicyError, match="given for orders"):
        sb.sql(query, {"c": path}, policy={"*": policy, "orders": policy}, keys=KEYRING)


@pytest.mark.parametrize("query", ["select (1,, 2)", "select 1)"])
def test_a_sign_that_the_parser_does_not_take_is_shown(query: str) -> None:
    with pytest.raises(sb.PolicyError, match="cannot be parsed") as caught:
        sb.sql(query)
    assert "..." not in str(caught.value)


def test_the_path_of_a_keyring_names_the_call_that_loads_it(tmp_path: Path) -> None:
    with pytest.raises(sb.PolicyError, match="keys is of type") as caught:
        sb.read_table(tmp_path, keys=tmp_path / "keyring.json")  # type: ignore[arg-type]
    assert "Keyring.load(PATH)" in str(caught.value.hint)
