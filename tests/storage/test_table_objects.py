"""Tables of deltalake and pyiceberg are paths, ~ is the home; other objects say what to give."""

from __future__ import annotations

import shutil
from pathlib import Path

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.storage.table_objects import (
    name_in_catalog,
    options_of,
    refused_path,
    table_path,
    version_of,
)
from testing.delta_tables import write_table
from testing.iceberg_tables import iceberg


def test_a_delta_table_is_read_at_its_own_version(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "t", versions=3)
    first = deltalake.DeltaTable(folder, version=0)
    assert sb.read_table(first).num_rows == 6
    assert sb.read_table(first, version=1).num_rows == 12
    assert sb.read_table(deltalake.DeltaTable(folder)).num_rows == 18
    assert sb.inspect(first).files
    with sb.open_table(first) as table:
        assert table.count() == 6
    assert (version_of(first), table_path(first), options_of(first)) == (0, first.table_uri, {})


def test_a_delta_table_gets_filters(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "t", versions=1)
    column = deltalake.DeltaTable(folder).schema().fields[0].name
    done = sb.add_bloom_filters(deltalake.DeltaTable(folder), columns=column)
    assert {file.status for file in done.files} == {"added"}
    assert deltalake.DeltaTable(folder).version() == 1


def test_an_iceberg_table_is_a_path(tmp_path: Path) -> None:
    table = iceberg(tmp_path)
    assert sb.read_table(table, "id = 3")["text"].to_pylist() == ["u0"]
    assert sb.inspect(table).files
    assert name_in_catalog(table) == "iceberg://tests/db.t"
    assert name_in_catalog("x") is None


def test_the_home_of_the_user_is_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    pq.write_table(pa.table({"n": [1]}), tmp_path / "x.parquet")
    shutil.copytree(Path("keys"), tmp_path / "keys")
    for path in ("~/x.parquet", Path("~/x.parquet"), "~"):
        assert sb.read_table(path).num_rows == 1
    assert sb.KeyPolicy.load("~/keys/policy.toml").columns
    assert sb.Keyring.load("~/keys/dev-keyring.json").master_keys


def test_the_hint_for_a_frame_of_spark_names_what_adding_takes() -> None:
    frame = object.__new__(pytest.importorskip("pyspark.sql").DataFrame)
    hint = str(refused_path(frame).hint)
    assert "give the path of the frame's table" in hint
    assert "on Spark the table's name" in hint


@pytest.mark.parametrize("kind", ["polars", "lazy", "arrow", "dataset", "table", "number"])
def test_what_is_no_path_says_what_to_give(kind: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "x.parquet")
    given: object = {
        "polars": pl.DataFrame({"n": [1]}),
        "lazy": pl.LazyFrame({"n": [1]}),
        "arrow": pa.table({"n": [1]}),
        "dataset": ds.dataset(tmp_path),
        "table": sb.open_table(tmp_path),
        "number": 7,
    }[kind]
    with pytest.raises(sb.PolicyError, match="paths are of type") as caught:
        sb.read_table(given)  # type: ignore[arg-type]
    assert bool(caught.value.hint) is (kind != "number")
    assert caught.value.hint == refused_path(given).hint
