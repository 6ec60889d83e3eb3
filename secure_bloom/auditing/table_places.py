"""Name the table to which each place of an audit belongs: a file, a folder, a log, a manifest.

The name is that of the policy's table, else that of the table with a log, else the folder above the
partitions of plain data files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from secure_bloom.auditing.checks.folders import folder_of
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.lakes.table_format import ListedTable
from secure_bloom.storage import name_of


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
