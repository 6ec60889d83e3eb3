"""Scan a footer once: the fields that a reader uses, and the offset of each column chunk.

Compiled code does it if it is loaded and the schema was seen before; else the Thrift library.  If
the compiled code finds a footer unusual, the library reads it, and the library's errors say what is
wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secure_bloom.column_names import NamesOfTable
from secure_bloom.errors import FormatError
from secure_bloom.kernels.loading import compiled_code
from secure_bloom.parquet.footer_outline import outline
from secure_bloom.parquet.structures import trees
from secure_bloom.parquet.structures.metadata import FileMetaData, RowGroup
from secure_bloom.parquet.structures.records import decode_record
from secure_bloom.reading.table.row_groups import FooterRowGroups
from secure_bloom.reading.table.table_schema import FileColumns, SchemaCache

#: Seconds that the Thrift library takes longer than compiled code for a footer.
_SAVED = 50e-6


_ROW_GROUPS = FileMetaData.row_groups.id


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterScan:
    """A FileMetaData of ``length`` bytes; ``metadata`` may lack schema and row groups."""

    metadata: FileMetaData
    columns: FileColumns
    row_groups: FooterRowGroups
    length: int


class FooterScanner:
    """Scans the footers of one table, of files that mostly share one schema; safe for threads.

    ``names`` are what the table calls the columns, where its files call them something else.
    """

    def __init__(self, names: NamesOfTable | None = None) -> None:
        self._schemas = SchemaCache(names)
        self._last: tuple[tuple[bytes, bytes], FileMetaData, FileColumns] | None = None

    def of(self, plain: bytes) -> FooterScan:
        """The scan of the FileMetaData at the start of ``plain``.

        Raises FormatError if there is none, or if a row group has not one chunk for each column.
        """
        known = self._schemas.known(plain)
        if known is not None and trees.HAS_C_CODE and compiled_code.is_worth(_SAVED):
            found = self._compiled(plain, *known)
            if found is not None:
                return found
        return self._by_library(plain)

    def _by_library(self, plain: bytes) -> FooterScan:
        found = outline(plain)
        columns = self._schemas.columns(found)
        found.check_chunks()
        groups = found.row_groups
        for index, group in enumerate(groups):
            _check_rows(index, group)
        offsets = np.array(found.chunk_offsets, np.int64).reshape(len(groups), len(columns.leaves))
        return FooterScan(
            metadata=found.metadata,
            columns=columns,
            row_groups=FooterRowGroups(plain, _numbers(groups), offsets),
            length=found.length,
        )

    def _compiled(self, plain: bytes, prefix: bytes, leaves: int) -> FooterScan | None:
        """The scan of a footer whose schema ends with ``prefix``; None for an unusual one."""
        from secure_bloom.kernels import footers as kernels

        data = np.frombuffer(plain, np.uint8)
        length, numbers, offsets, parts = kernels.outline(data, len(prefix), leaves)
        if length < 0 or parts[_ROW_GROUPS, 0] < 0:
            return None
        metadata, columns = self._beside(plain, prefix, parts[_ROW_GROUPS + 1 :].tolist())
        ids = [kernels.NUM_ROWS, kernels.TOTAL_BYTE_SIZE, kernels.ORDINAL]
        row_groups = FooterRowGroups(plain, numbers[:, ids], offsets)
        return FooterScan(metadata=metadata, columns=columns, row_groups=row_groups, length=length)

    def _beside(
        self, plain: bytes, prefix: bytes, parts: Sequence[tuple[int, int, int]]
    ) -> tuple[FileMetaData, FileColumns]:
        """The fields behind the row groups, by their wire types, starts and ends.

        Files of one table mostly have the same bytes there, so the last result is kept.
        """
        encoded = b"".join(
            # Each field gets a header in the long form, wire type and zigzag id: it stands alone.
            bytes([kind, 2 * field_id]) + plain[start:end]
            for field_id, (kind, start, end) in enumerate(parts, _ROW_GROUPS + 1)
            if kind >= 0
        )
        last = self._last
        if last is None or last[0] != (prefix, encoded):
            metadata = decode_record(FileMetaData, encoded + b"\0")
            columns = self._schemas.columns_behind(prefix, metadata.key_value_metadata or [])
            self._last = last = (prefix, encoded), metadata, columns
        return last[1], last[2]


def _numbers(groups: Sequence[RowGroup]) -> NDArray[np.int64]:
    numbers = [
        (group.num_rows, group.total_byte_size, -1 if group.ordinal is None else group.ordinal)
        for group in groups
    ]
    return np.array(numbers, np.int64).reshape(len(groups), 3)


def _check_rows(index: int, group: RowGroup) -> None:
    if group.num_rows < 0:
        raise FormatError(f"RowGroup.num_rows is {group.num_rows}", row_group=index)
