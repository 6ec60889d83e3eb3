"""Outline a FileMetaData: the fields beside its column chunks, and the offset of each chunk.

A footer lists thousands of column chunks, and few are looked at.  The scan shows that each is
whole; a chunk is decoded when it is used.  Files of one table have the same schema, so a schema is
decoded once and found again by its bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from secure_bloom.errors import FormatError
from secure_bloom.parquet.schema import Leaf, leaves
from secure_bloom.parquet.structures import trees
from secure_bloom.parquet.structures.metadata import (
    ColumnChunk,
    FileMetaData,
    RowGroup,
    SchemaElement,
)
from secure_bloom.parquet.structures.records import (
    LaterRecords,
    RecordSource,
    measured_outline,
)
from secure_bloom.parquet.structures.wire_fields import find_fields

#: Schemas are forgotten when those that are known have more bytes than this.  Decoded, each byte
#: takes about a hundred.
_KNOWN_BYTES: Final = 2 * 1024 * 1024
#: A version and the header of a list take this many bytes at most, and no more stands before the
#: schema in a usual footer.
_LONGEST_HEAD: Final = 16


@dataclass(frozen=True, slots=True)
class FooterSchema:
    """The schema of a footer: its bytes, its elements as a list, and the leaves of their tree."""

    encoded: bytes
    elements: list[SchemaElement]
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class FooterOutline:
    """The first ``length`` bytes of ``plain`` are a FileMetaData.

    Use :attr:`schema`, not ``metadata.schema``, which has offsets.
    """

    plain: bytes
    length: int
    metadata: FileMetaData
    chunk_offsets: tuple[Sequence[int], ...]

    @property
    def row_groups(self) -> Sequence[RowGroup]:
        """The row groups; their chunks are decoded when they are looked at."""
        return self.metadata.row_groups

    @cached_property
    def schema_extent(self) -> tuple[int, int]:
        """The bytes at which the elements of the schema stand, one after the other."""
        # An outline leaves each element as its offset.
        offsets: Sequence[int] = self.metadata.schema  # type: ignore[assignment]  # see above
        if not offsets:
            return 0, 0
        # Elements of a list lie one behind the other, so the last one's end is the end of all.
        return offsets[0], find_fields(self.plain, offsets[-1]).stop + 1

    @property
    def starts_with_schema(self) -> bool:
        """Whether nothing but the version stands before the schema: so most writers begin."""
        return 0 < self.schema_extent[0] <= _LONGEST_HEAD

    @cached_property
    def schema(self) -> FooterSchema:
        """The schema; FormatError for one that is not a whole tree."""
        start, end = self.schema_extent
        return _schemas.decoded(self.plain[start:end])

    def check_chunks(self) -> None:
        """Raise FormatError if a row group has not one chunk for each column."""
        wanted = len(self.schema.leaves)
        for index, offsets in enumerate(self.chunk_offsets):
            if len(offsets) != wanted:
                raise FormatError(
                    f"{len(offsets)} column chunks, the schema has {wanted} columns",
                    row_group=index,
                )


def outline(plain: bytes) -> FooterOutline:
    """The outline of the FileMetaData at the start of ``plain``; FormatError if there is none."""
    metadata, length = measured_outline(FileMetaData, plain, SchemaElement, ColumnChunk)
    groups = metadata.row_groups
    offsets: list[Sequence[int]] = [group.columns for group in groups]  # type: ignore[misc]
    source = RecordSource(ColumnChunk, plain)
    for group, own in zip(groups, offsets, strict=True):
        group.columns = LaterRecords(source, own)  # type: ignore[assignment]  # not to be changed
    return FooterOutline(
        plain=plain, length=length, metadata=metadata, chunk_offsets=tuple(offsets)
    )


class _Schemas:
    """The schemas seen last, by their bytes; safe for threads."""

    def __init__(self) -> None:
        self._known: dict[bytes, FooterSchema] = {}
        self._bytes = 0
        self._turn = threading.Lock()

    def decoded(self, encoded: bytes) -> FooterSchema:
        """The schema whose elements are ``encoded``."""
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
    elements, position, view = [], 0, memoryview(encoded)
    # Elements carry no length: each one's end, found by decoding it, is where the next one starts.
    while position < len(encoded):
        # Elements become trees: a schema may be written again under other names, and must not lose
        # a field.
        tree, length = trees.decode(view[position:])
        elements.append(SchemaElement(tree))
        position += length
    return FooterSchema(encoded, elements, leaves(elements))


_schemas = _Schemas()
