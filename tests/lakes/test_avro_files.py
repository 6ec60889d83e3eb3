"""Avro files: what fastavro writes is read, and hostile files are refused."""

from __future__ import annotations

import contextlib
import io
import json
import tracemalloc
import zlib
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secure_bloom as sb
from secure_bloom.lakes.avro_blocks import MAGIC
from secure_bloom.lakes.avro_files import decode, decoding_room, encode
from secure_bloom.running.memory_budget import MemoryBudgetError
from tests.lakes.avro_files import number

SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "s", "type": ["null", "string"], "default": None},
        {"name": "l", "type": {"type": "array", "items": "bytes"}},
    ],
}
RECORDS = [{"n": i, "t": i, "s": None if i % 2 else str(i), "l": [b"x" * i]} for i in range(50)]


def written(codec: str, schema: Any = SCHEMA, records: Any = RECORDS) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec=codec, sync_interval=200)
    return out.getvalue()


def read(content: bytes) -> Any:
    return list(decode(content, decoding_room()).records)


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "bzip2", "xz", "lz4"])
def test_every_codec_is_read(codec: str) -> None:
    if codec == "zstandard":
        pytest.importorskip("backports.zstd")
    assert read(written(codec)) == RECORDS


def test_what_is_written_is_read() -> None:
    assert read(encode(SCHEMA, RECORDS)) == RECORDS
    assert list(fastavro.reader(io.BytesIO(encode(SCHEMA, RECORDS))))[1]["n"] == 1


@given(st.data())
def test_damaged_files_are_refused(data: st.DataObject) -> None:
    content = bytearray(written("deflate"))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    end = data.draw(st.integers(0, len(content)))
    with contextlib.suppress(sb.SecureBloomError):
        read(bytes(content[:end]))


def bomb(schema: Any, block: bytes, count: int, codec: bytes = b"null") -> bytes:
    """A file with one block, whatever it claims."""

    text = json.dumps(schema).encode()
    header = number(2)
    for key, value in ((b"avro.schema", text), (b"avro.codec", codec)):
        header += number(len(key)) + key + number(len(value)) + value
    sync = b"s" * 16
    return MAGIC + header + b"\0" + sync + number(count) + number(len(block)) + block + sync


NULLS = {"type": "array", "items": "null"}
EMPTY = {"type": "fixed", "name": "f", "size": 0}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "record", "name": "r", "fields": []},
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": NULLS}]},
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "r"]}]},
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": EMPTY}]},
        "null",
        7,
    ],
)
def test_a_schema_whose_values_take_no_bytes_or_hold_themselves_is_refused(schema: Any) -> None:
    if schema == {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": EMPTY}],
    }:
        schema["fields"][0]["type"] |= {"name": "f", "size": 0}
    with pytest.raises((sb.UnsupportedFeatureError, sb.FormatError)):
        read(bomb(schema, b"\x80\x80\x80\x80\x80\x80\x80\x80\x01", 1))


def test_more_records_than_bytes_are_refused() -> None:
    with pytest.raises(sb.FormatError, match="records in"):
        read(bomb(SCHEMA, b"\0\0\0\0", 1 << 40))


def test_a_block_that_inflates_beyond_the_budget_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECURE_BLOOM_MEMORY", "8MiB")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(100 << 20)) + packer.flush()
    with pytest.raises(sb.UnsupportedFeatureError, match="more than"):
        read(bomb(SCHEMA, block, 1, b"deflate"))


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(sb.UnsupportedFeatureError, match="'brotli'"):
        read(bomb(SCHEMA, b"", 0, b"brotli"))


def listed(items: Any, levels: int = 1) -> Any:
    for _ in range(levels):
        items = {"type": "array", "items": items}
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": items}]}


ONE_BYTE = {"type": "record", "name": "i", "fields": [{"name": "b", "type": "boolean"}]}
ITEMS = 1 << 20


@pytest.mark.parametrize(
    ("schema", "block"),
    [
        # Each byte is a dictionary of Python.
        (listed(ONE_BYTE), number(ITEMS) + bytes(ITEMS + 1)),
        (listed({"type": "map", "values": "int"}), number(ITEMS) + bytes(ITEMS + 1)),
        (listed("string", 2), number(1) + number(ITEMS) + bytes(ITEMS + 2)),
        # Many records of one byte.
        (ONE_BYTE, bytes(ITEMS)),
    ],
    ids=["structures", "maps", "lists", "records"],
)
def test_bytes_count_as_the_objects_that_they_become(
    schema: Any, block: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECURE_BLOOM_MEMORY", "32MiB")
    records = ITEMS if schema == ONE_BYTE else 1
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    content = bomb(schema, packer.compress(block) + packer.flush(), records, b"deflate")
    tracemalloc.start()
    try:
        with pytest.raises(MemoryBudgetError):
            read(content)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_files_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    content = written("null")
    room = decoding_room()
    decode(content, room)
    monkeypatch.setenv("SECURE_BLOOM_MEMORY", str(3 * room.used))
    room = decoding_room()
    for _ in range(3):
        decode(content, room)
    with pytest.raises(MemoryBudgetError):
        decode(content, room)


def test_names_of_earlier_types_are_known_and_unambiguous() -> None:
    inner = {"type": "record", "name": "n.i", "fields": [{"name": "b", "type": "long"}]}
    fields = [{"name": "a", "type": inner}, {"name": "l", "type": {"type": "array", "items": "i"}}]
    schema = {"type": "record", "name": "n.r", "fields": fields}
    records = [{"a": {"b": 7}, "l": [{"b": 1}, {"b": 2}]}]
    assert read(written("null", schema, records)) == records
    empty = {"type": "record", "name": "m.i", "fields": []}
    fields[0]["type"] = {"type": "record", "name": "n.s", "fields": [{"name": "b", "type": inner}]}
    fields.insert(1, {"name": "z", "type": empty})
    with pytest.raises(sb.UnsupportedFeatureError, match="two types of one name"):
        read(bomb(schema, b"", 0))
