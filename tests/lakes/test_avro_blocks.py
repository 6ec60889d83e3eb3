"""Blocks of Avro files: unpacked within a bound, whatever the file claims."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import tracemalloc
import zlib

import fastavro
import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.lakes.avro_blocks import AvroBlocks, AvroCost
from secure_bloom.lakes.avro_files import RecordReader
from secure_bloom.running.memory_budget import VARIABLE, MemoryBudgetError
from tests.lakes.avro_files import avro, framed, number

RECORD = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "bytes"}]}
SCHEMA = json.dumps(RECORD).encode()
ZEROS = bytes(64 << 20)


def deflated(text: bytes) -> bytes:
    one = zlib.compressobj(9, zlib.DEFLATED, -15)
    return one.compress(text) + one.flush()


BOMBS = {
    "deflate": lambda: deflated(ZEROS),
    "bzip2": lambda: bz2.compress(ZEROS),
    "xz": lambda: lzma.compress(ZEROS, preset=0),
    "zstandard": lambda: pa.Codec("zstd").compress(ZEROS).to_pybytes(),
    "snappy": lambda: bytes([0x80, 0x80, 0x80, 0x80, 0x04]) + bytes(9),
    "lz4": lambda: (1 << 30).to_bytes(4, "little") + bytes(9),
}


@pytest.mark.parametrize("codec", list(BOMBS))
def test_a_block_stays_within_the_budget(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "8MiB")
    content = avro(SCHEMA, codec, 1, BOMBS[codec]())
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(MemoryBudgetError):
            list(AvroBlocks(io.BytesIO(content), lambda _: None))
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()
    assert pa.total_allocated_bytes() <= before


@pytest.mark.parametrize(
    "content",
    [
        b"Obj\x01" + b"\xff" * 40,
        b"Obj\x01" + number(1) + number(1 << 60),
        b"Obj\x01" + number(1 << 60) + b"\0",
        avro(SCHEMA, "null", 1 << 60, framed(b"x")),
        avro(SCHEMA, "null", -1, framed(b"x")),
        avro(SCHEMA, "null", 1, framed(b"x"))[:-1] + b"\1",
        avro(b"[" * 100_000, "null", 1, b""),
        b"Obj\x01\0" + bytes(16),
    ],
)
def test_claims_that_are_not_true_are_damage(content: bytes) -> None:
    with pytest.raises(sb.FormatError):
        list(AvroBlocks(io.BytesIO(content), lambda _: None))


def test_blocks_count_together() -> None:
    sizes: list[int] = []
    out = io.BytesIO()
    records = [{"a": bytes(n)} for n in range(100)]
    fastavro.writer(out, RECORD, records, sync_interval=300, codec="deflate")
    blocks = AvroBlocks(out, sizes.append)
    assert sum(len(content) for _, content in blocks) == sum(sizes) > sum(range(100))


def test_a_record_that_becomes_too_much_is_refused_before_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "8MiB")
    maps = {"type": "array", "items": {"type": "map", "values": "boolean"}}
    schema = ["null", {**RECORD, "fields": [{"name": "a", "type": maps}]}]
    # An empty map takes a byte.
    block = number(1) + number(500_000) + bytes(500_001)
    blocks = AvroBlocks(
        io.BytesIO(avro(json.dumps(schema).encode(), "null", 1, block)), lambda _: None
    )
    ((records, data),) = blocks
    tracemalloc.start()
    try:
        with pytest.raises(MemoryBudgetError):
            list(RecordReader(blocks, fastavro).records(records, data))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_the_cost_of_a_schema() -> None:
    plain = AvroCost.of(RECORD)
    assert plain.least == 1
    assert plain.of_lists({"a": b"x"}) == 0
    listed = AvroCost.of({"type": "array", "items": RECORD})
    assert listed.of_lists([{"a": b""}] * 7) >= 7 * plain.fixed
    # As many as there can be in so many bytes.
    assert listed.most(1, 100) > listed.of_lists([{"a": b""}] * 100)
