"""The columns of an Arrow file (Feather) or stream, whose buffers are counted before decoding.

A compressed buffer begins with its size when it is unpacked (int64), so the metadata of a batch and
a few bytes of each buffer show what the batch takes.  "Arrow Columnar Format", "Serialization and
Interprocess Communication"; the metadata are FlatBuffers tables of Message.fbs and File.fbs.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import BinaryIO, Final, NamedTuple

import numpy as np
import pyarrow as pa

from secure_bloom.errors import FormatError
from secure_bloom.parquet.arrow_schemas import message_size, schema_size
from secure_bloom.parquet.flat_tables import root, scalar, table_at, vector
from secure_bloom.tracing.packed import Budget, UnreadError, check_at_once
from secure_bloom.tracing.tabular import Column, damage

_MAGIC: Final = b"ARROW1"
_CONTINUES: Final = b"\xff\xff\xff\xff"
#: Fields of tables, by their positions.
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_NODES, _BUFFERS, _COMPRESSION = 1, 2, 3
_DATA = 1
_SCHEMA, _DICTIONARIES, _BATCHES = 1, 2, 3
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_NODE, _BUFFER, _BLOCK = 16, 16, 24
_SCHEMA_OF: Final = "the schema of an Arrow file"
#: What a file may take decoded to be decoded once for all columns.
_HELD: Final = 64 << 20
#: Bytes, and rows, of one column that are searched at a time.
_AT_ONCE, _ROWS = 32 << 20, 1 << 18


def arrow_columns(file: BinaryIO, budget: Budget) -> Iterator[Column]:
    """Yield the columns of an Arrow file, or of several consecutive streams."""
    with damage("an Arrow file"):
        if file.read(len(_MAGIC)) == _MAGIC:
            yield from _file(file, budget)
            return
        for start in _starts_of_streams(file):
            yield from _stream(file, start, budget)


def end_of_streams(file: BinaryIO) -> int:
    """Return the offset after the consecutive streams that begin at the start of a file."""
    return max(_end_of_stream(file, start) for start in _starts_of_streams(file))


def _starts_of_streams(file: BinaryIO) -> Iterator[int]:
    start, end = 0, file.seek(0, io.SEEK_END)
    while end - start >= len(_CONTINUES) and _bytes_at(file, start, 4) == _CONTINUES:
        yield start
        start = _end_of_stream(file, start)


def size_of_schema(file: BinaryIO, start: int) -> int:
    """Return about how many bytes a stream's first schema takes when decoded.

    0 if it has no schema.
    """
    with suppress(UnreadError, FormatError, struct.error):
        for first in islice(_messages(file, start), 1):
            return message_size(_bytes_at(file, first.metadata, first.length))
    return 0


def _file(file: BinaryIO, budget: Budget) -> Iterator[Column]:
    size = sum(_check(file, it, budget) for it in _blocks_of_file(file))
    file.seek(0)
    opened = pa.ipc.open_file(file)
    count, held = opened.num_record_batches, list[pa.RecordBatch]()
    if size <= _HELD:
        held = [opened.get_batch(number) for number in range(count)]
    for ordinal, name in enumerate(opened.schema.names):
        arrays = (it.column(ordinal) for it in held) if held else _arrays(file, ordinal)
        yield Column(name, _searchable(arrays))


def _stream(file: BinaryIO, start: int, budget: Budget) -> Iterator[Column]:
    size = sum(_check(file, it, budget) for it in _messages(file, start))
    check_at_once(size, "an Arrow stream")
    file.seek(start)
    opened = pa.ipc.open_stream(file)
    held = list(opened)
    for ordinal, name in enumerate(opened.schema.names):
        yield Column(name, _searchable(it.column(ordinal) for it in held))


def _arrays(file: BinaryIO, ordinal: int) -> Iterator[pa.Array]:
    """Yield the arrays of one column of a file. No other column is decoded."""
    file.seek(0)
    only = pa.ipc.IpcReadOptions(included_fields=[ordinal])
    opened = pa.ipc.open_file(file, options=only)
    for number in range(opened.num_record_batches):
        yield opened.get_batch(number).column(0)


def _searchable(arrays: Iterable[pa.Array]) -> Iterator[pa.Array]:
    with damage("an Arrow file"):
        for array in arrays:
            # What offsets point to is the file's claim.
            array.validate(full=True)
            yield from _pieces(array)


def _pieces(array: pa.Array) -> Iterator[pa.Array]:
    """Yield an array in slices whose texts stay small."""
    kind = array.type
    if pa.types.is_nested(kind) or pa.types.is_dictionary(kind):
        yield array
        return
    step = _ROWS
    if kind in (pa.string_view(), pa.binary_view()) and len(array):
        # Each row begins with its length, and all rows may show the same bytes.
        views = np.frombuffer(array.buffers()[1], np.uint32)
        longest = int(views[:: _NODE // 4].max())
        step = max(1, min(step, _AT_ONCE // max(longest, 1)))
    for start in range(0, len(array), step):
        yield array.slice(start, step)


def _check(file: BinaryIO, batch: _Message, budget: Budget) -> int:
    """Count how many bytes a batch takes when decoded, and return the number.

    Raises UnreadError if the number exceeds the budget.
    """
    metadata = _bytes_at(file, batch.metadata, batch.length)
    message = root(metadata)
    check_at_once(message_size(metadata), _SCHEMA_OF)
    kind = scalar(metadata, message, _HEADER_TYPE, "<B")
    header = table_at(metadata, message, _HEADER)
    if kind == _DICTIONARY_BATCH and header is not None:
        header = table_at(metadata, header, _DATA)
    elif kind != _RECORD_BATCH:
        return 0
    if header is None:
        raise UnreadError("an Arrow file with a batch that has no metadata")
    size: int = 0
    start, count = vector(metadata, header, _BUFFERS)
    is_packed = table_at(metadata, header, _COMPRESSION) is not None
    for number in range(count):
        offset, stored = struct.unpack_from("<qq", metadata, start + number * _BUFFER)
        unpacked = stored
        if is_packed and stored:
            (unpacked,) = struct.unpack_from("<q", _bytes_at(file, batch.body + offset, 8))
        size += max(stored, unpacked)
        check_at_once(size, "a batch of an Arrow file")
    # Some types take no byte of a buffer for a row.
    start, count = vector(metadata, header, _NODES)
    size += sum(
        max(0, struct.unpack_from("<q", metadata, start + number * _NODE)[0])
        for number in range(count)
    )
    check_at_once(size, "a batch of an Arrow file")
    budget.take(size)
    return size


class _Message(NamedTuple):
    """Where a message's metadata are, how many bytes they take, and where its buffers begin."""

    metadata: int
    length: int
    body: int


def _blocks_of_file(file: BinaryIO) -> list[_Message]:
    """Return the batches that the footer of a file names."""
    end = file.seek(0, io.SEEK_END) - len(_MAGIC) - 4
    (length,) = struct.unpack_from("<i", _bytes_at(file, end, 4))
    footer = _bytes_at(file, end - length, length)
    tables, found = root(footer), list[_Message]()
    schema = table_at(footer, tables, _SCHEMA)
    if schema is not None:
        check_at_once(schema_size(footer, schema), _SCHEMA_OF)
    for field in (_DICTIONARIES, _BATCHES):
        start, count = vector(footer, tables, field)
        for number in range(count):
            at, size = struct.unpack_from("<qi", footer, start + number * _BLOCK)
            skipped = 8 if _bytes_at(file, at, 4) == _CONTINUES else 4
            found.append(_Message(at + skipped, size - skipped, at + size))
    return found


def _messages(file: BinaryIO, start: int) -> Iterator[_Message]:
    """Yield the messages of the stream that begins at an offset."""
    while _bytes_at(file, start, 4) == _CONTINUES:
        (length,) = struct.unpack_from("<i", _bytes_at(file, start + 4, 4))
        if not length:
            return
        found = _Message(start + 8, length, start + 8 + length)
        yield found
        start = _end(file, found)
        if start >= file.seek(0, io.SEEK_END):
            return


def _end(file: BinaryIO, message: _Message) -> int:
    metadata = _bytes_at(file, message.metadata, message.length)
    size = scalar(metadata, root(metadata), _BODY_LENGTH, "<q")
    if size < 0:
        raise UnreadError("an Arrow stream with a message of a negative length")
    return message.body + size


def _end_of_stream(file: BinaryIO, start: int) -> int:
    """Return where a stream ends. An end-of-stream marker belongs to the stream."""
    for message in _messages(file, start):
        start = _end(file, message)
    file.seek(start)
    return start + 8 if file.read(8) == _CONTINUES + bytes(4) else start


def _bytes_at(file: BinaryIO, at: int, length: int) -> bytes:
    if at < 0 or length < 0 or at + length > file.seek(0, io.SEEK_END):
        raise UnreadError("an Arrow file that is cut short or damaged")
    check_at_once(length, "the metadata of an Arrow file")
    file.seek(at)
    return file.read(length)
