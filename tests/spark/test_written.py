"""What Spark writes, type by type and key scheme by key scheme, takes filters and stays right."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.adding.report import AddReport
from secure_bloom.spark.scan_metrics import collect_scanned, rows_scanned
from testing.columns import COLUMNS, Column
from testing.spark.cluster import POLICY
from testing.spark.parquet_java import PLAIN_WRITE, only_bloom_filters
from testing.spark.verdicts import check_verdicts
from tests.spark.lookups import lookup
from tests.spark.typed_tables import KeyringForPyarrow, copy, data_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.spark

KEYS = sb.KeyPolicy.load(POLICY).kms_client()
#: Their values without the nulls fill one block of 256 bits to about 10 % false positives.
ROWS = 49
#: What Spark cannot read, or writes in another unit.
_LEFT_OUT = ("FLOAT16", "UUID", "time ns", "timestamp ns")
#: The types that Spark writes, each under the name of its column.
WRITABLE = {
    f"c{i}": column
    for i, column in enumerate(COLUMNS)
    if column.declare is None
    and not any(column.options.values())
    and not any(word in column.name for word in _LEFT_OUT)
    and column.arrow != pa.time32("ms")
}
LEAVES = {name: column.leaf.replace("x", name, 1) for name, column in WRITABLE.items()}
SOME_COLUMNS = {
    "parquet.encryption.footer.key": "k_footer",
    "parquet.encryption.column.keys": "k_pii:" + ",".join(list(LEAVES.values())[::2]),
}
WRITES = {
    "plain, INT96": {**PLAIN_WRITE},
    "column keys, delta encodings": {**SOME_COLUMNS, "parquet.writer.version": "v2"},
    "uniform, no dictionary": {
        **PLAIN_WRITE,
        "parquet.encryption.uniform.key": "k_pii",
        "parquet.enable.dictionary": "false",
    },
    "complete columns, CTR, 256 bits": {
        **SOME_COLUMNS,
        "parquet.encryption.complete.columns": "true",
        "parquet.encryption.algorithm": "AES_GCM_CTR_V1",
        "parquet.encryption.data.key.length.bits": "256",
    },
    "complete columns, signed, single wrapping, 192 bits": {
        **SOME_COLUMNS,
        "parquet.encryption.complete.columns": "true",
        "parquet.encryption.plaintext.footer": "true",
        "parquet.encryption.double.wrapping": "false",
        "parquet.encryption.data.key.length.bits": "192",
    },
}
#: Under which master keys the filters must be; None is in clear.
MASTER_KEYS: dict[str, set[str | None]] = {
    "plain, INT96": {None},
    "column keys, delta encodings": {"k_pii", None},
    "uniform, no dictionary": {"k_pii"},
    "complete columns, CTR, 256 bits": {"k_pii", "k_footer"},
    "complete columns, signed, single wrapping, 192 bits": {"k_pii", "k_footer"},
}


@pytest.fixture(scope="module", autouse=True)
def in_utc(spark: SparkSession) -> Iterator[None]:
    settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.timeType.enabled": "true"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in [*settings, "spark.sql.parquet.outputTimestampType"]:
        spark.conf.unset(name)


@pytest.fixture(scope="module")
def every_type(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """A row of each type for each number, nulls between them."""
    path = tmp_path_factory.mktemp("every-type") / "x.parquet"
    columns = {name: column.array(_numbers(column)) for name, column in WRITABLE.items()}
    pq.write_table(pa.table({"id": range(ROWS), **columns}), path, store_schema=False)
    return spark.read.parquet(str(path))


def _numbers(column: Column) -> list[int | None]:
    return [None if i % 7 == 3 else n for i, n in enumerate(column.values(0, ROWS))]


#: What the others have as well: column keys, a uniform key, a signed footer.
_SLOW = (
    "column keys, delta encodings",
    "uniform, no dictionary",
    "complete columns, signed, single wrapping, 192 bits",
)


@pytest.mark.parametrize(
    "write",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in _SLOW)) for name in WRITES],
)
def test_every_type_that_spark_writes(
    spark: SparkSession, every_type: DataFrame, tmp_path: Path, write: str
) -> None:
    timestamps = "INT96" if "INT96" in write else "TIMESTAMP_MICROS"
    spark.conf.set("spark.sql.parquet.outputTimestampType", timestamps)
    table = tmp_path / "table"
    every_type.coalesce(1).write.options(**WRITES[write]).parquet(str(table))
    rows = _rows(spark, table)
    options = dict.fromkeys(LEAVES.values(), sb.BloomFilterOptions(fpp=0.1))
    (report,) = sb.add_bloom_filters(table, columns=options, keys=KEYS).files
    assert report.error is None
    assert {done.key for done in report.filters} == MASTER_KEYS[write]
    assert _rows(spark, table) == rows
    (file,) = data_files(table)
    passed = [
        check_verdicts(spark, file, LEAVES[name], column, _present(column), KEYS)
        for name, column in WRITABLE.items()
    ]
    assert sum(map(bool, passed)) > len(passed) / 2
    _check_lookups(spark, table)


def _present(column: Column) -> list[int]:
    return sorted({n for n in _numbers(column) if n is not None})


def _rows(spark: SparkSession, table: Path) -> list[Row]:
    return spark.read.parquet(str(table)).orderBy("id").collect()


def _check_lookups(spark: SparkSession, folder: Path) -> None:
    """A value of each column is found as often as it is there."""
    table = spark.read.parquet(str(folder))
    wanted = {name: _present(column)[-1] for name, column in WRITABLE.items()}
    queries = (
        lookup(table, WRITABLE[name], number, name).selectExpr(f"'{name}' AS name")
        for name, number in wanted.items()
    )
    with only_bloom_filters(spark):
        found = Counter(
            row.name for row in reduce(lambda one, other: one.unionAll(other), queries).collect()
        )
    assert found == {
        name: _numbers(WRITABLE[name]).count(number) for name, number in wanted.items()
    }


EXTERNAL = {
    "parquet.encryption.footer.key": "k_footer",
    "parquet.encryption.column.keys": "k_pii:email",
    "parquet.encryption.key.material.store.internally": "false",
}


@pytest.fixture(scope="module")
def external(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files whose keys stand in `_KEY_MATERIAL_FOR_*.json` beside them."""
    table = tmp_path_factory.mktemp("external") / "table"
    _people(spark).write.options(**EXTERNAL).parquet(str(table))
    assert len(list(table.glob("_KEY_MATERIAL_FOR_*.json"))) == 2
    return table


class TestKeyMaterialOutsideTheFile:
    @pytest.mark.parametrize("in_place", [False, True])
    def test_filters_go_into_the_files(
        self, spark: SparkSession, external: Path, tmp_path: Path, in_place: bool
    ) -> None:
        table = copy(external, tmp_path / "table")
        self._check(
            spark,
            table,
            sb.add_bloom_filters(table, columns=["email", "city"], keys=KEYS, in_place=in_place),
        )

    def test_key_material_follows_to_another_folder(
        self, spark: SparkSession, external: Path, tmp_path: Path
    ) -> None:
        report = sb.add_bloom_filters(
            external, columns=["email", "city"], keys=KEYS, output=tmp_path / "new" / "table"
        )
        self._check(spark, tmp_path / "new" / "table", report)

    def _check(self, spark: SparkSession, table: Path, report: AddReport) -> None:
        assert not report.failed
        assert {done.key for file in report.files for done in file.filters} == {"k_pii", None}
        assert spark.read.parquet(str(table)).exceptAll(_people(spark)).isEmpty()
        rows = [row for file in data_files(table) for row in _read_external(file).to_pylist()]
        assert sorted(row["id"] for row in rows) == list(range(200))
        verdicts = sb.probe(table, "email", ["user7@example.com", "nobody"], keys=KEYS).files
        said = [group.verdicts for file in verdicts for group in file.row_groups]
        assert [each["user7@example.com"] for each in said] == ["maybe", "absent"]
        assert {each["nobody"] for each in said} == {"absent"}
        found = spark.read.parquet(str(table)).where("email = 'user7@example.com'")
        with only_bloom_filters(spark):
            rows, scanned = collect_scanned(found)
        assert ([row.id for row in rows], scanned) == ([7], 100)

    def test_without_it_the_error_says_what_is_missing(
        self, external: Path, tmp_path: Path
    ) -> None:
        file = data_files(external)[0]
        shutil.copy(file, tmp_path / "moved.parquet")
        (failed,) = sb.add_bloom_filters(tmp_path, columns=["email"], keys=KEYS).failed
        assert "_KEY_MATERIAL_FOR_moved.parquet.json" in str(failed.error)

    def test_spark_reads_what_pyarrow_wrote_with_ours_in_it(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        path = tmp_path / "x.parquet"
        configuration = pe.EncryptionConfiguration(
            footer_key="k_footer", column_keys={"k_pii": ["email"]}, internal_key_material=False
        )
        properties = _factory().file_encryption_properties(
            pe.KmsConnectionConfig(), configuration, str(path)
        )
        people = pa.table({"id": range(200), "email": [f"user{i}@example.com" for i in range(200)]})
        pq.write_table(people, path, encryption_properties=properties)
        assert not sb.add_bloom_filters(path, columns=["email"], keys=KEYS).failed
        found = spark.read.parquet(str(path))
        assert [tuple(row) for row in found.orderBy("id").collect()] == [
            tuple(row.values()) for row in people.to_pylist()
        ]
        with only_bloom_filters(spark):
            assert rows_scanned(found.where("email = 'nobody'")) == 0
            assert found.where("email = 'user7@example.com'").count() == 1


def _people(spark: SparkSession) -> DataFrame:
    """Two partitions: the first has the ids below 100."""
    return spark.range(0, 200, 1, 2).selectExpr(
        "id",
        "concat('user', id, '@example.com') AS email",
        "if(id % 2 = 0, 'rome', 'oslo') AS city",
    )


def _factory() -> pe.CryptoFactory:
    return pe.CryptoFactory(lambda _: KeyringForPyarrow(KEYS))


def _read_external(path: Path) -> pa.Table:
    properties = _factory().file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration(), str(path)
    )
    return pq.ParquetFile(path, decryption_properties=properties).read()
