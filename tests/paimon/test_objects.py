"""Indexes in an object store, seen by a client of another make."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom import paimon
from secure_bloom.bloom.verdicts import Verdict
from secure_bloom.paimon import FileIndex
from testing.storage import Bucket, bucket, port, s3_rights

__all__ = ["bucket", "port", "s3_rights"]  # fixtures

pytest.importorskip("boto3")
pytest.importorskip("moto.server")


def test_an_index_is_built_kept_and_probed_in_a_bucket(bucket: Bucket) -> None:
    content = io.BytesIO()
    pq.write_table(pa.table({"id": range(50), "name": [f"n{i}" for i in range(50)]}), content)
    bucket.put("table/b%3A=0/data-1.parquet", body=content.getvalue())
    uri = bucket.uri("table/b%3A=0/data-1.parquet")
    report = paimon.build_index(uri, {"id": paimon.IndexOptions(fpp=1e-6)})
    assert report.index == bucket.uri("table/b%3A=0/data-1.parquet.index")
    paimon.build_index(uri, ["name"])
    stored = bucket.objects()
    assert stored["table/b%3A=0/data-1.parquet"] == content.getvalue()
    index = FileIndex.from_bytes(stored["table/b%3A=0/data-1.parquet.index"])
    assert [column.name for column in index.columns] == ["id", "name"]
    assert paimon.probe(bucket.uri("table"), "id = 5").verdicts == {Verdict.MAYBE}
    assert paimon.probe(bucket.uri("table"), "id = 500").verdicts == {Verdict.ABSENT}
    assert paimon.probe(str(report.index), "id = 500").verdicts == {Verdict.ABSENT}
    shown = paimon.show(bucket.uri("table"))
    assert [each.path for each in shown.indexes] == [report.index]
