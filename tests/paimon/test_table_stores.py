"""A Paimon table in S3: built, read and probed here, and judged by Paimon's own reader."""

from __future__ import annotations

import pytest

pytest.importorskip("pypaimon_rust")
pytest.importorskip("boto3")
pytest.importorskip("moto.server")

import secure_bloom as sb
from testing.paimon_tables import Warehouse
from testing.storage import Bucket, bucket, port, s3_rights

__all__ = ["bucket", "port", "s3_rights"]  # fixtures


@pytest.mark.parametrize("threshold", [pytest.param("0 b", marks=pytest.mark.slow), "1 kb"])
def test_a_table_in_a_bucket(bucket: Bucket, port: str, threshold: str) -> None:
    lake = Warehouse(
        path=f"s3://{bucket.name}/lake",
        options={
            "s3.endpoint": f"http://127.0.0.1:{port}",
            "s3.access-key": "k",
            "s3.secret-key": "s",
            "s3.region": "us-east-1",
            "s3.path.style.access": "true",
        },
    )
    lake.create(
        "id bigint, name string, part string",
        partitioned="part",
        file_index__in_manifest_threshold=threshold,
    )
    lake.insert([(2, "a", "x/y"), (100, "b", "x/y")])
    lake.insert([(4, "c", "z"), (104, "d", "z")])
    rows = lake.rows()
    folder = bucket.uri("lake/default.db/t")
    report = sb.paimon.build_index(folder, {"id": sb.paimon.IndexOptions(items=100, fpp=1e-6)})
    assert [file.status for file in report.files] == ["built", "built"]
    assert [commit.snapshot for commit in report.commits] == [3]
    assert lake.rows() == rows
    assert sorted(sb.read_table(folder).to_pylist(), key=str) == rows
    named = f"paimon://{bucket.uri('lake')}/default.t"
    assert {file.verdict for file in sb.paimon.probe(named, "id = 57").files} == {"absent"}
    assert len(sb.paimon.show(folder).indexes) == 2
    for key in [key for key in bucket.objects() if key.endswith(".parquet")]:
        bucket.put(key, body=bytes(900))
    assert lake.rows("id = 57") == []
