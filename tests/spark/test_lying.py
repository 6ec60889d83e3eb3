"""Files that lie: parquet-java as a witness of a full scan, and the data source beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from secure_bloom.spark import register
from tests.lying.honest import SHAPES
from tests.lying.trials import HONEST, Trial, is_true, trials

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LIES = [
    "Statistics.null_count: all",
    "ColumnIndex.null_pages: all, with counts of -1 and without bounds",
    "ColumnIndex bounds: in another order than it says",
    "OffsetIndex and ColumnIndex leave out a page: first",
    "OffsetIndex: the pages of another column",
    "encoding_stats: plain pages are left out",
    "ColumnMetaData.dictionary_page_offset: none",
]
COLUMNS = ["number", "optional", "word", "few", "mixed"]


@pytest.fixture(scope="module")
def lying(tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    """A file for each of the lies."""
    folder = tmp_path_factory.mktemp("lying")
    honest, found = SHAPES["v1"].write(folder / "honest"), []
    for trial in trials(honest, "v1", folder, LIES, every_column=False):
        path = trial.path.rename(folder / f"{len(found)}.parquet")
        found.append(Trial(trial.shape, trial.lie, trial.column, path))
    return found


def _rows(rows: list[Any]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in COLUMNS) for row in rows), key=repr)


def test_the_data_source_gives_the_rows_that_parquet_java_scans(
    spark: SparkSession, lying: list[Trial]
) -> None:
    register(spark)
    assert len(lying) == len(LIES)
    for trial in lying:
        scanned = spark.read.parquet(str(trial.path)).select(*COLUMNS).collect()
        assert _rows(scanned) == _rows(HONEST), trial.lie
        source = spark.read.format("secure_bloom").load(str(trial.path)).select(*COLUMNS)
        present = HONEST[65][trial.column]
        text = f"'{present}'" if isinstance(present, str) else str(present)
        found = source.where(f"{trial.column} = {text}").collect()
        wanted = [row for row in HONEST if is_true((trial.column, "=", present), row)]
        assert _rows(found) == _rows(wanted), trial.lie
