"""A session set up by session_config writes and reads what the policy says; others can read it."""

from __future__ import annotations

import base64
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.encryption.spark_ddl import spark_leaves
from secure_bloom.errors import PolicyError
from secure_bloom.spark import session_config
from secure_bloom.spark.scan_metrics import rows_scanned
from testing.spark.cluster import POLICY, Cluster
from testing.spark.parquet_java import PLAIN_WRITE, bloom_filter_verdicts, only_bloom_filters
from tests.spark.typed_tables import KeyringForPyarrow, data_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ROWS = 1000
NATIVE_FILTER = {
    "parquet.bloom.filter.enabled#email": "true",
    "parquet.bloom.filter.expected.ndv#email": str(ROWS),
}


def people(spark: SparkSession) -> DataFrame:
    """A table with every column of the default policy, one value of its own in each row."""
    return spark.range(ROWS).selectExpr(
        "id",
        "concat('user', id, '@example.com') AS email",
        "concat('DE', 1000000 + id) AS iban",
        "concat('N', id) AS national_id",
        "element_at(array('DE', 'FR', 'IT'), cast(id % 3 AS int) + 1) AS country",
        "cast(id AS double) / 2 AS score",
    )


def magics(table: Path | str) -> set[bytes]:
    files = data_files(table)
    return {path.read_bytes()[:4] for path in files} | {path.read_bytes()[-4:] for path in files}


def assert_same_rows(spark: SparkSession, table: Path | str) -> None:
    written = people(spark)
    read = spark.read.parquet(str(table))
    assert read.count() == ROWS
    assert read.exceptAll(written).count() == 0


@pytest.fixture
def pyarrow_keys(policy: KeyPolicy) -> pe.CryptoFactory:
    return pe.CryptoFactory(lambda _: KeyringForPyarrow(policy.kms_client()))


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People in one encrypted file, emails under a filter of Spark's own."""
    folder = tmp_path_factory.mktemp("tables") / "people"
    people(spark).coalesce(1).write.options(**NATIVE_FILTER).parquet(str(folder))
    return folder


class TestEncryptedTables:
    def test_every_write_follows_the_policy(self, spark: SparkSession, table: Path) -> None:
        assert magics(table) == {b"PARE"}
        assert b"user7@example.com" not in data_files(table)[0].read_bytes()
        assert_same_rows(spark, table)

    def test_a_signed_footer_keeps_its_plain_columns_for_everyone(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        signed = tmp_path / "policy.toml"
        signed.write_text(POLICY.read_text().replace('mode = "encrypted"', 'mode = "plaintext"'))
        properties = KeyPolicy.load(signed).spark_properties()
        people(spark).write.options(**properties).parquet(str(tmp_path / "t"))
        assert magics(tmp_path / "t") == {b"PAR1"}
        assert_same_rows(spark, tmp_path / "t")
        plain_column = pq.read_table(data_files(tmp_path / "t")[0], columns=["id"])
        assert plain_column.num_rows > 0

    def test_a_single_key_for_the_whole_file(self, spark: SparkSession, tmp_path: Path) -> None:
        uniform = PLAIN_WRITE | {"parquet.encryption.uniform.key": "k_pii"}
        people(spark).write.options(**uniform).parquet(str(tmp_path / "t"))
        assert magics(tmp_path / "t") == {b"PARE"}
        assert_same_rows(spark, tmp_path / "t")

    def test_one_plain_table_among_encrypted_ones(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        spark.range(3).write.options(**PLAIN_WRITE).parquet(str(tmp_path / "t"))
        assert magics(tmp_path / "t") == {b"PAR1"}

    def test_a_table_without_the_policys_columns_is_refused(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        with pytest.raises(Exception, match="not in file schema column list"):
            spark.range(3).write.parquet(str(tmp_path / "t"))

    def test_no_file_tells_where_the_keyring_is(self, policy: KeyPolicy, table: Path) -> None:
        assert str(policy.kms["keyring"]).encode() not in data_files(table)[0].read_bytes()


# The development keyring is public, and git keeps no mode that would hide it.
@pytest.mark.filterwarnings("ignore::secure_bloom.encryption.kms.KeyringPermissionWarning")
class TestOtherReadersAndWriters:
    def test_pyarrow_reads_what_spark_wrote(
        self, pyarrow_keys: pe.CryptoFactory, table: Path
    ) -> None:
        keys = pyarrow_keys.file_decryption_properties(
            pe.KmsConnectionConfig(), pe.DecryptionConfiguration()
        )
        rows = pq.ParquetFile(data_files(table)[0], decryption_properties=keys).read()
        assert rows["email"].to_pylist() == [f"user{i}@example.com" for i in range(ROWS)]
        assert rows["iban"][7].as_py() == "DE1000007"

    def test_spark_reads_what_pyarrow_wrote(
        self, spark: SparkSession, pyarrow_keys: pe.CryptoFactory, tmp_path: Path
    ) -> None:
        keys = pyarrow_keys.file_encryption_properties(
            pe.KmsConnectionConfig(),
            pe.EncryptionConfiguration(footer_key="k_footer", column_keys={"k_pii": ["email"]}),
        )
        rows = pa.table({"email": ["a@example.com"], "id": [1]})
        with pq.ParquetWriter(
            tmp_path / "0.parquet", rows.schema, encryption_properties=keys
        ) as writer:
            writer.write_table(rows)
        assert [tuple(row) for row in spark.read.parquet(str(tmp_path)).collect()] == [
            ("a@example.com", 1)
        ]


class TestBloomFiltersOfSpark:
    def test_an_absent_value_is_pruned_by_the_filter_alone(
        self, spark: SparkSession, table: Path
    ) -> None:
        rows = spark.read.parquet(str(table))
        with only_bloom_filters(spark):
            assert rows_scanned(rows.where("email = 'user7@example.com'")) == ROWS
            assert rows_scanned(rows.where("email = 'user7@example.org'")) == 0
            assert rows_scanned(rows.where("iban = 'XX'")) == ROWS

    def test_parquet_java_judges_values_in_bulk(self, spark: SparkSession, table: Path) -> None:
        path = data_files(table)[0]
        present = [f"user{i}@example.com" for i in range(ROWS)]
        absent = [f"user{i}@example.org" for i in range(10_000)]
        assert bloom_filter_verdicts(spark, path, 0, "email", present) == [True] * ROWS
        verdicts = bloom_filter_verdicts(spark, path, 0, "email", absent)
        assert verdicts is not None
        assert sum(verdicts) < 1000  # asked for 1 %
        assert bloom_filter_verdicts(spark, path, 0, "iban", ["DE1000007"]) is None

    def test_parquet_java_judges_numbers(self, spark: SparkSession, tmp_path: Path) -> None:
        expressions = {
            "int": "cast(id * 2 AS int)",
            "long": "id * 2",
            "float": "cast(id AS float) / 2",
            "double": "cast(id AS double) / 2",
        }
        filters = {f"parquet.bloom.filter.enabled#{name}": "true" for name in expressions}
        rows = spark.range(ROWS).selectExpr(*(f"{sql} AS {n}" for n, sql in expressions.items()))
        rows.coalesce(1).write.options(**PLAIN_WRITE, **filters).parquet(str(tmp_path / "t"))
        path = data_files(tmp_path / "t")[0]
        probes: dict[str, list[Any]] = {
            "int": [0, 14, 15],
            "long": [0, 14, 15],
            "float": [0.0, 3.5, 3.25],
            "double": [0.0, 3.5, 3.25],
        }
        for name, values in probes.items():
            assert bloom_filter_verdicts(spark, path, 0, name, values) == [True, True, False]


@pytest.mark.usefixtures("cold_keys")
class TestRefusals:
    """What the JVM's KMS client says about a keyring that will not do."""

    SECRET = base64.b64encode(b"never to be seen").decode()

    @pytest.mark.parametrize(
        ("keyring", "complaint"),
        [
            ({"version": 1, "master_keys": {}}, "holds no master key k_footer"),
            ({"version": 2}, '"version" is not 1'),
            ({"version": 1, "master_keys": {"k_footer": SECRET}}, "k_footer does not unwrap"),
            ({"version": 1, "master_keys": {"k_footer": SECRET[:8]}}, "k_footer has 6 bytes"),
            ({"version": 1, "master_keys": {"k_footer": SECRET + "?"}}, "k_footer is not base64"),
            (f'{{"master_keys": {{"k_footer": "{SECRET}" oh', "is not JSON: line 1"),
            (None, "cannot be read on this machine"),
        ],
    )
    def test_a_bad_keyring_is_named_and_not_quoted(
        self, spark: SparkSession, table: Path, tmp_path: Path, keyring: Any, complaint: str
    ) -> None:
        path = tmp_path / "keyring.json"
        if keyring is not None:
            path.write_text(keyring if isinstance(keyring, str) else json.dumps(keyring))
        with pytest.raises(Exception, match=complaint) as caught:
            spark.read.option("secure_bloom.keyring", str(path)).parquet(str(table)).collect()
        assert str(path) in str(caught.value)
        assert self.SECRET[:7] not in str(caught.value)


class TestConfig:
    def test_reading_needs_no_key_names(self, policy: KeyPolicy) -> None:
        config = session_config(policy, writes=False)
        assert sorted(config) == [
            "spark.hadoop.parquet.crypto.factory.class",
            "spark.hadoop.parquet.encryption.kms.client.class",
            "spark.hadoop.secure_bloom.keyring",
            "spark.jars",
        ]
        assert config.items() <= session_config(POLICY).items()

    def test_the_keyring_is_found_from_any_working_directory(
        self, policy: KeyPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        keyring = session_config(policy)["spark.hadoop.secure_bloom.keyring"]
        assert Path(keyring).is_absolute()
        assert json.loads(Path(keyring).read_text())["version"] == 1

    def test_another_kms_needs_a_java_class_of_the_callers(self, policy: KeyPolicy) -> None:
        elsewhere = dataclasses.replace(policy, kms={"client": "my.kms:Client"})
        with pytest.raises(PolicyError, match=r"my\.kms:Client") as caught:
            session_config(elsewhere)
        assert "kms_client_class" in str(caught.value.hint)
        config = session_config(elsewhere, kms_client_class="com.example.Kms")
        assert config["spark.hadoop.parquet.encryption.kms.client.class"] == "com.example.Kms"
        assert "spark.jars" not in config

    @pytest.mark.parametrize("kms", [{}, {"client": "keyring"}])
    def test_a_policy_that_names_no_keyring_is_refused(
        self, policy: KeyPolicy, kms: dict[str, object]
    ) -> None:
        with pytest.raises(PolicyError, match=r"\[kms\]"):
            session_config(dataclasses.replace(policy, kms=kms))

    def test_a_policy_that_encrypts_nothing_needs_nothing(self) -> None:
        assert session_config(KeyPolicy()) == {}


def write_and_read_back(spark: SparkSession, table: str) -> dict[str, Any]:
    """Runs on the cluster: who did the work, and what the table holds."""
    people(spark).repartition(2).write.parquet(table)
    read = spark.read.parquet(table)
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    pythons = spark.sparkContext.parallelize(range(2), 2).map(lambda _: sys.executable)
    return {
        "rows": read.count(),
        "found": [row.email for row in read.where("national_id = 'N7'").collect()],
        "processes": len(tracker.getExecutorInfos()),
        "pythons": sorted(set(pythons.collect())),
    }


@pytest.mark.slow
def test_a_cluster_writes_and_reads_with_keys_its_executors_unwrap(
    cluster: Cluster, tmp_path: Path
) -> None:
    seen = cluster.run(write_and_read_back, str(tmp_path / "t"))
    assert magics(tmp_path / "t") == {b"PARE"}
    assert seen == {
        "rows": ROWS,
        "found": ["user7@example.com"],
        "processes": 3,  # the driver and two executors
        "pythons": [sys.executable],
    }


class TestColumnsThatSparkCanEncrypt:
    """The names that `policy check` asks for are those that parquet-java takes, and no others."""

    SQL = (
        "id",
        "array('a', 'b') AS tags",
        "map('k', 'v') AS props",
        "named_struct('zip', '1', 'lines', array(named_struct('text', 'x'))) AS address",
        "'a@example.com' AS `e.mail`",
    )

    def policy(self, *columns: str) -> KeyPolicy:
        rules = {path: ColumnRule(path=path, key="k_pii") for path in columns}
        kms = KeyPolicy.load(POLICY)
        return dataclasses.replace(kms, columns=rules)

    def write(self, spark: SparkSession, folder: Path, policy: KeyPolicy) -> None:
        rows = spark.range(3).selectExpr(*self.SQL)
        rows.coalesce(1).write.options(**policy.spark_properties()).parquet(str(folder))

    def test_every_leaf(self, spark: SparkSession, tmp_path: Path) -> None:
        schema = spark.range(3).selectExpr(*self.SQL).schema
        leaves = [".".join(leaf) for leaf in spark_leaves(schema.jsonValue())]
        assert leaves == [
            "id",
            "tags.list.element",
            "props.key_value.key",
            "props.key_value.value",
            "address.zip",
            "address.lines.list.element.text",
            "e.mail",
        ]
        policy = self.policy(*leaves[:-1])
        assert session_config(policy, schema=schema)
        self.write(spark, tmp_path / "t", policy)
        [path] = data_files(tmp_path / "t")
        keyring = policy.kms_client()
        [file] = sb.inspect(path, keys=keyring).files
        keys = {column.column: column.key for column in file.row_groups[0].columns}
        assert keys == {**dict.fromkeys(leaves, "k_pii"), "e.mail": None}

    @pytest.mark.parametrize("column", ["tags", "props", "address", "e.mail", "tags.element"])
    def test_what_is_refused_at_once_fails_in_sparks_tasks(
        self, spark: SparkSession, tmp_path: Path, column: str
    ) -> None:
        policy, schema = self.policy("id", column), spark.range(3).selectExpr(*self.SQL).schema
        with pytest.raises(PolicyError) as caught:
            session_config(policy, schema=schema)
        assert caught.value.column == column
        with pytest.raises(Exception, match=r"Encrypted column .* not in file schema|no such"):
            self.write(spark, tmp_path / "t", policy)
