"""Executors ask a KMS for no key that only a file names, and open old files by an old policy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.spark import add_bloom_filters, audit, reencrypt, register, rotate_keys
from testing.recording_kms import EVERY_KEY, FOREIGN
from testing.tables import customers, keyring_json
from tests.spark.versions import since_4_0

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

KMS = '[kms]\nclient = "testing.recording_kms:RecordingKms"\n'
KEYS = '[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\nbloom = true\n'


def errors(rows: list[Row]) -> str:
    return " ".join(str(row.error) for row in rows)


@pytest.fixture
def forged(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "t"
    folder.mkdir()
    pq.write_table(customers(20), folder / "0.parquet")
    (tmp_path / "p.toml").write_text(KMS + KEYS)
    foreign = sb.KeyPolicy(footer_key=FOREIGN)
    assert not sb.reencrypt(folder, policy=foreign, keys=EVERY_KEY).failed
    before = (folder / "0.parquet").read_bytes()
    yield folder
    assert (folder / "0.parquet").read_bytes() == before


def test_jobs_report_the_key(spark: SparkSession, forged: Path) -> None:
    policy, told = forged.parent / "p.toml", f"does not name master key '{FOREIGN}'"
    for job in (reencrypt, rotate_keys):
        report = job(spark, str(forged), policy, on_error="report")
        assert told in errors(report.select("error").collect())
    with pytest.raises(sb.SecureBloomError, match="does not name master key"):
        add_bloom_filters(spark, str(forged), policy)
    found = [row.message for row in audit(spark, str(forged), policy).collect()]
    assert any(told in message for message in found)


@since_4_0
def test_the_data_source_refuses_the_file(spark: SparkSession, forged: Path) -> None:
    register(spark)
    reader = spark.read.format("secure_bloom").option("policy", str(forged.parent / "p.toml"))
    with pytest.raises(Exception, match="does not name master key"):
        reader.load(str(forged)).collect()


@pytest.mark.parametrize("job", [reencrypt, rotate_keys])
def test_an_old_policy_opens_the_old_files(
    spark: SparkSession, tmp_path: Path, job: object
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    for name, byte in (("old", 1), ("new", 2)):
        keys = dict.fromkeys(("k_footer", "k_pii"), bytes([byte]) * 16)
        (tmp_path / f"{name}.json").write_text(keyring_json(keys))
        (tmp_path / f"{name}.json").chmod(0o600)
        kms = f'[kms]\nclient = "keyring"\nkeyring = "{name}.json"\n'
        (tmp_path / f"{name}.toml").write_text(kms + KEYS)
    pq.write_table(customers(20), folder / "0.parquet")
    assert not sb.reencrypt(folder, policy=tmp_path / "old.toml").failed
    new, old = tmp_path / "new.toml", tmp_path / "old.toml"
    report = job(spark, str(folder), new, old_policy=old)  # type: ignore[operator]
    assert {row.status for row in report.collect()} <= {"reencrypted", "rotated"}
    (tmp_path / "old.json").unlink()
    assert sb.read_table(folder, policy=new).num_rows == 20


def test_a_draft_of_a_schema_of_pyspark_names_its_leaves(spark: SparkSession) -> None:
    ddl = "id long, tags array<string>, address struct<zip: string>, props map<string, int>"
    schema = spark.createDataFrame([], ddl).schema
    draft = sb.KeyPolicy.draft(schema)
    # Spark calls the types otherwise than DDL may: long is bigint.
    assert draft.replace("# long", "# bigint").replace("# integer", "# int") == (
        sb.KeyPolicy.draft(schema.simpleString())
    )
    assert draft.replace("integer", "int") == sb.KeyPolicy.draft(ddl)
    assert draft == sb.KeyPolicy.draft(schema.json())
    assert '# [columns."props.key_value.key"]' in draft
