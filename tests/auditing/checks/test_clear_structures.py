"""What `clear_structures` says of files of real writers, and of one text among many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from testing.tables import customers, write
from tests.auditing.datasets import ids
from tests.auditing.examples import Example, set_key_metadata, sound
from tests.auditing.ways_in_structures import said


def _by_duckdb(path: Path) -> None:
    table = customers(50)
    duckdb.connect().from_arrow(table).write_parquet(str(path))


def _by_polars(path: Path) -> None:
    frame = pl.from_arrow(customers(50))
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(path)


def _by_pyarrow(path: Path) -> None:
    write(path, customers(50), write_page_index=True, data_page_version="2.0")


@pytest.mark.parametrize("writer", [_by_duckdb, _by_polars, _by_pyarrow])
def test_files_of_other_writers_have_no_unknown_fields(tmp_path: Path, writer: Any) -> None:
    writer(tmp_path / "x.parquet")
    found = ids(Example(path=tmp_path).audit(check_values=True))
    assert "column-in-clear" in found
    assert "unchecked-fields" not in found


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("DEFAULT", "DEFAULT"),
        ("https://vault.example:8200/v1/transit?x=1", "eu-1"),
        ("kms.eu-west-1.amazonaws.com", "arn:aws:kms:eu-west-1:1234:key/12-34"),
        ("vault:8200", "team_a"),
    ],
)
def test_addresses_and_names_of_kms_are_no_finding(tmp_path: Path, address: str, name: str) -> None:
    path = sound(tmp_path)
    set_key_metadata(path, "email", said(kmsInstanceURL=address, kmsInstanceID=name))
    assert ids(Example(path=path).audit()) == []


def test_each_text_of_a_schema_counts_for_itself(tmp_path: Path) -> None:
    """One e-mail in the schema of a wide table is no mention in a long text."""
    fields = [pa.field(f"column_{i}", pa.int64(), metadata={"note": f"{i}"}) for i in range(400)]
    schema = pa.schema([*fields, pa.field("email", pa.string())], {"by": '{"to": "x@post.fi"}'})
    columns = [*(pa.array([i]) for i in range(400)), pa.array(["x@post.fi"])]
    path = sound(tmp_path, table=pa.table(columns, schema=schema), column_keys={"k_pii": ["email"]})
    found = ids(Example(path=path).audit(check_values=True))
    assert "values-in-clear" in found
