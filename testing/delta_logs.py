"""Logs of Delta tables made by hand: what no writer at hand makes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring

from secure_bloom.lakes import snapshot

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
MAP = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
#: The columns of a checkpoint, as far as tests need them.
CHECKPOINT = pa.schema(
    {
        "protocol": pa.struct(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "readerFeatures": pa.list_(pa.string()),
                "writerFeatures": pa.list_(pa.string()),
            }
        ),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": MAP}),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": MAP,
            }
        ),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": MAP,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "stats": pa.string(),
                "tags": MAP,
                "deletionVector": VECTOR,
                "stats_parsed": pa.struct({"numRecords": pa.int64()}),
            }
        ),
        "sidecar": pa.struct(
            {"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64()}
        ),
    }
)


def column(name: str, kind: Any = "long", **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def mapped(name: str, number: int, kind: Any = "string") -> dict[str, Any]:
    """A column whose name in files is ``col-NUMBER``."""
    physical = {"delta.columnMapping.physicalName": f"col-{number}"}
    return column(name, kind, **physical, **{"delta.columnMapping.id": number})


def protocol(*features: str, reader: int = 3) -> dict[str, Any]:
    fields: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": 7}
    if reader >= 3:
        fields |= {"readerFeatures": list(features), "writerFeatures": list(features)}
    return {"protocol": fields}


def metadata(
    *columns: Mapping[str, Any], partitions: Sequence[str] = (), **configuration: str
) -> dict[str, Any]:
    schema = {"type": "struct", "fields": list(columns) or [column("id")]}
    return {
        "metaData": {
            "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(schema),
            "partitionColumns": list(partitions),
            "configuration": {k.replace("_", "."): v for k, v in configuration.items()},
        }
    }


def add(path: str, size: int = 1, /, **fields: Any) -> dict[str, Any]:
    base = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 0}
    return {"add": base | {"dataChange": True} | fields}


def remove(path: str, /, **fields: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True, "deletionTimestamp": 0} | fields}


def start(*columns: Mapping[str, Any], features: Sequence[str] = (), **rest: Any) -> list[Any]:
    """The first actions of a log."""
    return [protocol(*features), metadata(*columns, **rest)]


def log_of(table: Path) -> Path:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    return log


def lines(actions: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(action) + "\n" for action in actions)


def commit(table: Path, version: int, *actions: Mapping[str, Any]) -> None:
    (log_of(table) / f"{version:020}.json").write_text(lines(actions))


def checkpoint(path: Path, *actions: Mapping[str, Any]) -> None:
    """A checkpoint, a part of one, or a sidecar file, in Parquet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(actions), CHECKPOINT), path)


def live(table: Path, **which: Any) -> list[str]:
    found = snapshot(table, **which)
    assert found is not None
    return [file.path.removeprefix(f"{table}/") for file in found.files]


def vector_file(table: Path, *rows: Sequence[int], prefix: str = "") -> list[dict[str, Any]]:
    """Write a file of deletion vectors; the descriptor of each."""
    uuid = uuid4()
    content, found = b"\x01", []
    for deleted in rows:
        data = bitmap(deleted)
        found.append(
            {
                "storageType": "u",
                "pathOrInlineDv": prefix + z85(uuid.bytes),
                "offset": len(content),
                "sizeInBytes": len(data),
                "cardinality": len(deleted),
            }
        )
        content += len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")
    path = table / prefix / f"deletion_vector_{uuid}.bin"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return found


def inline_vector(deleted: Sequence[int]) -> dict[str, Any]:
    """The descriptor that holds a deletion vector itself."""
    data = bitmap(deleted)
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(data + bytes(-len(data) % 4)),
        "sizeInBytes": len(data),
        "cardinality": len(deleted),
    }


def bitmap(rows: Sequence[int]) -> bytes:
    """The data of a deletion vector."""
    return (1681511377).to_bytes(4, "little") + pyroaring.BitMap64(rows).serialize()


def z85(data: bytes) -> str:
    """The mirror of reading it."""
    found = ""
    for start in range(0, len(data), 4):
        number = int.from_bytes(data[start : start + 4], "big")
        found += "".join(Z85[number // 85**power % 85] for power in range(4, -1, -1))
    return found
