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
    assert "w is a Table, and no open table" in str(caught.value)
    assert "open_table(PATH)" in str(caught.value.hint)
