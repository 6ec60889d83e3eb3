"""AWS KMS on the JVM, contract-tested: a stand-in for the SDK, and moto behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.spark import session_config
from secure_bloom.spark.jvm import kms_jar
from testing.spark.parquet_java import forget_keys
from tests.spark.aws_sdk import stand_in_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

boto3 = pytest.importorskip("boto3", reason="needs the extra aws")
moto_server = pytest.importorskip("moto.server", reason="needs moto and flask")
pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("cold_keys")]

REGION = "eu-central-1"
CLASS = "SecureBloomAwsKms"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def policy(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeyPolicy:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    kms = boto3.client("kms", region_name=REGION, endpoint_url=endpoint)
    for alias in ("alias/footer", "alias/pii"):
        if alias not in [a["AliasName"] for a in kms.list_aliases()["Aliases"]]:
            kms.create_alias(AliasName=alias, TargetKeyId=kms.create_key()["KeyMetadata"]["KeyId"])
    path = tmp_path / "policy.toml"
    path.write_text(
        f'[kms]\nclient = "aws"\nregion = "{REGION}"\nendpoint_url = "{endpoint}"\n'
        'retry_seconds = 2\nencryption_context = { table = "people" }\n'
        '[footer]\nkey = "alias/footer"\n[columns.email]\nkey = "alias/pii"\nbloom = true\n'
    )
    return KeyPolicy.load(path)


def options(policy: KeyPolicy) -> dict[str, str]:
    config = session_config(policy)
    assert config.pop("spark.jars") == str(kms_jar())
    return {name.removeprefix("spark.hadoop."): value for name, value in config.items()}


def write(spark: SparkSession, folder: Path, given: dict[str, str]) -> None:
    rows = spark.range(20).selectExpr("id", "concat('user', id) AS email").coalesce(1)
    rows.write.options(**given).parquet(str(folder))


def test_without_the_sdk_the_error_says_what_is_missing(
    spark: SparkSession, policy: KeyPolicy, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match=r"AWS SDK for Java 2 is not among the jars .*hadoop-aws"):
        write(spark, tmp_path / "t", options(policy))


def test_both_ways_and_for_python(
    spark: SparkSession,
    policy: KeyPolicy,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    spark.sql(f"ADD JAR '{stand_in_jar(tmp_path_factory.mktemp('sdk'))}'")
    given = options(policy)
    write(spark, tmp_path / "t", given)
    assert spark.read.options(**given).parquet(str(tmp_path / "t")).count() == 20
    found = sb.read_table(tmp_path / "t", where="email = 'user7'", policy=policy)
    assert found["id"].to_pylist() == [7]
    with pytest.raises(Exception, match=r"Encrypt under master key alias/none: HTTP 400 NotFound"):
        write(spark, tmp_path / "u", {**given, "parquet.encryption.footer.key": "alias/none"})
    forget_keys(spark)
    other = {**given, "secure_bloom.aws.encryption_context": '{"table": "orders"}'}
    with pytest.raises(Exception, match="AWS KMS: Decrypt under master key alias/footer: HTTP 400"):
        spark.read.options(**other).parquet(str(tmp_path / "t")).collect()
