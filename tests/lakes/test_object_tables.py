"""Tables with a log in an object store, which may call it by other schemes."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from testing.delta_logs import add, column, lines, start, vector_file
from testing.storage import Bucket


def upload(bucket: Bucket, folder: Path, to: str) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            bucket.put(f"{to}/{path.relative_to(folder)}", body=path.read_bytes())


def test_a_delta_table_is_read_at_every_version(tmp_path: Path, bucket: Bucket) -> None:
    for i in range(3):
        rows = pa.table({"id": [i, i + 10], "day": ["a/b", "x y"]})
        deltalake.write_deltalake(tmp_path, rows, partition_by=["day"], mode="append")
    deltalake.DeltaTable(tmp_path).delete("id = 0")
    upload(bucket, tmp_path, "lake/t")
    bucket.put("lake/t/left-behind.parquet", body=b"no Parquet")
    for version in (None, 0, 3):
        found = sb.read_table(bucket.uri("lake/t"), version=version).to_pylist()
        wanted = deltalake.DeltaTable(tmp_path, version=version).to_pyarrow_table().to_pylist()
        assert sorted(found, key=repr) == sorted(wanted, key=repr)
    live = [path.removeprefix(str(tmp_path)) for path in deltalake.DeltaTable(tmp_path).file_uris()]
    shown = [file.path for file in sb.inspect(bucket.uri("lake")).files]
    assert shown == sorted(bucket.uri(f"lake/t{path}") for path in live)
    (part,) = {path.split("/")[1] for path in live if "x%20y" in path or "x y" in path}
    assert len(sb.probe(bucket.uri(f"lake/t/{part}"), "id", 1).files) == 3
    with pytest.raises(PolicyError, match="no file of the table's version"):
        sb.inspect(bucket.uri("lake/t/left-behind.parquet"))


@pytest.mark.parametrize("suffix", ["json", f"checkpoint.{UUID(int=1)}.json"])
def test_deleted_rows_and_whole_paths(tmp_path: Path, bucket: Bucket, suffix: str) -> None:
    pq.write_table(pa.table({"id": pa.array(range(10), pa.int64())}), tmp_path / "x.parquet")
    (vector,) = vector_file(tmp_path, [1, 2])
    path = f"s3a://{bucket.name}/t/x.parquet"
    actions = [
        *start(column("id"), features=["deletionVectors"]),
        add(path, 1, deletionVector=vector),
    ]
    upload(bucket, tmp_path, "t")
    bucket.put(f"t/_delta_log/{0:020}.{suffix}", body=lines(actions).encode())
    found = sb.read_table(bucket.uri("t"), where="id < 5")
    assert found["id"].to_pylist() == [0, 3, 4]


def test_a_sink_has_its_committed_files(tmp_path: Path, bucket: Bucket) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "x.parquet")
    for name in ("day=1/x.parquet", "day=1/uncommitted.parquet"):
        bucket.put(f"sink/{name}", body=(tmp_path / "x.parquet").read_bytes())
    entry = f'{{"path":"s3a://{bucket.name}/sink/day=1/x.parquet","action":"add"}}'
    bucket.put("sink/_spark_metadata/0", body=f"v1\n{entry}".encode())
    assert sb.read_table(bucket.uri("sink")).to_pylist() == [{"id": 1, "day": 1}]
    assert len(sb.inspect(bucket.uri("sink/day=1")).files) == 1
