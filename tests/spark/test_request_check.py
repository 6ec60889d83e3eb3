"""A request is held against a few footers, and against all where those do not settle it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import FilesFailedError, PolicyError
from secure_bloom.spark import add_bloom_filters, request_check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four files, of which the first and the third are looked at first.

    The second has a column that the others lack, and one in another type.
    """
    monkeypatch.setattr(request_check, "_FEW", 2)
    ids = {"id": [1]}
    for i, columns in enumerate((ids, {"id": [True], "late": [3]}, ids, ids)):
        pq.write_table(pa.table(columns), tmp_path / f"{i}.parquet")
    return tmp_path


def test_a_column_of_one_late_file_is_found(spark: SparkSession, table: Path) -> None:
    report = add_bloom_filters(spark, table, columns=["late"])
    done = {Path(row.path).name: row.action for row in report.collect()}
    assert done == {
        "0.parquet": "skipped",
        "1.parquet": "added",
        "2.parquet": "skipped",
        "3.parquet": "skipped",
    }


def test_a_column_that_no_file_has_is_told_before_any_is_written(
    spark: SparkSession, table: Path
) -> None:
    before = {path: path.stat().st_ino for path in table.iterdir()}
    with pytest.raises(PolicyError, match="no column lat") as caught:
        add_bloom_filters(spark, table, columns=["lat"])
    assert "late" in str(caught.value.hint)
    assert {path: path.stat().st_ino for path in table.iterdir()} == before


def test_what_only_one_file_refuses_fails_that_file(spark: SparkSession, table: Path) -> None:
    with pytest.raises(FilesFailedError, match=r"1 of 4 files failed.*BOOLEAN"):
        add_bloom_filters(spark, table, columns=["id"])
