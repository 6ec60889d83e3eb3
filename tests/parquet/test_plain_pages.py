"""PLAIN pages are read where they lie, just as pyarrow reads them, or left to pyarrow."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.kernels import extension
from secure_bloom.kernels.loops import DAMAGED, byte_array_offsets, count_level
from secure_bloom.parquet import arrow_decoding, column_values
from secure_bloom.parquet.column_values import read_entries
from secure_bloom.parquet.pages import read_pages
from secure_bloom.parquet.plain_pages import plain_entries
from secure_bloom.parquet.structures.metadata import CompressionCodec, Encoding
from secure_bloom.parquet.value_arrays import Binary
from testing.surgery import opened

native = extension.native
needs_native = pytest.mark.skipif(native is None, reason="needs the C extension")
pytestmark = pytest.mark.usefixtures("both_ways")
CODECS = ["none", "snappy", "gzip", "brotli", "lz4", "zstd"]


def _write(path: Path, array: pa.Array, **options: object) -> Path:
    pq.write_table(pa.table({"x": array}), path, use_dictionary=False, **options)
    return path


def _read(path: Path) -> list[bytes | int]:
    """The column's values, as PLAIN pages say them; every page must say its own."""
    found: list[bytes | int] = []
    with opened(path) as it:
        chunk = it.chunk(0, "x")
        for page in read_pages(it.file, chunk):
            entries = plain_entries(chunk.leaf, chunk.meta_data.codec, page)
            assert entries is not None
            if isinstance(entries, Binary):
                starts, ends = entries.offsets[:-1] + entries.prefix, entries.offsets[1:]
                found += [entries.data[s:e].tobytes() for s, e in zip(starts, ends, strict=True)]
            else:
                found += entries.tolist()
    return found


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("nulls", [0, 0.01, 0.5, 1])
def test_every_codec_and_page_version(
    tmp_path: Path, version: str, codec: str, nulls: float
) -> None:
    rng = random.Random(7)
    rows = [None if rng.random() < nulls else rng.randbytes(rng.randrange(40)) for _ in range(3000)]
    options = {"compression": codec, "data_page_version": version, "data_page_size": 4096}
    path = _write(tmp_path / "f.parquet", pa.array(rows, pa.binary()), **options)
    assert _read(path) == [row for row in rows if row is not None]


@given(
    rows=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=300),
    runs=st.integers(1, 40),
)
def test_levels_in_runs_of_any_length(
    rows: list[int | None], runs: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("levels") / "f.parquet"
    every = [row for row in rows for _ in range(runs)]
    _write(path, pa.array(every, pa.int64()))
    assert _read(path) == [row for row in every if row is not None] if every else True


def test_nested_optional_structs_have_wider_levels(tmp_path: Path) -> None:
    rows = [None, {"a": None}, {"a": {"b": None}}, {"a": {"b": 5}}] * 500
    type_ = pa.struct({"a": pa.struct({"b": pa.int32()})})
    path = _write(tmp_path / "f.parquet", pa.array(rows, type_))
    with opened(path) as it:
        chunk = it.chunk(0, "x.a.b")
        (page,) = read_pages(it.file, chunk)
        entries = plain_entries(chunk.leaf, chunk.meta_data.codec, page)
    assert isinstance(entries, np.ndarray)
    assert entries.tolist() == [5] * 500


def test_pyarrow_has_no_part_in_plain_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _write(tmp_path / "f.parquet", pa.array([f"user{i}" for i in range(1000)]))
    monkeypatch.setattr(column_values, "_decode", None)
    with opened(path) as it:
        got = list(read_entries(it.file, it.chunk(0, "x")).entries)
    assert sum(map(len, got)) == 1000


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("of", [pa.string(), pa.int64(), pa.float32()], ids=str)
def test_pyarrow_has_no_part_in_dictionary_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str, of: pa.DataType
) -> None:
    rows = pa.array([*range(50), None] * 9).cast(of)
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"x": rows}), path, compression=codec)
    monkeypatch.setattr(arrow_decoding, "decode_dictionary", None)
    with opened(path) as it:
        found = read_entries(it.file, it.chunk(0, "x"))
        (entries,) = found.entries
    assert found.source == "dictionary"
    if isinstance(entries, Binary):
        starts, ends = entries.offsets[:-1] + entries.prefix, entries.offsets[1:]
        pairs = zip(starts, ends, strict=True)
        assert [entries.data[s:e].tobytes() for s, e in pairs] == [b"%d" % i for i in range(50)]
    else:
        assert entries.tolist() == list(range(50))


@pytest.mark.parametrize(
    ("array", "options"),
    [
        (pa.array([[1, 2], [3]]), {}),
        (pa.array(range(100)), {"column_encoding": {"x": "DELTA_BINARY_PACKED"}}),
        (pa.array(range(100), pa.int32()), {"column_encoding": {"x": "BYTE_STREAM_SPLIT"}}),
    ],
    ids=["list", "delta", "byte-stream-split"],
)
def test_other_pages_are_left_to_pyarrow(
    tmp_path: Path, array: pa.Array, options: dict[str, object]
) -> None:
    path = _write(tmp_path / "f.parquet", array, **options)
    with opened(path) as it:
        chunk = it.chunk(0, it.footer.leaves[0].name)
        (page,) = read_pages(it.file, chunk)
        assert plain_entries(chunk.leaf, chunk.meta_data.codec, page) is None
        # A codec that is only a name here.
        assert plain_entries(chunk.leaf, CompressionCodec.LZO, page) is None


@given(data=st.data())
def test_a_damaged_page_is_left_to_pyarrow_or_read(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = pa.array([None, b"one", b"", b"three", b"4" * 20])
    options = {
        "compression": "none",
        "data_page_version": data.draw(st.sampled_from(["1.0", "2.0"])),
    }
    path = _write(tmp_path_factory.mktemp("damaged") / "f.parquet", rows, **options)
    with opened(path) as it:
        chunk = it.chunk(0, "x")
        (page,) = read_pages(it.file, chunk)
        assert page.encoding is Encoding.PLAIN
        body = bytearray(page.stored)
        for place in data.draw(st.lists(st.integers(0, len(body) - 1), min_size=1, max_size=4)):
            body[place] = data.draw(st.integers(0, 255))
        size = data.draw(st.integers(0, len(body)))
        damaged = dataclasses.replace(page, stored=memoryview(bytes(body[:size])))
        entries = plain_entries(chunk.leaf, chunk.meta_data.codec, damaged)
    if isinstance(entries, Binary):
        assert 0 <= entries.offsets[0] <= entries.offsets[-1] <= len(entries.data) <= size


LIES = [
    b"",
    b"\x01\x00\x00",  # a length cut short
    b"\x05\x00\x00\x00abcd",  # a value cut short
    b"\xff\xff\xff\xffabcd",
    b"\x00\x00\x00\x00",  # only one value
]


@pytest.mark.parametrize("content", LIES)
def test_lengths_that_leave_the_page_are_damage(content: bytes) -> None:
    offsets, page = np.zeros(3, np.int64), np.frombuffer(content, np.uint8)
    assert byte_array_offsets(page, offsets) == DAMAGED


@pytest.mark.parametrize(
    "levels",
    [b"", b"\x80", b"\x80\x80\x80\x80\x80\x01", b"\x14", b"\x05\xff", b"\x03", b"\x02\x01"],
    ids=["none", "endless", "too long", "no value", "packed cut short", "no bits", "too few"],
)
def test_levels_that_do_not_say_enough_are_damage(levels: bytes) -> None:
    assert count_level(np.frombuffer(levels, np.uint8), 1, 1, 10) == DAMAGED


@needs_native
def test_no_kernel_leaves_its_arrays() -> None:
    """`make sanitize` runs this with checks of every access."""
    rng = random.Random(11)
    for _ in range(1500):
        content = rng.choices([0, 1, 2, 3, 5, 16, 128, 255], k=rng.randrange(12))
        data = np.frombuffer(bytes(content), np.uint8)
        native.count_level(data, rng.randint(1, 8), rng.randint(0, 3), rng.randrange(60))
        count = rng.randrange(5)
        native.byte_array_offsets(data, count, np.zeros(rng.choice([0, count + 1]), np.int64))
        marks = np.full(rng.choice([1, 2, 8]), 255, np.uint8)
        sought = rng.choice([b"", b"\0", bytes(5)])
        hashes, found = np.zeros(1, np.uint64), np.zeros(rng.randrange(3), np.int64)
        width = rng.randrange(6)
        native.find_values(data, rng.randrange(5), width, sought, marks, hashes, found)
        numbers = np.zeros(rng.randrange(40), np.uint32)
        native.unpack(data, rng.randint(0, 32), rng.randrange(9), numbers)
        native.delta_numbers(data, 0, rng.randint(0, 64), np.zeros(rng.randrange(80), np.int64))
