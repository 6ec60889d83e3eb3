"""Find the rules for a file that readers skip: it may be a copy of any table.

In the folder of a table of the policy its rules count.  Elsewhere those of all tables count, but
for the columns that live files have in the same folder, or in one above it: these are judged as
live columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from secure_bloom.auditing.checks.folders import folder_of
from secure_bloom.auditing.table_places import above_partitions
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.parquet.schema import partition_names


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
        """Return the rules for files in a folder that is not that of a table with a log."""
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
