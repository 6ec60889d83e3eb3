"""Avro files: what fastavro writes is read, and hostile files are refused."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secure_bloom as sb
from secure_bloom.lakes.avro_files import MAGIC, decode, decoding_room, encode

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


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard"])
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

    def number(value: int) -> bytes:
        found, value = bytearray(), value << 1
        while value > 0x7F:
            found.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes([*found, value])

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
    with pytest.raises(sb.UnsupportedFeatureError):
        read(bomb(schema, b"\x80\x80\x80\x80\x80\x80\x80\x80\x01", 1))


def test_more_records_than_bytes_are_refused() -> None:
    with pytest.raises(sb.FormatError, match="records in"):
        read(bomb(SCHEMA, b"\0\0\0\0", 1 << 40))


def test_a_block_that_inflates_beyond_the_budget_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import zlib

    monkeypatch.setenv("SECURE_BLOOM_MEMORY", "8MiB")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(100 << 20)) + packer.flush()
    with pytest.raises(sb.UnsupportedFeatureError, match="more than"):
        read(bomb(SCHEMA, block, 1, b"deflate"))


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(sb.UnsupportedFeatureError, match="'lzma'"):
        read(bomb(SCHEMA, b"", 0, b"lzma"))
