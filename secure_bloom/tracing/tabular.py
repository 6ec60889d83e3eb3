"""The columns of files with a schema, as Arrow arrays: ORC, Avro, SQLite.

Each function takes a seekable file.  Damage raises UnreadError, after the columns that could be
read.
"""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, Final, NamedTuple

import pyarrow as pa

from secure_bloom.errors import KeyUnavailableError
from secure_bloom.lakes.avro_blocks import AvroBlocks
from secure_bloom.lakes.avro_files import RecordReader
from secure_bloom.running.memory_budget import MemoryBudgetError, memory_budget
from secure_bloom.tracing.apart import SectionWriter, sections_of
from secure_bloom.tracing.packed import Budget, UnreadError, extra, window_of

#: Rows that are decoded at a time.
ROWS: Final = 1 << 14
#: A database is read from memory.
_MOST_DATABASE: Final = 1 << 30
#: A row of a database takes this part of the memory budget at most.
_VALUES_AT_ONCE: Final = 8
#: The columns that one pass over a table reads take this part of the memory budget at most.
_HELD_AT_ONCE: Final = 16
#: Steps of SQLite's machine, and 16 a byte: a hostile schema may compute values for ever.
_MOST_STEPS: Final = 1_000_000_000


class Column(NamedTuple):
    """A column: its name and its values. Read the values once, in the order of the columns."""

    name: str
    arrays: Iterator[pa.Array]


Columns = Iterator[Column]


def orc_columns(file: BinaryIO, budget: Budget) -> Columns:
    """Yield the columns of an ORC file, which is decoded in a process of limited memory.

    The lengths of texts and lists are packed in the file, and pyarrow decodes whole stripes.
    """
    _check_orc(file, file.seek(0, io.SEEK_END))
    budget.take_process()
    for section in sections_of(_orc_sections, file, "an ORC file"):
        arrays = (pa.ipc.open_stream(it).read_all().column(0).chunks for it in section.pieces)
        yield Column(section.name, budgeted((array for it in arrays for array in it), budget))


def _check_orc(file: BinaryIO, end: int) -> None:
    """Raise UnreadError if no postscript, which begins with a first field, ends before ``end``."""
    file.seek(max(0, end - 256))
    tail = file.read(256)
    length = tail[-1]
    if length >= len(tail) or tail[-1 - length] != _FIRST_FIELD:
        raise UnreadError("an ORC file that cannot be read")
    file.seek(0)


#: The length of the footer (orc_proto.proto).
_FIRST_FIELD: Final = 0x08


def _orc_sections(file: BinaryIO, emit: SectionWriter) -> None:
    from pyarrow import orc

    with damage("an ORC file"):
        opened = orc.ORCFile(file)
        names = opened.schema.names
    for name in names:
        emit.section(name)
        with emit.errors(), damage("an ORC file"):
            for stripe in range(opened.nstripes):
                for array in opened.read_stripe(stripe, columns=[name]).columns:
                    for piece in _small(array):
                        emit.piece(_serialized(piece))


def _small(array: pa.Array) -> Iterator[pa.Array]:
    """Yield slices of an array that have about as many bytes as are searched at a time."""
    step = max(1, len(array) * _COLLECTED // max(array.nbytes, 1))
    return (array.slice(start, step) for start in range(0, len(array), step))


def _serialized(array: pa.Array) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([array], names=[""])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def orc_start(file: BinaryIO, starts: list[int], end: int, budget: Budget) -> int | None:
    """Return the first of ``starts`` at which an ORC file begins. The ORC file ends at ``end``."""
    _check_orc(file, end)
    budget.take_process()
    found = sections_of(partial(_orc_starts, starts=starts, end=end), file, "an ORC file")
    return next((int(section.name) for section in found), None)


def _orc_starts(file: BinaryIO, emit: SectionWriter, starts: list[int], end: int) -> None:
    from pyarrow import orc

    for start in starts:
        with suppress(pa.ArrowException, OSError, ValueError):
            opened = orc.ORCFile(window_of(file, start, end))
            if opened.nstripes:
                opened.read_stripe(0, columns=opened.schema.names[:1])
            emit.section(str(start))
            return


def avro_columns(file: BinaryIO, budget: Budget) -> Columns:
    """Yield the fields of the records of an Avro file, a batch of values at a time.

    Blocks before damage, or before other bytes, are read. Then UnreadError is raised.
    """
    fastavro = extra("fastavro")
    with damage("an Avro file"):
        blocks = AvroBlocks(file, budget.take)
        reader = RecordReader(blocks, fastavro)
        found = _AvroFields(budget)
        try:
            for number, data in blocks:
                # Fields that take no byte cost time alone.
                budget.take(number * blocks.cost.fixed // _FIXED)
                for record in reader.records(number, data):
                    if found.add(record):
                        yield from found.columns()
        except Exception:
            yield from found.columns()
            raise
        yield from found.columns()


#: Bytes of texts, and values of rows, that are collected before they are searched.
_VALUES: Final = 1 << 20
_COLLECTED: Final = 16 << 20
#: This part of what a record takes decoded is counted as work.
_FIXED: Final = 16


class _AvroFields:
    """The values of the latest records, by the paths of their fields."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._rows = self._size = 0
        self._texts: dict[str, list[bytes]] = {}

    def add(self, record: Any) -> bool:
        """Add the values of a record. Return whether there are enough of them."""
        fields: dict[str, list[object]] = {}
        _flatten(record, "", fields, 0)
        for name, values in fields.items():
            texts = [
                it if isinstance(it, bytes) else str(it).encode("utf-8", "replace") for it in values
            ]
            size = sum(map(len, texts))
            self._budget.take(size)
            self._size += size
            self._texts.setdefault(name, []).extend(texts)
        self._rows += 1
        return self._rows == ROWS or self._size > _COLLECTED

    def columns(self) -> Columns:
        """Yield the values by their fields, and forget them."""
        texts, self._texts, self._rows, self._size = self._texts, {}, 0, 0
        for name, values in texts.items():
            yield Column(name, iter([pa.array(values, pa.large_binary())]))


_DEEPEST: Final = 32


def _flatten(value: object, name: str, fields: dict[str, list[object]], depth: int) -> None:
    """Put each single value of a record under the path of its field."""
    if depth > _DEEPEST:
        raise UnreadError("an Avro file with records that are nested too deep")
    if isinstance(value, dict):
        for key, member in value.items():
            _flatten(member, f"{name}.{key}" if name else str(key), fields, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _flatten(item, name, fields, depth + 1)
    elif value is not None and not isinstance(value, bool):
        fields.setdefault(name, []).append(value)


def sqlite_columns(file: BinaryIO, budget: Budget) -> Columns:
    """Yield the columns of all tables of a SQLite database, which is never written to."""
    content = file.read(_MOST_DATABASE + 1)
    if len(content) > _MOST_DATABASE:
        raise UnreadError(f"a database of more than {_MOST_DATABASE:,} bytes")
    connection = sqlite3.connect(":memory:")
    try:
        with damage("a SQLite database"):
            # The header says that a write-ahead log is used, which is not there in memory.
            connection.deserialize(content[:18] + b"\x01\x01" + content[20:])
            connection.text_factory = bytes
            steps = iter(range((_MOST_STEPS + 16 * len(content)) // 100_000))
            connection.set_progress_handler(lambda: next(steps, None) is None, 100_000)
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("PRAGMA query_only=ON")
            tables = [name for (name,) in connection.execute(_TABLES)]
        for table in tables:
            with damage("a table of a SQLite database"):
                quoted = _quoted(table)
                names = [row[1] for row in connection.execute(f"PRAGMA table_info({quoted})")]
            if names:
                yield from _of_table(connection, names, quoted, budget)
    finally:
        connection.close()
    # SQLite reads zeros there: rows without values.
    if content[24:28] == content[92:96] and end_of_database(file) > len(content):
        raise UnreadError("a SQLite database that is cut short")


def end_of_database(file: BinaryIO) -> int:
    """Return where a SQLite database ends by its header (fileformat2.html, 1.3)."""
    file.seek(0)
    head = file.read(32)
    page, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    # 1 is a page of 65,536 bytes, which two bytes cannot say.
    return (1 << 16 if page == 1 else page) * pages


#: Virtual tables would run code of their own; what they hold is in other tables.
_TABLES: Final = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def _quoted(name: bytes) -> str:
    return '"' + name.decode("utf-8").replace('"', '""') + '"'


def _of_table(
    connection: sqlite3.Connection, names: list[bytes], table: str, budget: Budget
) -> Columns:
    """Yield columns of a table, by one pass over the rows if they take little memory together.

    Else each half of the columns is read by itself, and a single column in batches.
    """
    batches = _batches(connection, names, table, budget)
    if len(names) == 1:
        yield Column(_text(names[0]), (array for (arrays,) in batches for array in arrays))
        return
    held: list[list[pa.Array]] = [[] for _ in names]
    error = None
    try:
        for batch in batches:
            for arrays, more in zip(held, batch, strict=True):
                arrays.extend(more)
    except sqlite3.DataError:
        held.clear()
        for half in names[: len(names) // 2], names[len(names) // 2 :]:
            yield from _of_table(connection, half, table, budget)
        return
    except UnreadError as raised:
        error = raised
    for name, arrays in zip(names, held, strict=True):
        yield Column(_text(name), _joined(arrays, error))


def _joined(arrays: list[pa.Array], error: UnreadError | None) -> Iterator[pa.Array]:
    """Yield the arrays of each type as one. Raise the error that ended them."""
    for kind in dict.fromkeys(array.type for array in arrays):
        yield pa.concat_arrays([array for array in arrays if array.type == kind])
    if error is not None:
        raise error


def _batches(
    connection: sqlite3.Connection, names: list[bytes], table: str, budget: Budget
) -> Iterator[list[list[pa.Array]]]:
    """Yield the values of rows: arrays of each column, by type, without NULL.

    Raises DataError if several columns take too much memory together.
    """
    # A row has one value of each column, and a hostile schema may compute them.
    most = memory_budget() // _VALUES_AT_ONCE // len(names)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most)
    query = f"SELECT {', '.join(map(_quoted, names))} FROM {table}"  # noqa: S608, quoted
    held = 0
    with damage("a table of a SQLite database", *([sqlite3.DataError] if names[1:] else [])):
        for size, rows in _collected(connection.execute(query)):
            budget.take(size)
            held += size
            if held > memory_budget() // _HELD_AT_ONCE and names[1:]:
                raise sqlite3.DataError
            yield [
                [
                    pa.array(values, arrow)
                    for kind, arrow in _KINDS.items()
                    if (values := [it for it in column if type(it) is kind])
                ]
                for column in zip(*rows, strict=True)
            ]


_Row = tuple[object, ...]
_KINDS: Final = {int: pa.int64(), float: pa.float64(), bytes: pa.large_binary()}


def _collected(rows: Iterator[_Row]) -> Iterator[tuple[int, list[_Row]]]:
    """Yield rows in batches that are limited in number and in bytes, with their bytes.

    An error is raised after the rows before it.
    """
    some: list[_Row] = []
    size = 0
    try:
        for row in rows:
            some.append(row)
            size += sum([len(it) if type(it) is bytes else 8 for it in row if it is not None])
            # A value that is a number or NULL takes memory, too.
            if len(some) == ROWS or len(some) * len(row) > _VALUES or size > _COLLECTED:
                yield size, some
                some, size = [], 0
    except sqlite3.Error:
        if some:
            yield size, some
        raise
    if some:
        yield size, some


def budgeted(arrays: Any, budget: Budget) -> Iterator[pa.Array]:
    """Yield the arrays. Each array is counted in the budget when it is decoded."""
    for array in arrays:
        budget.take(_decoded_size(array))
        yield array


def _decoded_size(array: pa.Array) -> int:
    if isinstance(array, pa.DictionaryArray):
        return int(array.indices.nbytes) + int(array.dictionary.nbytes)
    return int(array.nbytes)


class damage:  # noqa: N801
    """Turn an error of a library into an UnreadError that quotes nothing of the file."""

    def __init__(self, what: str, *unchanged: type[Exception]) -> None:
        self._what = what
        self._unchanged = (UnreadError, *unchanged)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, _: object) -> None:
        if kind is None or not issubclass(kind, Exception) or kind in self._unchanged:
            return
        if isinstance(error, MemoryBudgetError):
            raise UnreadError(error.message) from None
        if isinstance(error, KeyUnavailableError):
            raise UnreadError(f"{self._what} that is encrypted: {error.message}") from None
        raise UnreadError(f"{self._what} that cannot be read") from None
