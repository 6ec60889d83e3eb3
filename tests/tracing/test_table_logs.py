"""Values in logs of tables are found, with the data files gone: Delta, Iceberg, Hudi, Paimon."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, StringType

from secure_bloom.tracing.index import WordIndex
from testing.paimon_tables import Warehouse
from tests.tracing.people import columns_found
from tests.tracing.test_index import of

#: Short, because bounds in logs are cut: to 16 bytes by Iceberg, to 32 by Delta.
EMAILS = [f"ann{n}@post.fi" for n in range(40)]
INDEX = WordIndex.build([of(pa.array(EMAILS))], 1 << 20)


def only(folder: Path, pattern: str) -> Path:
    """Return the folder with nothing but the files of a pattern."""
    kept = set(folder.rglob(pattern))
    assert kept
    for path in folder.rglob("*"):
        if path.is_file() and path not in kept:
            path.unlink()
    return folder


@pytest.mark.parametrize("pattern", ["*.json", "*.checkpoint.parquet"])
def test_bounds_in_a_log_of_delta(tmp_path: Path, pattern: str) -> None:
    deltalake = pytest.importorskip("deltalake")
    for n in range(4):
        batch = pa.table({"mail": EMAILS[4 * n : 4 * n + 4]})
        deltalake.write_deltalake(str(tmp_path / "t"), batch, mode="append")
    deltalake.DeltaTable(str(tmp_path / "t")).create_checkpoint()
    assert columns_found(only(tmp_path / "t", pattern), INDEX) == {"x"}


@pytest.mark.parametrize("pattern", ["*-m0.avro", "*.avro"])
@pytest.mark.parametrize("partitioned", [False, True], ids=["bounds", "partitions"])
def test_values_in_manifests_of_iceberg(tmp_path: Path, pattern: str, partitioned: bool) -> None:
    catalog = SqlCatalog(
        "x", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=(tmp_path / "w").as_uri()
    )
    catalog.create_namespace("db")
    fields = [NestedField(n, name, StringType(), required=False) for n, name in enumerate("ab", 1)]
    spec = PartitionSpec(PartitionField(1 + partitioned, 1000, IdentityTransform(), "p"))
    table = catalog.create_table("db.t", schema=Schema(*fields), partition_spec=spec)
    table.append(pa.table({"a": list("wxyz"), "b": EMAILS[:4]}))
    assert columns_found(only(tmp_path / "w", pattern), INDEX) == {"x"}


def test_key_statistics_in_manifests_of_paimon(tmp_path: Path) -> None:
    pytest.importorskip("pypaimon_rust")
    warehouse = Warehouse(path=str(tmp_path))
    folder = Path(warehouse.create("mail string, n bigint", partitioned="n"))
    warehouse.insert([[email, n // 2] for n, email in enumerate(EMAILS[:8])])
    assert columns_found(only(folder, "manifest/*"), INDEX) == {"x"}


def log_block(kind: int, content: bytes) -> bytes:
    """A block of a log file of Hudi, without its header and footer."""
    return b"#HUDI#" + struct.pack(">QIIIQ", len(content) + 32, 1, kind, 0, len(content)) + content


def hudi_avro() -> bytes:
    """Records without the container of an Avro file, as in a data block."""
    schema = fastavro.parse_schema(
        {"type": "record", "name": "r", "fields": [{"name": "mail", "type": "string"}]}
    )
    records = b""
    for email in EMAILS[:9]:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, schema, {"mail": email})
        records += struct.pack(">I", len(file.getvalue())) + file.getvalue()
    return log_block(3, struct.pack(">II", 1, 9) + records)


def hudi_parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"mail": EMAILS}), file, compression="brotli", write_statistics=False)
    return log_block(6, file.getvalue())


COMMIT = {
    "partitionToWriteStats": {
        f"mail={email}": [{"path": f"mail={email}/1_0-1-2_001.parquet"}] for email in EMAILS[:3]
    }
}
HUDI = {
    ".hoodie/20250101000000000.commit": json.dumps(COMMIT).encode(),
    ".a_20250101000000000.log.1_0-1-2": hudi_avro() + hudi_avro(),
    ".b_20250101000000000.log.1_0-1-2": hudi_parquet() + hudi_avro()[:40],
    ".c_20250101000000000.log.1_0-1-2": hudi_parquet() + hudi_parquet(),
}


@pytest.mark.parametrize("name", HUDI)
def test_timelines_and_log_files_of_hudi(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(HUDI[name])
    assert columns_found(tmp_path, INDEX) == {"x"}
