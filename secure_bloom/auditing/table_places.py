"""Find the table, the rules and the column names of each place of an audit.

A place is a file, a folder, a log or a manifest.

The name is that of the policy's table, else that of the table with a log, else the folder above the
partitions of plain data files.

A file that readers skip may be a copy of any table.  In the folder of a table of the policy the
rules of that table count.  Elsewhere those of all tables count, but for the columns that live files
have in the same folder, or in one above it: these are judged as live columns.

A file of a mapped Delta table, or of an Iceberg or Paimon table, keeps a column that the table has
dropped or renamed. Under the current names it is no column, or one that the policy does not know.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from secure_bloom.auditing.checks.folders import folder_of
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import SecureBloomError
from secure_bloom.lakes import TableListing
from secure_bloom.lakes.table_format import ListedTable
from secure_bloom.parquet.schema import partition_names
from secure_bloom.storage import below, name_of
from secure_bloom.storage.column_mapping import ColumnMapping


class NamedTables:
    """The tables of an audit by the places that belong to them.

    ``files`` are the audited data files, ``refused`` the folders of tables whose log is not read,
    and ``log_of`` returns the table with a log that a path belongs to.
    """

    def __init__(
        self,
        policy: KeyPolicy,
        files: Iterable[str],
        refused: Iterable[str],
        log_of: Callable[[str], ListedTable | None],
    ) -> None:
        self._policy = policy
        self._log_of = log_of
        self._plain = {above_partitions(folder) for folder in set(map(folder_of, files))}
        self._plain.update(refused)

    def name_of(self, path: str) -> str | None:
        """Return the name of the table of a place, or None if it belongs to no table."""
        own, log = self._policy.rules_at(path).table, self._log_of(path)
        if own is not None or log is None:
            return own or self._plain_above(path)
        named = log.named or log.place
        return self._policy.rules_at(named).table or named

    def _plain_above(self, path: str) -> str | None:
        """Return the innermost folder of plain data files that is a path, or is above it."""
        while path not in self._plain:
            above = folder_of(path)
            # Above the root of paths, and of an object store, is nothing.
            if len(above) >= len(path):
                return None
            path = above
        return path


def above_partitions(folder: str) -> str:
    """Return the folder above the partition folders of plain files."""
    while "=" in name_of(folder):
        folder = folder_of(folder)
    return folder


class CopyRules:
    """The rules for files that readers skip.

    ``live`` has the columns of live files, as far as they could be read.
    """

    def __init__(self, policy: KeyPolicy, live: Mapping[str, Iterable[str]]) -> None:
        self._policy = policy
        self._columns: dict[str, set[str]] = {}
        self._rules: dict[str, KeyPolicy] = {}
        folders: dict[tuple[str, int], Iterable[str]] = {}
        for path, columns in live.items() if policy.tables else ():
            # Files with the same columns share a tuple.
            folders[folder_of(path), id(columns)] = columns
        for (folder, _), columns in folders.items():
            known = self._columns.setdefault(above_partitions(folder), set())
            known |= {*columns, *partition_names(folder)}

    def at(self, folder: str) -> KeyPolicy:
        """Return the rules for files in a folder that does not belong to a table with a log."""
        if folder not in self._rules:
            self._rules[folder] = self._policy.for_copy(f"{folder}/_", self._live(folder))
        return self._rules[folder]

    def _live(self, folder: str) -> Iterable[str]:
        """Return the columns of the innermost folder of live files that is here or above."""
        climbed = []
        while folder not in self._columns:
            climbed.append(folder)
            above = folder_of(folder)
            # Above the root of paths, and of an object store, is nothing.
            if len(above) >= len(folder):
                self._columns[folder] = set()
            folder = above
        # Folders have those above them in common, and each is looked at once.
        self._columns.update(dict.fromkeys(climbed, self._columns[folder]))
        return self._columns[folder]


class OlderNames:
    """The mappings of all schemas of the tables of an audit. Each table is looked at once."""

    def __init__(self, tables: TableListing) -> None:
        self._tables = tables.tables
        self._found: dict[int, Sequence[ColumnMapping]] = {}
        self._lock = threading.Lock()

    def of(self, path: str) -> Sequence[ColumnMapping]:
        """Return a column mapping for each schema of a file's table, or nothing without one."""
        for table in self._tables:
            places = (table.place, *table.locations)
            if path in table.files or any(below(path, place) for place in places):
                return self.of_table(table)
        return ()

    def of_table(self, table: ListedTable) -> Sequence[ColumnMapping]:
        """Return a column mapping for each schema that a table had."""
        with self._lock:
            if id(table) not in self._found:
                self._found[id(table)] = []
                # What cannot be read is a finding of the check of the table's log.
                with suppress(SecureBloomError):
                    names = table.format.older_names(table.state)
                    distinct = [it for number, it in enumerate(names) if it not in names[:number]]
                    self._found[id(table)] = distinct
            return self._found[id(table)]
