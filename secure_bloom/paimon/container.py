"""The container of Paimon's file indexes: ``<data file>.index``, or the same bytes in a manifest.

    magic (8) | version (4) | length of the header, all of it (4)
    columns (4), for each: name | indexes (4), for each: type | start (4) | length (4)
    length of redundant bytes (4) | redundant bytes
    bodies

Numbers are signed and big-endian.  ``start`` counts from the container's first byte. It is -1 for
an EMPTY index, which is the index of a column without a value.  Names are written as by Java's
``DataOutput.writeUTF``: a length of two bytes, then modified UTF-8, in which NUL takes two bytes
(C0 80) and a character beyond 16 bits two surrogates.  An index of an unknown type is kept
unchanged.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from secure_bloom.calling.arguments import check_fields, checked_arguments
from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError
from secure_bloom.running.memory_budget import refuse_beyond

_NUL: Final = b"\xc0\x80"


# Each file of a table has an index of the same few columns.
@lru_cache(maxsize=1024)
def encode_name(text: str) -> bytes:
    """Return the bytes of ``text`` in modified UTF-8."""
    utf16 = text.encode("utf-16-be", "surrogatepass")
    units = map(chr, struct.unpack(f">{len(utf16) // 2}H", utf16))
    # Each unit of UTF-16 is encoded alone, halves of pairs too: three bytes each.
    return "".join(units).encode("utf-8", "surrogatepass").replace(b"\0", _NUL)


def decode_name(data: bytes) -> str:
    """Return the text of ``data``.

    Raises FormatError if ``data`` is not the encoding of a text.
    """
    if data.isascii() and b"\0" not in data:
        return data.decode("ascii")
    try:
        units = data.replace(_NUL, b"\0").decode("utf-8", "surrogatepass")
        text = units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError:
        text = None
    # One name must not have two spellings: a reader that compares bytes would miss an index.
    if text is None or encode_name(text) != data:
        raise FormatError("a name is not in Java's modified UTF-8")
    return text


MAGIC: Final = (1493475289347502).to_bytes(8, "big")
VERSION: Final = 1
BLOOM_FILTER: Final = "bloom-filter"
BITMAP: Final = "bitmap"

_START = struct.Struct(">8sii")
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">H")
_PLACE = struct.Struct(">ii")
_EMPTY = _PLACE.pack(-1, 0)
_MAX_NAME_BYTES = 0xFFFF
#: The least bytes that a column, and an index of it, take in the header: names may be empty.
_MIN_COLUMN = _SHORT.size + _INT.size
_MIN_INDEX = _SHORT.size + _PLACE.size
#: What a column or an index takes in memory.
_OBJECT = 320


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """One index of a column. ``body`` is None for EMPTY: the column has no value in this file."""

    type: str
    body: bytes | memoryview | None

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnIndexes:
    """A column and its indexes. The key of a map, ``m[k]``, is a column too."""

    name: str
    indexes: tuple[Index, ...]

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIndex:
    """All indexes of one data file, and the other bytes of the container."""

    columns: tuple[ColumnIndexes, ...] = ()
    redundant: bytes = b""
    trailing: bytes = b""
    _by_name: dict[str, list[Index]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        check_fields(self)
        for column in self.columns:
            self._by_name.setdefault(column.name, []).extend(column.indexes)

    @classmethod
    @checked_arguments
    def from_bytes(cls, data: bytes) -> FileIndex:
        """Return the indexes in a container.

        Raises FormatError for other bytes and for a damaged container.
        """
        reader = _ContainerReader(data)
        reader.start()
        columns = tuple(reader.column() for _ in range(reader.count("columns", _MIN_COLUMN)))
        redundant = reader.rest_of_header()
        return cls(columns=columns, redundant=redundant, trailing=data[reader.end_of_bodies :])

    def to_bytes(self) -> bytes:
        """Return the container that :meth:`from_bytes` reads, bodies in the columns' order."""
        # Numbers have fixed widths, so a header with zeros is as long as the real one.
        start = sum(map(len, self._header(0, 0)))
        # Readers go by `start`, so the order of bodies is free; bytes after them are carried
        # along.
        bodies = [index.body for column in self.columns for index in column.indexes if index.body]
        return b"".join((*self._header(start, start), *bodies, self.trailing))

    def _header(self, length: int, place: int) -> Iterator[bytes]:
        """Yield the header, for a length of ``length`` bytes and a first body at ``place``."""
        yield _START.pack(MAGIC, VERSION, length)
        yield _INT.pack(len(self.columns))
        for column in self.columns:
            yield from (_utf(column.name), _INT.pack(len(column.indexes)))
            for index in column.indexes:
                size = 0 if index.body is None else len(index.body)
                yield from (
                    _utf(index.type),
                    _EMPTY if index.body is None else _PLACE.pack(place, size),
                )
                place += size
        yield from (_INT.pack(len(self.redundant)), self.redundant)

    @checked_arguments
    def indexes(self, column: str) -> tuple[Index, ...]:
        """Return the indexes of a column, or () for a column that is not listed."""
        return tuple(self._by_name.get(column, ()))

    def renamed(self, name_of: Callable[[str], str]) -> FileIndex:
        """Return a copy whose columns have other names. The key of a map stays as it is."""
        columns = []
        for each in self.columns:
            top, bracket, key = each.name.partition("[")
            columns.append(dataclasses.replace(each, name=name_of(top) + bracket + key))
        return dataclasses.replace(self, columns=tuple(columns))

    @checked_arguments
    def with_indexes(self, new: Iterable[tuple[str, Index]]) -> FileIndex:
        """Return a copy with these indexes. Each replaces the index of its column and type."""
        columns: dict[str, dict[str, Index]] = {}
        # A column may be listed twice, with indexes of different types.
        for column in self.columns:
            columns.setdefault(column.name, {}).update({i.type: i for i in column.indexes})
        for name, index in map(_column_and_index, new):
            columns.setdefault(name, {})[index.type] = index
        return dataclasses.replace(
            self,
            columns=tuple(
                ColumnIndexes(name=name, indexes=tuple(indexes.values()))
                for name, indexes in columns.items()
            ),
        )


def _column_and_index(given: object) -> tuple[str, Index]:
    match given:
        case (str(name), Index() as index):
            return name, index
    raise PolicyError(f"new holds a {type(given).__name__}, wanted pairs of a column and its Index")


class _ContainerReader:
    """Reads a container from its first byte on, and checks every number when it is read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._view = memoryview(data)
        self._at = 0
        self._header_end = len(data)
        self._seen: set[tuple[str, str]] = set()
        self._body_bytes = 0
        self._objects = 0
        self.end_of_bodies = 0

    def start(self) -> None:
        """Check magic and version, and read the header's length."""
        if self._data[: len(MAGIC)] != MAGIC:
            raise FormatError("not a Paimon file index: it does not start with the magic number")
        _, version, length = self._unpack(_START)
        if version != VERSION:
            raise UnsupportedFeatureError(f"the file index has version {version}, wanted {VERSION}")
        # The length counts from the magic on, so it is not less than what was read.
        if not self._at <= length <= len(self._data):
            raise FormatError(f"the header takes {length} bytes, the file has {len(self._data)}")
        self._header_end = self.end_of_bodies = length

    def count(self, what: str, min_bytes: int) -> int:
        """Return a number of items, each of which takes at least ``min_bytes`` of the header."""
        (number,) = self._unpack(_INT)
        remaining = self._header_end - self._at
        if not 0 <= number * min_bytes <= remaining:
            raise FormatError(f"the number of {what} is {number}, {remaining} bytes remain")
        if min_bytes > 1:
            # A few bytes become an object, and a sparse file has any number of zeros.
            self._objects += number
            refuse_beyond(_OBJECT * self._objects, "a file index")
        return int(number)

    def column(self) -> ColumnIndexes:
        """Return one column with its indexes."""
        name = self._utf()
        indexes = tuple(self._index(name) for _ in range(self.count("indexes", _MIN_INDEX)))
        return ColumnIndexes(name=name, indexes=indexes)

    def rest_of_header(self) -> bytes:
        """Return the redundant bytes, which end the header."""
        length = self.count("redundant bytes", 1)
        if self._at + length != self._header_end:
            raise FormatError(
                f"{length} redundant bytes do not end the header, "
                f"{self._header_end - self._at} bytes remain"
            )
        return self._take(length)

    def _index(self, column: str) -> Index:
        index_type = self._utf()
        # `with_indexes` keeps one index of a type, so a second one would get lost unseen.
        if (column, index_type) in self._seen:
            raise FormatError(f"two indexes of the type {index_type!r} for one column")
        self._seen.add((column, index_type))
        start, length = self._unpack(_PLACE)
        # Both must fit: a negative start with a length would be damage.
        if (start, length) == (-1, 0):
            return Index(type=index_type, body=None)
        end = start + length
        # `start <= end` refuses a negative length.
        if not (self._header_end <= start <= end <= len(self._data)):
            raise FormatError(
                f"an index of the type {index_type!r} takes bytes {start}..{end}, "
                f"the bodies are {self._header_end}..{len(self._data)}"
            )
        self._body_bytes += length
        # Each index alone lies in the file; many that share bytes would become a container of any
        # size.
        if self._body_bytes > len(self._data):
            raise FormatError("the indexes overlap: together they are larger than the file")
        self.end_of_bodies = max(self.end_of_bodies, end)
        return Index(type=index_type, body=self._view[start:end])

    def _unpack(self, form: struct.Struct) -> tuple[int, ...]:
        return form.unpack(self._take(form.size))

    def _take(self, length: int) -> bytes:
        end = self._at + length
        if end > self._header_end:
            raise FormatError(f"the file index ends inside its header, at {self._header_end} bytes")
        self._at, taken = end, self._data[self._at : end]
        return taken

    def _utf(self) -> str:
        (length,) = self._unpack(_SHORT)
        return decode_name(self._take(length))


def _utf(name: str) -> bytes:
    encoded = encode_name(name)
    if len(encoded) > _MAX_NAME_BYTES:
        raise PolicyError(f"a name takes {len(encoded)} bytes, at most {_MAX_NAME_BYTES} fit")
    return _SHORT.pack(len(encoded)) + encoded
