"""An open table has what people expect of a table: a count, a head, and other libraries' forms."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.tables import KEYRING, Mode, customers, write

ROWS = customers(60)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "x.parquet", ROWS, Mode.ENCRYPTED, row_group_size=10)


@pytest.fixture
def table(path: Path) -> Iterator[sb.Table]:
    with sb.open_table(path, keys=KEYRING) as opened:
        yield opened


def test_the_condition_is_the_second_argument(path: Path, table: sb.Table) -> None:
    wanted = table.read(where="id < 7")
    assert sb.read_table(path, "id < 7", keys=KEYRING).equals(wanted)
    assert sb.explain(path, "id < 7", keys=KEYRING).rows == 7


def test_parameters_are_values_of_a_text(path: Path, table: sb.Table) -> None:
    found = sb.read_table(path, "email = :it", parameters={"it": "user7@example.com"}, keys=KEYRING)
    assert found.column("id").to_pylist() == [7]
    assert table.count("id in :many", parameters={"many": [1, 2, 77]}) == 2
    with pytest.raises(sb.PolicyError, match="parameters need a condition given as a text"):
        table.read([("id", "=", 1)], parameters={"it": 1})


def test_rows_are_counted_and_the_first_ones_shown(table: sb.Table) -> None:
    assert table.columns == ROWS.column_names
    assert table.count() == 60
    assert table.count("id >= 50 or city = 'nowhere'") == 10
    assert table.count(limit=3) == 3
    assert table.head().equals(ROWS.slice(0, 5))
    assert table.head(2).equals(ROWS.slice(0, 2))


def test_rows_are_counted_without_the_key_of_a_column(path: Path) -> None:
    keys = sb.Keyring(master_keys={n: k for n, k in KEYRING.master_keys.items() if n != "k_pii"})
    with sb.open_table(path, keys=keys) as opened:
        assert opened.columns[0] == "email"
        assert opened.count() == 60
        assert opened.count("id = 3") == 1


def test_other_libraries_take_a_table(table: sb.Table) -> None:
    assert table.to_polars(columns="id").equals(pl.DataFrame(ROWS.select(["id"])))
    assert pa.table(table).equals(ROWS)
    assert pl.DataFrame(table).equals(pl.DataFrame(ROWS))
    stream = duckdb.from_arrow(pa.RecordBatchReader.from_stream(table))
    assert stream.aggregate("sum(id)").fetchall() == [(sum(range(60)),)]


def test_pandas_takes_a_table_or_is_named(table: sb.Table) -> None:
    if importlib.util.find_spec("pandas") is None:
        with pytest.raises(sb.MissingExtraError) as raised:
            table.to_pandas("id = 7")
        assert raised.value.hint == "pip install 'secure-bloom[pandas]'"
    else:
        assert table.to_pandas("id = 7")["email"].to_list() == ["user7@example.com"]


#: pandas is beside the environment, because every process would load it.
_PANDAS = Path(sys.prefix) / "connect"


@pytest.mark.skipif(not (_PANDAS / "pandas").is_dir(), reason="needs pandas: make install-connect")
def test_missing_values_of_a_pandas_column_are_left_out_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"email": ["a", "b", "c"], "n": [1, 2, 3]}), path)
    program = f"""
import pandas as pd, secure_bloom as sb
frame = pd.DataFrame({{"email": ["a", None, "c"], "n": [1.0, float("nan"), 3.0]}})
boxed = pd.Series(["a", pd.NA], dtype=object)
for where in ({{"email": frame["email"]}}, {{"n": frame["n"]}}, [("email", "in", frame["email"])]):
    assert sb.read_table({str(path)!r}, where)["email"].to_pylist() == ["a", "c"], where
assert sb.read_table({str(path)!r}, [("email", "in", list(boxed))]).num_rows == 1
assert sb.read_table({str(path)!r}, {{"n": frame["n"].astype("Int64")}}).num_rows == 2
assert list(sb.probe({str(path)!r}, "email", frame["email"]).values) == ["a", "c"]
try:
    sb.read_table({str(path)!r}, [("email", "=", pd.NA)])
except sb.PolicyError as error:
    assert "is null" in error.hint
print("done")
"""
    environment = {**os.environ, "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{_PANDAS}"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.stdout == "done\n", done.stderr
