"""Where the store is, given with a call: the driver and each task use it, and get no credential."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.spark import (
    add_bloom_filters,
    advise,
    audit,
    reencrypt,
    register,
    rotate_keys,
    trace,
)
from secure_bloom.spark.source_options import source_options
from testing.spark.cluster import POLICY
from testing.storage import Bucket, bucket, port, s3_rights

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["bucket", "port", "s3_rights"]

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(spark: SparkSession, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Files in a bucket, whose endpoint only ``storage_options`` have."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setitem(spark.sparkContext.environment, name, "testing")
    content = pa.BufferOutputStream()
    pq.write_table(pa.table({"email": ["a@x.example", "b@x.example"]}), content)
    bucket.put("t/day=1/a.parquet", "t/day=2/b.parquet", body=content.getvalue().to_pybytes())
    return {"aws_endpoint_url": bucket.client.meta.endpoint_url, "aws_region": "us-east-1"}


def test_files_are_found_and_written_by_the_options_of_the_call(
    spark: SparkSession, bucket: Bucket, lake: dict[str, Any], tmp_path: Path
) -> None:
    paths, before = f"s3://{bucket.name}/t", bucket.objects()
    report = add_bloom_filters(spark, paths, columns="email", where="day = 1", storage_options=lake)
    assert [(row.path, row.status) for row in report.collect()] == [
        (f"{paths}/day=1/a.parquet", "added")
    ]
    after = bucket.objects()
    assert {key for key, content in after.items() if before.get(key) != content} == {
        "t/day=1/a.parquet"
    }
    policy = tmp_path / "policy.toml"
    keyring = POLICY.with_name("dev-keyring.json")
    policy.write_text(
        f'[kms]\nclient = "keyring"\nkeyring = "{keyring}"\n[footer]\nkey = "k_footer"\n'
        '[columns.email]\nkey = "k_pii"\nbloom = true\n'
    )
    assert reencrypt(spark, paths, policy, storage_options=lake).count() == 2
    assert rotate_keys(spark, paths, policy, storage_options=lake).count() == 2
    found = audit(spark, [paths], policy, storage_options=lake).collect()
    assert "unchecked-file" not in {row.id for row in found}
    register(spark)
    source = spark.read.format("secure_bloom").option("policy", str(policy))
    source = source.option("storageOptions", json.dumps(lake))
    rows = source.option("where", "email = 'a@x.example'").load(paths)
    assert [(row.email, row.day) for row in rows.orderBy("day").collect()] == [
        ("a@x.example", 1),
        ("a@x.example", 2),
    ]
    # No call leaves its right behind.
    with pytest.raises(PolicyError):
        audit(spark, paths, policy)


@pytest.mark.parametrize(
    "secret",
    [
        {"aws_secret_access_key": "hush"},
        {"AWS_ACCESS_KEY_ID": "hush"},
        {"client_kwargs": {"aws_session_token": "hush"}},
        {"proxy_url": "http://user:hush@proxy"},
        {"aws_endpoint_url": "http://user:hush@minio:9000"},
    ],
)
def test_a_credential_is_refused_by_name_and_never_shown(
    spark: SparkSession, secret: dict[str, Any]
) -> None:
    calls: list[Any] = [
        lambda **options: add_bloom_filters(spark, "s3://b/t", columns="email", **options),
        lambda **options: advise(spark, "s3://b/t", **options),
        lambda storage_options: source_options(
            {"path": "s3://b/t", "storageOptions": json.dumps(storage_options)}
        ),
        lambda **options: trace(spark, "s3://b/t", values_of="s3://b/t:email", **options),
    ]
    for call in calls:
        with pytest.raises(PolicyError, match="credentials are not sent to executors") as caught:
            call(storage_options=secret)
        assert "hush" not in f"{caught.value!r} {caught.value} {caught.value.hint}"
        assert "own environment" in str(caught.value.hint)
