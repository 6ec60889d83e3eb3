"""Small files of any kind with columns take little memory, whatever they claim to hold."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import py7zr
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import secure_bloom as sb
from secure_bloom.running.memory_budget import VARIABLE
from secure_bloom.tracing.arrow_columns import arrow_columns
from secure_bloom.tracing.content import Opened
from secure_bloom.tracing.forms import plain_texts
from secure_bloom.tracing.packed import Budget, UnreadError
from secure_bloom.tracing.parquet_columns import parquet_columns
from secure_bloom.tracing.sources import parts_of
from secure_bloom.tracing.tabular import Columns, orc_columns
from testing.arrow_bombs import arrow_file, parquet_with, shared_children

MIB = 1 << 20
LONG = "x" * MIB


def parquet(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        table, sink, compression="zstd", row_group_size=len(table), store_schema=False, **options
    )
    return sink.getvalue()


def dictionary() -> bytes:
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(600, np.int32)), pa.array([LONG]))
    return parquet(pa.table({"a": texts}), dictionary_pagesize_limit=4 * MIB)


def fixed() -> bytes:
    values = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(600, np.int32)), pa.array([LONG.encode()], pa.binary(MIB))
    )
    return parquet(pa.table({"a": values}), dictionary_pagesize_limit=4 * MIB)


def prefixes() -> bytes:
    texts = pa.table({"a": [LONG] * 400})
    return parquet(texts, use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY"})


def lists() -> bytes:
    values = pa.ListArray.from_arrays([0, 30_000_000], pa.array(np.zeros(30_000_000, np.int8)))
    return parquet(pa.table({"a": values}))


def arrow(array: pa.Array, *, is_file: bool = True) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"a": array})
    if is_file:
        feather.write_feather(table, sink, compression="zstd", chunksize=len(table))
        return sink.getvalue()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def zeros() -> pa.Array:
    return pa.array(np.zeros(40 * MIB, np.int64))


def views() -> pa.Array:
    # All rows show the same megabyte.
    row = np.array([MIB, 0x78787878, 0, 0], np.uint32)
    shown = [None, pa.py_buffer(np.tile(row, 500)), pa.py_buffer(LONG.encode())]
    return pa.Array.from_buffers(pa.string_view(), 500, shown)


def orc_dictionary() -> bytes:
    sink = io.BytesIO()
    table = pa.table({"a": [LONG] * 300})
    orc.write_table(table, sink, compression="zstd", dictionary_key_size_threshold=1.0)
    return sink.getvalue()


Reader = Callable[[BinaryIO, Budget], Columns]
FILES: dict[str, tuple[Callable[[], bytes], Reader]] = {
    "Parquet, a long text in a dictionary": (dictionary, parquet_columns),
    "Parquet, long bytes in a dictionary": (fixed, parquet_columns),
    "Parquet, prefixes": (prefixes, parquet_columns),
    "Parquet, a long list": (lists, parquet_columns),
    "Arrow file": (lambda: arrow(zeros()), arrow_columns),
    "Arrow stream": (lambda: arrow(zeros(), is_file=False), arrow_columns),
    "Arrow, views": (lambda: arrow(views()), arrow_columns),
    "ORC, a long text in a dictionary": (orc_dictionary, orc_columns),
}


#: A pool of memory stays until the last array is gone.
POOLS: list[pa.MemoryPool] = []


def peak(content: bytes, columns: Reader) -> int:
    """Return the most bytes that arrays took while a file was searched."""
    POOLS.append(pa.proxy_memory_pool(pa.default_memory_pool()))
    pa.set_memory_pool(POOLS[-1])
    try:
        for column in columns(io.BytesIO(content), Budget(len(content), 256 * MIB, 100)):
            for array in column.arrays:
                for texts in plain_texts(array):
                    del texts
    except UnreadError:
        pass
    finally:
        pa.set_memory_pool(pa.system_memory_pool())
    return int(POOLS[-1].max_memory())


#: Others of Parquet are as small, and take less time.
SLOW = "Parquet, long bytes in a dictionary"


@pytest.mark.parametrize(
    "what", [pytest.param(it, marks=[pytest.mark.slow] * (it == SLOW)) for it in FILES]
)
def test_a_small_file_takes_little_memory(what: str) -> None:
    make, columns = FILES[what]
    content = make()
    assert len(content) < 100_000
    assert peak(content, columns) < 200 * MIB


def test_members_of_a_7z_archive_are_not_kept() -> None:
    file = io.BytesIO()
    with py7zr.SevenZipFile(file, "w", filters=[{"id": py7zr.FILTER_BZIP2}]) as archive:
        archive.writestr(LONG * 80, "a")
    assert len(file.getvalue()) < 100_000
    file.seek(0)
    opened = Opened(Budget(0, 1_000 * MIB, 0))
    tracemalloc.start()
    sizes = [sum(map(len, part.pieces or ())) for part in parts_of(file, opened)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sizes[2:] == [80 * MIB]
    assert not opened.unread
    assert peak < 60 * MIB


@pytest.mark.parametrize("kind", ["file", "stream", "Parquet"])
def test_a_schema_of_many_fields_is_listed_as_not_read(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has 131,071 fields in 110 KB: all structures have the same members."""
    monkeypatch.setenv(VARIABLE, "64MiB")
    message = shared_children(16, 100_000)
    content = {
        "file": arrow_file(16, 100_000),
        "stream": message + b"\xff" * 4 + bytes(4),
        "Parquet": parquet_with(message),
    }[kind]
    (tmp_path / "x").write_bytes(content)
    pq.write_table(pa.table({"a": ["alice@example.com"]}), tmp_path / "values.parquet")
    report = sb.trace(tmp_path / "x", values_of=f"{tmp_path}/values.parquet:a")
    reasons = [it.reason for file in report.files for it in file.unread]
    wanted = "the writer's Arrow schema" if kind == "Parquet" else "the schema of an Arrow file"
    assert any(reason.startswith(wanted) for reason in reasons), reasons


def test_offsets_of_an_arrow_file_are_checked() -> None:
    texts, sink = pa.table({"a": ["alice@example.com", "bob@example.com"]}), io.BytesIO()
    with pa.ipc.new_file(sink, texts.schema) as writer:
        writer.write_table(texts)
    offsets = np.array([0, 17, 32], np.int32).tobytes()
    content = sink.getvalue()
    assert content.count(offsets) == 1
    sink = io.BytesIO(content.replace(offsets, np.array([0, 1 << 20, 32], np.int32).tobytes()))
    (column,) = arrow_columns(sink, Budget(1, 256 * MIB, 100))
    with pytest.raises(UnreadError):
        list(column.arrays)


@pytest.mark.parametrize("is_file", [True, False], ids=["file", "stream"])
@pytest.mark.parametrize("packed", [None, "lz4", "zstd"])
def test_columns_of_arrow_files_are_all_read(is_file: bool, packed: str | None) -> None:
    texts = pa.array(["alice", "bob", None] * 50_000)
    table = pa.table({"t": texts, "d": texts.dictionary_encode(), "n": range(150_000)})
    sink = io.BytesIO()
    new = pa.ipc.new_file if is_file else pa.ipc.new_stream
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=packed)) as writer:
        writer.write_table(table, max_chunksize=40_000)
    sink.seek(0)
    found = {it.name: list(it.arrays) for it in arrow_columns(sink, Budget(0, 256 * MIB, 100))}
    for name, arrays in found.items():
        assert pa.chunked_array(arrays).equals(table.column(name)), name


def test_streams_that_follow_one_another_are_all_read() -> None:
    sink = io.BytesIO()
    for name in ("a", "b"):
        table = pa.table({name: ["alice@example.com"]})
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    sink.seek(0)
    found = [it.name for it in arrow_columns(sink, Budget(0, 256 * MIB, 100)) if list(it.arrays)]
    assert found == ["a", "b"]
