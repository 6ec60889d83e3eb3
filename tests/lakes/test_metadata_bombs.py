"""Small files of a table's metadata that take gigabytes when they are decoded: refused by name."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.lakes.delta import checkpoint as checkpoint_reader
from secure_bloom.running.memory_budget import VARIABLE, MemoryBudgetError
from testing.delta_logs import add, checkpoint, commit, live, log_of, start
from testing.iceberg_tables import iceberg
from tests.lakes.avro_files import avro, number

#: The budget of the process, and what it may take beside it: libraries, and what is read so far.
BUDGET, MOST_MIB = "256MiB", 900

_PROGRAM = """
import re, sys
from pathlib import Path
import secure_bloom as sb
try:
    {statement}
    print("no error")
except sb.SecureBloomError as error:
    print(type(error).__name__, error)
# Not ru_maxrss: Linux counts the process that started this one into that.
print(int(re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1]) >> 10)
"""


def measured(statement: str, budget: str = BUDGET) -> tuple[str, int]:
    """What a process says, and the most MiB that it takes."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "SECURE_BLOOM_MEMORY": budget},
        timeout=100,
    )
    *told, peak = done.stdout.splitlines()
    return "\n".join(told), int(peak)


def refused(statement: str) -> None:
    told, peak = measured(statement)
    assert told.startswith("MemoryBudgetError"), (told, peak)
    assert peak < MOST_MIB


def soon_refused(statement: str) -> None:
    """A quarter of the budget is enough for bombs whose size is free, and takes less time."""
    told, peak = measured(statement, "64MiB")
    assert told.startswith("MemoryBudgetError"), (told, peak)
    assert peak < MOST_MIB // 2


# --- Delta ---


def long_texts(path: Path, rows: int) -> None:
    """Rows that share one statistic of a megabyte, as a checkpoint has them."""
    adds = [add(f"{number}", stats="x") for number in range(rows)]
    checkpoint(path, *start(), *adds)
    table = pq.read_table(path)
    place = table.schema.get_field_index("add")
    column = table.column(place).combine_chunks()
    kind = column.type
    stats = kind.get_field_index("stats")
    parts = column.flatten()
    texts = pa.array([None if it is None else "x" * (1 << 20) for it in parts[stats].to_pylist()])
    parts[stats] = texts
    made = pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    pq.write_table(table.set_column(place, "add", made), path, compression="zstd")


def many_rows(path: Path, _: int) -> None:
    """Rows without an action: a few bytes for each million."""
    checkpoint(path, *start(), add("a"))
    table = pq.read_table(path)
    empty = pa.table(
        {f.name: pa.nulls(20_000_000, f.type) for f in table.schema if f.name == "txn"}
        or {"add": pa.nulls(20_000_000, table.schema.field("add").type)}
    )
    pq.write_table(empty, path, row_group_size=20_000_000, compression="zstd")


@pytest.mark.parametrize(
    ("place", "make"),
    [
        ("checkpoint", long_texts),
        ("part", many_rows),
        pytest.param("sidecar", long_texts, marks=pytest.mark.slow),
    ],
)
def test_a_delta_checkpoint(tmp_path: Path, place: str, make: Callable[[Path, int], None]) -> None:
    log = log_of(tmp_path)
    commit(tmp_path, 0, *start(), add("a"))
    names = {
        "checkpoint": f"{0:020}.checkpoint.parquet",
        "part": f"{0:020}.checkpoint.{1:010}.{1:010}.parquet",
        "sidecar": "_sidecars/one.parquet",
    }
    path = log / names[place]
    path.parent.mkdir(exist_ok=True)
    make(path, 150)
    if place == "sidecar":
        name = f"{0:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
        lines = [*start(features=["v2Checkpoint"]), {"sidecar": {"path": "one.parquet"}}]
        (log / name).write_text("\n".join(map(json.dumps, lines)))
    assert path.stat().st_size < 4_000_000
    soon_refused(f"sb.inspect({str(tmp_path)!r})")


def test_null_members_of_a_checkpoint_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take no byte in the file, and time for each row."""
    commit(tmp_path, 0, *start(), add("a"))
    members = [pa.field("path", pa.string()), *(pa.field(f"m{n}", pa.bool_()) for n in range(500))]
    rows = pa.nulls(5_000, pa.struct(members))
    path = log_of(tmp_path) / f"{0:020}.checkpoint.parquet"
    pq.write_table(pa.table({"add": rows}), path, store_schema=False)
    monkeypatch.setenv(VARIABLE, "32MiB")
    with pytest.raises(MemoryBudgetError):
        live(tmp_path)


def test_a_sidecar_that_is_named_many_times_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, read = log_of(tmp_path), list[str]()
    commit(tmp_path, 0, *start(), add("a"))
    checkpoint(log / "_sidecars" / "one.parquet", add("a"))
    lines = [*start(features=["v2Checkpoint"]), *200 * [{"sidecar": {"path": "one.parquet"}}]]
    name = f"{0:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    (log / name).write_text("\n".join(map(json.dumps, lines)))
    whole = checkpoint_reader.read_log_file

    def counted(path: str) -> bytes:
        read.append(path)
        return whole(path)

    monkeypatch.setattr(checkpoint_reader, "read_log_file", counted)
    assert live(tmp_path) == ["a"]
    assert sum(path.endswith("one.parquet") for path in read) == 1


@pytest.mark.parametrize(
    "line",
    [
        b'{"add":{"path":"a","size":1,"partitionValues":{},"x":[' + b"[]," * 1_800_000 + b"[]]}}",
        b'{"x":[' + b"{}," * 800_000 + b"{}]}",
        b'{"add":{"path":"a","size":1,"stats":"' + b"x" * 20_000_000 + '€"}}'.encode(),
    ],
    ids=["lists", "objects", "wide text"],
)
def test_a_delta_commit(tmp_path: Path, line: bytes) -> None:
    commit(tmp_path, 0, *start(), add("a"))
    (log_of(tmp_path) / f"{1:020}.json").write_bytes(line)
    soon_refused(f"sb.inspect({str(tmp_path)!r})")


def test_actions_of_many_lines_count_together(tmp_path: Path) -> None:
    commit(tmp_path, 0, *start(), add("a"))
    line = b'{"add":{"path":"%07d","size":1,"tags":{"a":"b","c":"d"},"partitionValues":{}}}\n'
    with (log_of(tmp_path) / f"{1:020}.json").open("wb") as file:
        for number in range(200_000):
            file.write(line % number)
    soon_refused(f"sb.inspect({str(tmp_path)!r})")


def test_the_log_of_a_streaming_query(tmp_path: Path) -> None:
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    line = b'{"path":"file:///t/a.parquet","action":"add","x":[' + b"{}," * 800_000 + b"{}]}"
    (log / "0.compact").write_bytes(b"v1\n" + line)
    (tmp_path / "a.parquet").write_bytes(b"x")
    soon_refused(f"sb.inspect({str(tmp_path)!r})")


# --- Iceberg ---


@pytest.fixture
def table(tmp_path: Path) -> Any:
    return iceberg(tmp_path / "warehouse")


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


@pytest.mark.parametrize("packed", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_metadata_of_an_iceberg_table(table: Any, packed: bool) -> None:
    path = local(table.metadata_location)
    content = json.loads(path.read_text())
    content["snapshot-log"] = [{"snapshot-id": 1, "timestamp-ms": 1}] * 400_000
    text = json.dumps(content).encode()
    if packed:
        path = path.with_name(path.name.replace(".metadata.json", ".gz.metadata.json"))
        path.write_bytes(gzip.compress(text))
        assert path.stat().st_size < 1_000_000
    else:
        path.write_bytes(text)
    soon_refused(f"sb.inspect({str(path)!r})")


def _snappy(size: int) -> bytes:
    text = bytes(size)
    packed: bytes = pa.Codec("snappy").compress(text).to_pybytes()
    return packed + struct.pack(">I", zlib.crc32(text))


def _zstd(size: int) -> bytes:
    return pa.Codec("zstd").compress(bytes(size)).to_pybytes()


def _deflate(size: int) -> bytes:
    one = zlib.compressobj(9, zlib.DEFLATED, -15)
    return one.compress(bytes(size)) + one.flush()


_CODECS = {"deflate": _deflate, "snappy": _snappy, "zstandard": _zstd}


def schema_of(path: Path) -> bytes:
    """The schema of an Avro file, as its writer made it."""
    data = io.BytesIO(path.read_bytes()[4:])

    def read_number() -> int:
        found = shift = 0
        while True:
            byte = data.read(1)[0]
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (found >> 1) ^ -(found & 1)

    header = {}
    while count := read_number():
        for _ in range(count):
            key = data.read(read_number())
            header[key] = data.read(read_number())
    return header[b"avro.schema"]


def files_of(table: Any) -> dict[str, Path]:
    snapshot = table.current_snapshot()
    (first, *_) = snapshot.manifests(table.io)
    return {"list": local(snapshot.manifest_list), "manifest": local(first.manifest_path)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "codec"),
    [("list", "deflate"), ("manifest", "deflate"), ("list", "snappy"), ("manifest", "zstandard")],
)
def test_a_manifest_that_unpacks_to_much(table: Any, kind: str, codec: str) -> None:
    path = files_of(table)[kind]
    packed = _CODECS[codec](1 << 27)
    path.write_bytes(avro(schema_of(path), codec, 1, packed))
    soon_refused(f"sb.read_table({table.metadata_location!r})")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["list", "manifest"])
def test_a_manifest_of_many_small_records(table: Any, kind: str) -> None:
    path = files_of(table)[kind]
    packed = _CODECS["deflate"](200_000)
    path.write_bytes(avro(schema_of(path), "deflate", 200_000, packed))
    soon_refused(f"sb.read_table({table.metadata_location!r})")


def test_position_deletes(tmp_path: Path) -> None:
    path = tmp_path / "deletes.parquet"
    rows = 4_000_000
    names = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), ["a"])
    table = pa.table({"file_path": names, "pos": pa.repeat(pa.scalar(7, pa.int64()), rows)})
    pq.write_table(table, path, compression="zstd", row_group_size=rows, store_schema=False)
    assert path.stat().st_size < 100_000
    soon_refused(
        "from secure_bloom.lakes.iceberg.deletes import DecodedBytes as D, PositionFile as P; "
        f"P({str(path)!r}, D('it')).positions('a')"
    )


def test_equality_deletes(tmp_path: Path) -> None:
    path = tmp_path / "deletes.parquet"
    texts = pa.DictionaryArray.from_arrays(
        pa.repeat(pa.scalar(0, pa.int32()), 250), ["x" * 900_000]
    )
    field = pa.field("k", texts.type, metadata={"PARQUET:field_id": "1"})
    table = pa.Table.from_arrays([texts], schema=pa.schema([field]))
    pq.write_table(table, path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 4_000
    soon_refused(
        "from secure_bloom.lakes.iceberg.deletes import DecodedBytes as D, EqualityFile as E; "
        f"E({str(path)!r}, (), D('it')).rows()"
    )


def test_all_delete_files_of_a_table_count_together(tmp_path: Path) -> None:
    path, rows = tmp_path / "deletes.parquet", 1_200_000
    names = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), ["a"])
    table = pa.table({"file_path": names, "pos": pa.repeat(pa.scalar(7, pa.int64()), rows)})
    pq.write_table(table, path, store_schema=False)
    soon_refused(
        "from secure_bloom.lakes.iceberg.deletes import DecodedBytes as D, PositionFile as P; "
        f"import pickle; kept = D('it'); files = [P({str(path)!r}, kept) for _ in range(12)]; "
        "files = pickle.loads(pickle.dumps(files)); [it.positions('a') for it in files]"
    )


def test_a_deletion_vector_of_a_sparse_file(tmp_path: Path) -> None:
    commit(tmp_path, 0, *start(), add("a"))
    path = tmp_path / "vector.bin"
    path.write_bytes(b"\1")
    with path.open("r+b") as sparse:
        sparse.truncate(3 << 30)
    told, peak = measured(
        "from secure_bloom.lakes.iceberg.deletes import VectorBlob as V; "
        f"V(path={str(path)!r}, offset=4, length=2 << 30, cardinality=1).positions(10)"
    )
    assert told.startswith("MemoryBudgetError")
    assert peak < MOST_MIB


def test_key_material_beside_a_file(tmp_path: Path) -> None:
    path = tmp_path / "material.json"
    path.write_bytes(b'{"a":[' + b"{}," * 5_000_000 + b"{}]}")
    refused(
        "from secure_bloom.parquet.key_material_files import parsed_material as p; "
        f"p('x', Path({str(path)!r}).read_bytes())"
    )


def test_records_and_lists_of_nothing_are_damage(table: Any) -> None:
    path = files_of(table)["manifest"]
    for schema, records, content in (
        ({"type": "record", "name": "r", "fields": []}, 1 << 60, b""),
        (
            {
                "type": "record",
                "name": "r",
                "fields": [
                    {"name": "x", "field-id": 1, "type": {"type": "array", "items": "null"}}
                ],
            },
            1,
            number(1 << 40) + b"\0",
        ),
    ):
        path.write_bytes(avro(json.dumps(schema).encode(), "null", records, content))
        told, peak = measured(f"sb.read_table({table.metadata_location!r})")
        assert told.startswith("FormatError")
        assert peak < MOST_MIB
