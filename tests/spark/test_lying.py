"""Files that lie: parquet-java as a witness of a full scan, and the data source beside it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import secure_bloom as sb
from secure_bloom.spark import register
from testing.spark.cluster import POLICY
from tests.lying.honest import SHAPES
from tests.lying.trials import HONEST, Trial, is_true, trials
from tests.spark.versions import since_4_0

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
#: What parquet-java does not read either: rows of a full scan, or an error that says why.
SMALLER_DICTIONARIES = [
    "DictionaryPageHeader.num_values: one less",
    "DictionaryPageHeader.num_values: one",
]
KEYS = sb.KeyPolicy.load(POLICY).kms_client()
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


@pytest.mark.slow  # `tests/lying` reads them without Spark, by the same plan
@since_4_0
def test_the_data_source_gives_the_rows_that_parquet_java_scans(
    spark: SparkSession, lying: list[Trial]
) -> None:
    register(spark)
    assert len(lying) == len(LIES)
    scanned = spark.read.parquet(*(str(trial.path) for trial in lying))
    by_file = defaultdict(list)
    for row in scanned.select(*COLUMNS, "_metadata.file_name").collect():
        by_file[row.file_name].append(row)
    for trial in lying:
        assert _rows(by_file[trial.path.name]) == _rows(HONEST), trial.lie
        source = spark.read.format("secure_bloom").load(str(trial.path)).select(*COLUMNS)
        present = HONEST[65][trial.column]
        text = f"'{present}'" if isinstance(present, str) else str(present)
        found = source.where(f"{trial.column} = {text}").collect()
        wanted = [row for row in HONEST if is_true((trial.column, "=", present), row)]
        assert _rows(found) == _rows(wanted), trial.lie


def _collected(frame: DataFrame) -> tuple[list[Any], str | None]:
    """The rows, or the text of the error."""
    try:
        return frame.collect(), None
    except Exception as error:
        return [], str(error)


@since_4_0
def test_a_dictionary_that_says_less_than_it_has_loses_no_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    register(spark)
    honest, tried = SHAPES["v1"].write(tmp_path / "honest"), 0
    for trial in trials(honest, "v1", tmp_path, SMALLER_DICTIONARIES, every_column=False):
        tried += 1
        path = trial.path.rename(tmp_path / f"{tried}.parquet")
        source = spark.read.format("secure_bloom").load(str(path)).select(*COLUMNS)
        present = HONEST[65][trial.column]
        text = f"'{present}'" if isinstance(present, str) else str(present)
        found, error = _collected(source.where(f"{trial.column} = {text}"))
        if error is not None:
            assert "FormatError" in error, trial.lie
            continue
        wanted = [row for row in HONEST if is_true((trial.column, "=", present), row)]
        assert _rows(found) == _rows(wanted), trial.lie
    assert tried == len(SMALLER_DICTIONARIES)


@pytest.mark.parametrize("version", ["v1", pytest.param("v2", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "encryption",
    [
        {},
        {
            "parquet.encryption.footer.key": "",
            "parquet.encryption.column.keys": "",
            "parquet.encryption.uniform.key": "k_pii",
        },
    ],
    ids=["columns of the policy", "uniform"],
)
def test_the_page_indexes_that_spark_encrypts_are_believed(
    spark: SparkSession, tmp_path: Path, version: str, encryption: dict[str, str]
) -> None:
    """What contradicts itself is not believed: sound indexes of another writer must not."""
    options = {
        **encryption,
        "parquet.writer.version": version,
        "parquet.page.row.count.limit": "50",
    }
    columns = [
        "id",
        "cast(id % 7 as string) as text",
        "nullif(id % 5, 0) as few",
        "array(id) as xs",
    ]
    table = spark.range(0, 600, numPartitions=1).selectExpr(*columns)
    if not encryption:
        options |= {
            "parquet.encryption.footer.key": "k_footer",
            "parquet.encryption.column.keys": "k_pii:id,few,xs.list.element",
        }
    table.write.options(**options).parquet(str(tmp_path / "t"))
    given: dict[str, Any] = {"where": [("id", "=", 333)], "keys": KEYS}
    report = sb.explain(tmp_path / "t", **given)
    assert [g.ranges for f in report.files for g in f.row_groups] == [((300, 350),)]
    (row,) = sb.read_table(tmp_path / "t", **given).to_pylist()
    assert row == {"id": 333, "text": "4", "few": 3, "xs": [333]}
    found = sb.audit(tmp_path / "t", policy=sb.KeyPolicy(), keys=KEYS, check_values=True).findings
    assert [finding.id for finding in found if finding.id.startswith("impossible")] == []
