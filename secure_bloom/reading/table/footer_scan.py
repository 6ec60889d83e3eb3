"""Scan the footers of one table: the columns of each file, and its row groups as numbers."""

from __future__ import annotations

from dataclasses import dataclass

from secure_bloom.column_names import NamesOfTable
from secure_bloom.parquet.footer.scan import outline
from secure_bloom.parquet.structures.metadata import FileMetaData
from secure_bloom.reading.table.row_groups import FooterRowGroups
from secure_bloom.reading.table.table_schema import FileColumns, SchemaCache


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

    def of(self, plain: bytes) -> FooterScan:
        """Return the scan of the FileMetaData at the start of ``plain``.

        Raises FormatError if there is none, or if a row group has not one chunk for each column.
        """
        found = outline(plain)
        columns = self._schemas.columns(found)
        found.check_chunks()
        return FooterScan(
            metadata=found.metadata,
            columns=columns,
            row_groups=FooterRowGroups(found, len(columns.leaves)),
            length=found.length,
        )
