"""Scan a FileMetaData: the fields other than its column chunks, and the offset of each chunk.

A footer lists thousands of column chunks, and few are read.  The scan checks that each is whole. A
chunk is decoded when it is used.  Files of one table have the same schema, so a schema is decoded
once and found again by its bytes.

The C extension scans a usual footer once.  The Thrift library reads all other footers, and without
the extension every footer, so its errors name the fault.
"""

from __future__ import annotations

import functools
import threading
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, cast, overload

from secure_bloom.errors import FormatError
from secure_bloom.kernels import extension
from secure_bloom.parquet.schema import Leaf, leaves, read_element
from secure_bloom.parquet.structures.metadata import (
    ColumnChunk,
    FileMetaData,
    RowGroup,
    SchemaElement,
)
from secure_bloom.parquet.structures.records import (
    LaterRecords,
    RecordSource,
    copied_record,
    decode_record,
    measured_outline,
)
from secure_bloom.parquet.structures.wire_fields import find_fields

#: Schemas are forgotten when those that are known have more bytes than this.  Decoded, each byte
#: takes about a hundred.
_KNOWN_BYTES: Final = 2 * 1024 * 1024
#: The extension's number for a field that is not there.
ABSENT: Final = -(2**63)


@dataclass(frozen=True, slots=True)
class FooterSchema:
    """The schema of a footer: its bytes, its elements as a list, and the leaves of their tree."""

    encoded: bytes
    elements: list[SchemaElement]
    leaves: tuple[Leaf, ...]


class RowGroupNumbers(NamedTuple):
    """The used fields of a RowGroup, by their names in the format, in the extension's order."""

    num_rows: int
    total_byte_size: int
    ordinal: int | None
    file_offset: int | None
    total_compressed_size: int | None
    columns: Sequence[ColumnChunk]


#: Numbers of a row group before its chunks, in a scan.
NUMBERS: Final = len(RowGroupNumbers._fields) - 1


class _Head(NamedTuple):
    """The first numbers of a scan. ``rest`` is the offset at which the row groups end."""

    length: int
    schema_start: int
    schema_end: int
    rest: int
    groups: int
    columns: int
    version: int
    num_rows: int


class ScannedRowGroups(Sequence[RowGroup]):
    """The row groups that the extension found. Each is made when it is first accessed.

    ``numbers`` has :data:`NUMBERS` for each row group, then the offset of each of its ``width``
    column chunks in ``plain``.
    """

    def __init__(self, plain: bytes, numbers: memoryview, count: int, width: int) -> None:
        self._plain = plain
        self.numbers = numbers
        self._count = count
        self.width = width
        self._known: dict[int, RowGroupNumbers] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> RowGroup: ...
    @overload
    def __getitem__(self, index: slice) -> list[RowGroup]: ...
    def __getitem__(self, index: int | slice) -> RowGroup | list[RowGroup]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        found = self._known.get(index)
        if found is None:
            if not -self._count <= index < self._count:
                raise IndexError(index)
            found = self._known[index] = self._made(index % self._count)
        return cast("RowGroup", found)

    def __iter__(self) -> Iterator[RowGroup]:
        return map(self.__getitem__, range(self._count))

    def _made(self, index: int) -> RowGroupNumbers:
        numbers = self.numbers[index * NUMBERS : (index + 1) * NUMBERS].tolist()
        present: list[Any] = [None if number == ABSENT else number for number in numbers]
        return RowGroupNumbers._make([*present, LaterRecords(self._source, self.offsets_of(index))])

    def offsets_of(self, index: int) -> list[int]:
        """Return the offsets of the column chunks of a row group."""
        start = self._count * NUMBERS + index * self.width
        return self.numbers[start : start + self.width].tolist()

    @cached_property
    def _source(self) -> RecordSource[ColumnChunk]:
        return RecordSource(ColumnChunk, self._plain)


@dataclass(frozen=True, kw_only=True, eq=False)
class FooterScan:
    """The scan of the FileMetaData in the first ``length`` bytes of ``plain``.

    Its row groups are in ``row_groups`` and its schema is in :attr:`schema`. ``metadata`` has the
    other fields.  ``known_extent`` is the extent of the schema if a scan has found it.
    """

    plain: bytes
    length: int
    metadata: FileMetaData
    row_groups: Sequence[RowGroup]
    known_extent: tuple[int, int] | None = None

    @cached_property
    def schema_extent(self) -> tuple[int, int]:
        """The start and end of the schema's elements, which follow each other."""
        if self.known_extent is not None:
            return self.known_extent
        # The library leaves each element as its offset.
        offsets = cast("Sequence[int]", self.metadata.schema)
        if not offsets:
            return 0, 0
        # Elements of a list follow each other, so the last one's end is the end of all.
        return offsets[0], find_fields(self.plain, offsets[-1]).stop + 1

    @cached_property
    def schema(self) -> FooterSchema:
        """The schema. Raises FormatError if the elements are not one whole tree."""
        start, end = self.schema_extent
        return _schemas.decoded(self.plain[start:end])

    @cached_property
    def column_chunks(self) -> tuple[Sequence[ColumnChunk], ...]:
        """The column chunks of each row group."""
        return tuple(group.columns for group in self.row_groups)

    @cached_property
    def chunk_offsets(self) -> Sequence[Sequence[int]]:
        """The offset of each column chunk, by row group."""
        groups = self.row_groups
        if isinstance(groups, ScannedRowGroups):
            return [groups.offsets_of(index) for index in range(len(groups))]
        return [cast("LaterRecords[ColumnChunk]", group.columns).offsets for group in groups]

    def take_chunks(self, groups: Sequence[RowGroup]) -> None:
        """Take the column chunks of row groups that were decoded from the same bytes."""
        for group, decoded in zip(self.row_groups, groups, strict=True):
            cast("LaterRecords[ColumnChunk]", group.columns).take(decoded.columns)

    def check_chunks(self) -> None:
        """Raise FormatError unless every row group has one chunk for each column."""
        wanted, groups = len(self.schema.leaves), self.row_groups
        if isinstance(groups, ScannedRowGroups) and groups.width == wanted:
            return
        for index, offsets in enumerate(self.chunk_offsets):
            if len(offsets) != wanted:
                raise FormatError(
                    f"{len(offsets)} column chunks, the schema has {wanted} columns",
                    row_group=index,
                )

    @cached_property
    def rows(self) -> list[int]:
        """The number of rows of each row group. Raises the errors of :attr:`numbers`."""
        return self.numbers[: len(self.row_groups) * NUMBERS : NUMBERS].tolist()

    @cached_property
    def ordinals(self) -> list[int]:
        """The ordinal of each row group in AADs, or its position if it has no ordinal."""
        ordinals = self.numbers[2 : len(self.row_groups) * NUMBERS : NUMBERS].tolist()
        return [index if ordinal < 0 else ordinal for index, ordinal in enumerate(ordinals)]

    @cached_property
    def numbers(self) -> memoryview:
        """The numbers of all row groups, then the offsets of all chunks, as 64-bit integers.

        Call :meth:`check_chunks` before.  Raises FormatError for a row group that lacks a required
        field or has negative rows.
        """
        groups = self.row_groups
        if isinstance(groups, ScannedRowGroups):
            return groups.numbers
        rows = [number for index, group in enumerate(groups) for number in _numbers(index, group)]
        offsets = [offset for offsets in self.chunk_offsets for offset in offsets]
        return memoryview(array("q", rows + offsets))


def _numbers(index: int, group: RowGroup) -> list[int]:
    """Return the numbers of a row group that the library decoded, in the extension's form."""
    if group.num_rows < 0:
        raise FormatError(f"RowGroup.num_rows is {group.num_rows}", row_group=index)
    optional = [group.ordinal, group.file_offset, group.total_compressed_size]
    known = [ABSENT if number is None else number for number in optional]
    return [group.num_rows, group.total_byte_size, *known]


def scan_footer(plain: bytes) -> FooterScan:
    """Return the scan of the FileMetaData at the start of ``plain``.

    Raises FormatError if ``plain`` does not start with a whole FileMetaData.
    """
    return _scanned(plain) or _scanned_by_library(plain)


def _scanned(plain: bytes) -> FooterScan | None:
    """Return the scan by the extension, or None for an unusual footer or without the extension."""
    if extension.native is None:
        return None
    # A column chunk takes more than eight bytes, so this is room for all, and bounded by the bytes.
    numbers = memoryview(bytearray(len(plain) // 8 * 8 + 1024)).cast("q")
    if extension.native.scan(plain, numbers) < 0:
        return None
    first = len(_Head._fields)
    head = _Head(*numbers[:first].tolist())
    try:
        metadata = copied_record(_beside(plain[head.rest : head.length]))
    except FormatError:
        # Of the whole footer the library says where it is damaged.
        return None
    if head.num_rows != ABSENT:
        metadata.num_rows = head.num_rows
    if head.version != ABSENT:
        metadata.version = head.version
    used = memoryview(bytes(numbers[first : first + head.groups * (NUMBERS + head.columns)]))
    return FooterScan(
        plain=plain,
        length=head.length,
        metadata=metadata,
        known_extent=(head.schema_start, head.schema_end),
        row_groups=ScannedRowGroups(plain, used.cast("q"), head.groups, head.columns),
    )


def _beside(encoded: bytes) -> FileMetaData:
    """Return the fields after the row groups.

    Most files of one table share them, so they are kept.
    """
    return (_kept if len(encoded) <= _LARGEST_KEPT else _decoded_rest)(encoded)


def _decoded_rest(encoded: bytes) -> FileMetaData:
    # Ids count from the field before.  In place of the row groups, field 4, is a number, which
    # the library passes over.
    return decode_record(FileMetaData, b"\x45\x00" + encoded)


_LARGEST_KEPT: Final = 64 * 1024
_kept = functools.lru_cache(maxsize=16)(_decoded_rest)


def _scanned_by_library(plain: bytes) -> FooterScan:
    """Return the scan by the Thrift library."""
    metadata, length = measured_outline(FileMetaData, plain, SchemaElement, ColumnChunk)
    source = RecordSource(ColumnChunk, plain)
    for group in metadata.row_groups:
        offsets = cast("Sequence[int]", group.columns)
        group.columns = cast(Any, LaterRecords(source, offsets))
    return FooterScan(
        plain=plain,
        length=length,
        metadata=metadata,
        row_groups=metadata.row_groups,
    )


class _Schemas:
    """Maps the bytes of recently decoded schemas to the schemas. Safe for threads."""

    def __init__(self) -> None:
        self._known: dict[bytes, FooterSchema] = {}
        self._bytes = 0
        self._turn = threading.Lock()

    def decoded(self, encoded: bytes) -> FooterSchema:
        """Return the schema whose elements are ``encoded``."""
        # No lock is taken: looking into a dict is atomic, and at worst two threads decode one
        # schema.
        known = self._known.get(encoded)
        return self._enter(encoded, _decoded(encoded)) if known is None else known

    def _enter(self, encoded: bytes, schema: FooterSchema) -> FooterSchema:
        with self._turn:
            self._bytes += len(encoded)
            if self._bytes > _KNOWN_BYTES:
                # All are forgotten at once: to forget the oldest alone would take a note of every
                # use.
                self._known, self._bytes = {}, len(encoded)
            self._known[encoded] = schema
        return schema


def _decoded(encoded: bytes) -> FooterSchema:
    elements, position = [], 0
    # Elements carry no length: each one's end, found in its bytes, is where the next one starts.
    while position < len(encoded):
        end = find_fields(encoded, position).stop + 1
        elements.append(read_element(encoded[position:end]))
        position = end
    return FooterSchema(encoded, elements, leaves(elements))


_schemas = _Schemas()
