"""The names that tables had for the columns of their files, in all schemas that their metadata has.

A file of a mapped Delta table, or of an Iceberg or Paimon table, keeps a column that the table has
dropped or renamed. Under the current names it is no column, or one that the policy does not know.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress

from secure_bloom.errors import SecureBloomError
from secure_bloom.lakes import TableListing
from secure_bloom.lakes.table_format import ListedTable
from secure_bloom.storage import below
from secure_bloom.storage.column_mapping import ColumnMapping


class OlderNames:
    """The mappings of all schemas of the tables of an audit. Each table is looked at once."""

    def __init__(self, tables: TableListing) -> None:
        self._tables = tables.tables
        self._found: dict[int, Sequence[ColumnMapping]] = {}
        self._lock = threading.Lock()

    def of(self, path: str) -> Sequence[ColumnMapping]:
        """Return a column mapping for each schema of a file's table, or nothing without one."""
        table = next((it for it in self._tables if _has_file(it, path)), None)
        return () if table is None else self.of_table(table)

    def of_table(self, table: ListedTable) -> Sequence[ColumnMapping]:
        """Return a column mapping for each schema that a table had."""
        with self._lock:
            if id(table) not in self._found:
                self._found[id(table)] = _mappings(table)
            return self._found[id(table)]


def _has_file(table: ListedTable, path: str) -> bool:
    places = (table.place, *table.locations)
    return path in table.files or any(below(path, place) for place in places)


def _mappings(table: ListedTable) -> list[ColumnMapping]:
    # What cannot be read is a finding of the check of the table's log.
    with suppress(SecureBloomError):
        found = table.format.older_names(table.state)
        return [it for number, it in enumerate(found) if it not in found[:number]]
    return []
