"""Spark reads every type, encoding and mode as before; parquet-java's verdicts are ours."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import secure_bloom as sb
from secure_bloom.spark.scan_metrics import collect_scanned
from testing.columns import COLUMNS, Column
from testing.compatibility import Claim, Compatibility, Shown
from testing.spark.parquet_java import forget_keys, only_bloom_filters
from testing.spark.verdicts import check_verdicts
from testing.tables import KEYRING, Mode, keyring_json
from testing.typed_files import ROWS_PER_GROUP, TypedFile, typed_file
from tests.interop.conftest import Modes
from tests.spark.lookups import lookup
from tests.spark.versions import IS_OF_THE_PAGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

pytestmark = pytest.mark.spark

#: One block of 256 bits: about a tenth of the absent values pass, so that bits are compared.
FPP = 0.1
ROW_GROUPS = 2
#: Where Spark's `=` becomes parquet-java's, and so asks a filter; it leaves all others alone.
LOOKED_UP = {
    "INT32 8 bits",
    "INT32 16 bits",
    "INT32 32 bits",
    "INT32 date",
    "INT32 decimal(9, 2)",
    "INT64 64 bits",
    "INT64 decimal(18, 2)",
    "INT64 in a struct",
    "INT64 time us",
    "INT64 timestamp ms UTC",
    "INT64 timestamp us UTC",
    "FLOAT",
    "DOUBLE",
    "FIXED_LEN_BYTE_ARRAY decimal(9, 2)",
    "FIXED_LEN_BYTE_ARRAY decimal(18, 2)",
    "FIXED_LEN_BYTE_ARRAY decimal(38, 2)",
    "BYTE_ARRAY",
    "BYTE_ARRAY string",
}
#: Tried in every run: physical types, what Spark reads in an odd way, and what is nested.
#: `test_written` has the other types that Spark writes, `tests/interop` all of them.
IN_EVERY_RUN = {
    "INT32 unsigned 32 bits",
    "INT64 timestamp ns UTC",
    "INT96 timestamp",
    "FLOAT",
    "FIXED_LEN_BYTE_ARRAY UUID",
    "BYTE_ARRAY string",
    "BYTE_ARRAY decimal(9, 2)",
    "INT64 in a list",
}
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timeType.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


@pytest.fixture(scope="module", autouse=True)
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The session with the keys of ``testing.tables``, in UTC, with the type TIME."""
    keyring = tmp_path_factory.mktemp("keys") / "keyring.json"
    keyring.write_text(keyring_json())
    settings = {**SETTINGS, "secure_bloom.keyring": str(keyring)}
    forget_keys(spark)
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in settings:
        spark.conf.unset(name)
    forget_keys(spark)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A file without filters, and the path of its copy with them."""

    before: TypedFile
    after: Path


def _pairs(folder: Path, column: Column, encoding: str, modes: tuple[Mode, ...]) -> list[Pair]:
    """The type in one encoding, in some modes."""
    files = [
        typed_file(_made(folder / encoding), column, encoding, mode, row_groups=ROW_GROUPS)
        for mode in modes
    ]
    output = folder / f"{encoding}-filtered"
    options = {column.leaf: sb.BloomFilterOptions(fpp=FPP)}
    report = sb.add_bloom_filters(folder / encoding, columns=options, keys=KEYRING, output=output)
    assert not report.failed
    return [Pair(before=file, after=output / file.path.name) for file in files]


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _read(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """The files as one table; the first one says what the column is, for all of them."""
    return spark.read.schema(_schema(spark, paths[0])).parquet(*map(str, paths))


@cache
def _schema(spark: SparkSession, path: Path) -> StructType:
    """What Spark infers in a job of its own, once for each type."""
    return spark.read.parquet(str(path)).schema


def _rows(spark: SparkSession, paths: Sequence[Path]) -> dict[Path, list[Any]]:
    """The rows of each file, in its order."""
    rows = defaultdict(list)
    for path, value in _read(spark, paths).selectExpr("_metadata.file_path", "x").collect():
        rows[Path(path.removeprefix("file:"))].append(value)
    return rows


def _check_lookups(spark: SparkSession, column: Column, pairs: list[Pair]) -> None:
    """Every value is found as often as it is there, and by the filters alone where Spark asks."""
    table = spark.read.schema(_schema(spark, pairs[0].before.path)).parquet(
        *(str(pair.after) for pair in pairs)
    )
    sample = pairs[0].before.sample(4)
    queries = (
        lookup(table, column, n).selectExpr("_metadata.file_path", f"{n} AS n") for n in sample
    )
    union = next(queries)
    for query in queries:
        union = union.unionAll(query)
    with only_bloom_filters(spark):
        rows, scanned = collect_scanned(union)
    found = Counter((Path(path.removeprefix("file:")), n) for path, n in rows)
    assert found == {
        (pair.after, n): pair.before.present.count(n) for pair in pairs for n in sample
    }
    is_pruned = scanned < len(sample) * len(pairs) * ROW_GROUPS * ROWS_PER_GROUP
    assert is_pruned is (column.name in LOOKED_UP)


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(
            column,
            id=column.name.replace(" ", "_"),
            marks=[] if column.name in IN_EVERY_RUN else pytest.mark.slow,
        )
        for column in COLUMNS
    ],
)
def test_spark_agrees(
    spark: SparkSession,
    tmp_path: Path,
    compatibility: Compatibility,
    modes: Modes,
    column: Column,
) -> None:
    by_encoding = {
        encoding: _pairs(tmp_path, column, encoding, modes(column, encoding))
        for encoding in column.encodings
    }
    readable = _readable(spark, by_encoding)
    passed = 0
    for encoding, pairs in by_encoding.items():
        shown = [Shown.VERDICTS]
        shown += [Shown.ROWS, Shown.LOOKUPS] if encoding in readable else [Shown.NOT_READ]
        for pair in pairs:
            present = pair.before.sample(36)
            passed += check_verdicts(spark, pair.after, column.leaf, column, present)
            for what in shown:
                mode = pair.before.mode.value
                if IS_OF_THE_PAGE:
                    compatibility.record(Claim(column.name, encoding, mode, "Spark", what))
    # Without false positives the bits could differ unnoticed.
    assert passed > 0
    if readable:
        _check_lookups(spark, column, [pair for e in readable for pair in by_encoding[e]])


def _readable(spark: SparkSession, by_encoding: dict[str, list[Pair]]) -> list[str]:
    """The encodings that Spark can read: all, if all files at once, else those it reads alone.

    What it reads with filters must be what it reads without.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    pairs = [pair for some in by_encoding.values() for pair in some]
    try:
        rows = _rows(spark, [path for pair in pairs for path in (pair.before.path, pair.after)])
    except (PySparkException, Py4JJavaError):
        if len(by_encoding) == 1:
            return []
        alone = (_readable(spark, {encoding: some}) for encoding, some in by_encoding.items())
        return list(itertools.chain(*alone))
    for pair in pairs:
        assert rows[pair.before.path]
        assert rows[pair.after] == rows[pair.before.path]
    return list(by_encoding)
