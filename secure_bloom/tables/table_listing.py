"""List the files that paths mean. For a table with a log, list only the live files.

A path may be the table's folder, a folder or a file in it, or a pattern. Files that the log does
not name are not read.  Tables whose log is not honoured are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError, located
from secure_bloom.storage import (
    InputFile,
    TableLog,
    below,
    find_files,
    is_object_uri,
    join,
    local_path,
    name_of,
    open_input,
)
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.listing import expand
from secure_bloom.storage.managed_tables import refuse_above, refuse_folder
from secure_bloom.tables.iceberg_catalog import METADATA_SUFFIX, is_in_catalog
from secure_bloom.tables.live_file import TableVersion

# Readers of logs are loaded when a table with a log is found: most files are of none.
if TYPE_CHECKING:
    from secure_bloom.storage.column_mapping import ColumnMapping
    from secure_bloom.storage.folder_trees import Tree
    from secure_bloom.tables.iceberg_table import IcebergTable
    from secure_bloom.tables.live_file import LiveFile, Snapshot

#: The logs that verbs which only read can honour.
_READERS = frozenset({TableLog.DELTA, TableLog.STREAMING})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableListing:
    """Files in the order of their paths, with the state of their Delta table if they are in one.

    ``folders`` are tables with a log, and paths inside one. ``iceberg`` are the tables whose
    metadata files were given.
    """

    paths: tuple[str, ...]
    folders: tuple[str, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    iceberg: tuple[IcebergTable, ...] = ()
    live: Mapping[str, LiveFile] = field(default_factory=dict)
    names: Mapping[str, ColumnMapping] = field(default_factory=dict)

    def column_names(self) -> set[str]:
        """Return the columns that Iceberg tables have, which their files may lack."""
        return {name for table in self.iceberg for name in table.column_names()}

    def open(self, path: str) -> InputFile:
        """Open one of the files. Its columns have the names of the table."""
        file = open_input(path)
        file.column_names = self.names.get(path)
        return file


def list_tables(
    paths: Collection[str],
    at: TableVersion | None = None,
    *,
    refused: list[PolicyError] | None = None,
) -> TableListing:
    """Return the files that ``paths`` mean, with what a table's log says about each.

    ``at`` asks for a version of the Delta tables among them. Raises PolicyError if there is none.
    """
    found = _Listed(at or TableVersion())
    folders = []
    for path in paths:
        if is_in_catalog(path) or _is_metadata(path):
            found.take_iceberg(path)
        else:
            folders.append(path)
    above = refuse_above(folders, _READERS)
    plain: list[str] = []
    for path in folders:
        # Without such folders there is nothing to look for: in a store each look is a request.
        inside = {match: _table_above(match, above) for match in _matches(path)} if above else {}
        if not any(inside.values()):
            plain.append(path)
            continue
        found.take_inside(path, inside, above)
    try:
        if plain:
            found.take(find_files(plain, refused=refused, check=found.check))
    except PolicyError as error:
        # A folder without files is an error, a table without files an answer.
        if len(plain) > 1 or not found.is_empty_table(error.path):
            raise
    return found.listing()


def _is_metadata(path: str) -> bool:
    """Return whether the path is the metadata file of an Iceberg table, by its name."""
    return name_of(local_path(path)).endswith(METADATA_SUFFIX)


def _matches(path: str) -> list[str]:
    """Return the files that a path means.

    Return None if nothing is there, which is reported together with other such paths.
    """
    try:
        return expand([path])
    except PolicyError:
        return []


def _table_above(path: str, above: Mapping[str, TableLog]) -> str | None:
    """Return the innermost folder above a path that has a log, or None."""
    folders = [folder for folder in tree_of(path).parents(path) if folder in above]
    # All of them lie above one path, so the longest is the innermost.
    return max(folders, key=len, default=None)


class _Listed:
    """The files found so far, each once however many paths lead to it."""

    def __init__(self, at: TableVersion) -> None:
        self._at = at
        self._paths: dict[Hashable, str] = {}
        self._folders: list[str] = []
        self._snapshots: dict[Hashable, Snapshot] = {}
        self._iceberg: list[IcebergTable] = []
        self._live: dict[str, LiveFile] = {}
        self._names: dict[str, ColumnMapping] = {}

    def listing(self) -> TableListing:
        """Return the listing of everything found."""
        if not self._at.is_latest and not self._snapshots and not self._iceberg:
            raise PolicyError(
                "a version was asked for, and only Delta and Iceberg tables have versions that can "
                "be read"
            )
        return TableListing(
            paths=tuple(sorted(self._paths.values())),
            folders=tuple(self._folders),
            snapshots=tuple(self._snapshots.values()),
            iceberg=tuple(self._iceberg),
            live=self._live,
            names=self._names,
        )

    def is_empty_table(self, path: str | None) -> bool:
        """Return whether the path is a table whose log names no file.

        The table then has a schema but no rows.
        """
        state = None if path is None else self._snapshots.get(tree_of(path).key(path))
        return state is not None and not state.files

    def take(self, paths: Collection[str]) -> None:
        """Add files that exist."""
        trees: dict[bool, Tree] = {}
        for path in paths:
            # One tree for all files: it keeps where the links among their folders lead.
            tree = trees.setdefault(is_object_uri(path), tree_of(path))
            self._paths.setdefault(tree.key(path), path)

    def check(self, tree: Tree, folder: str, folders: Collection[str]) -> Sequence[str] | None:
        """Return the live files of a folder that is a table, or None for another folder."""
        log = refuse_folder(tree, folder, folders, honoured=_READERS)
        return None if log is None else self._files_of(log, folder, folder)

    def take_iceberg(self, path: str) -> None:
        """Add the data files of the table with this metadata file."""
        from secure_bloom.tables.iceberg_table import iceberg_table

        table = iceberg_table(path, self._at)
        self._iceberg.append(table)
        self._names |= dict.fromkeys(table.files, table.names)
        self.take(table.files)

    def take_inside(
        self, path: str, inside: Mapping[str, str | None], logs: Mapping[str, TableLog]
    ) -> None:
        """Add the files for a path inside tables: its matches, each with its table."""
        files = []
        for match, table in inside.items():
            if table is None:
                files += find_files([match], check=self.check)
            else:
                files += self._files_of(logs[table], table, match)
        if not files:
            raise PolicyError(
                "no file of the table's version lies there",
                hint="the table's log says which of its files live; others are not looked at",
                path=path,
            )
        self.take(files)

    def _files_of(self, log: TableLog, table: str, path: str) -> list[str]:
        """Return the live files of a table that are ``path``, or below it.

        ``path`` is inside the table.
        """
        tree = tree_of(path)
        self._folders.append(path)
        if log is TableLog.STREAMING:
            from secure_bloom.tables.streaming_sink import committed_files

            self._refuse_version(table)
            files_of_sink = committed_files(table)
            _refuse_moved(tree, table, files_of_sink)
            return [shown for _, shown in _within(tree, table, path, files_of_sink)]
        from secure_bloom.tables.delta_names import column_names

        state = self._snapshot(tree, table)
        with located(path=table):
            names = column_names(state.metadata)
        files = {file.path: file for file in state.files}
        found = []
        for stored, shown in _within(tree, table, path, files):
            found.append(shown)
            self._live[shown] = files[stored]
            if names is not None:
                self._names[shown] = names
        return found

    def _refuse_version(self, table: str) -> None:
        if not self._at.is_latest:
            raise PolicyError(
                "only Delta and Iceberg tables have versions that can be read", path=table
            )

    def _snapshot(self, tree: Tree, table: str) -> Snapshot:
        key = tree.key(table)
        if key not in self._snapshots:
            from secure_bloom.tables.delta_snapshot import snapshot

            if self._at.snapshot is not None:
                raise PolicyError(
                    "a Delta table has versions, not snapshots",
                    hint="--version N names one",
                    path=table,
                )
            found = snapshot(table, version=self._at.version, timestamp=self._at.timestamp)
            if found is None:
                raise FormatError("the table's log is gone", path=table)
            self._snapshots[key] = found
        return self._snapshots[key]


def _refuse_moved(tree: Tree, table: str, files: Iterable[str]) -> None:
    """Raise UnsupportedFeatureError if a sink's log names files that are not in its folder."""
    top = tree.key(table)
    if any(_below(tree.key(file), top) is None for file in files):
        raise UnsupportedFeatureError(
            "the log of the streaming query names files elsewhere",
            hint="it has whole paths: read the table where the query has written it",
            path=table,
        )


def _within(tree: Tree, table: str, path: str, files: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the files of a table in ``path``, each also in the spelling of the given path."""
    top = tree.key(path)
    for file in files:
        inside = _below(tree.key(file), top)
        if inside is not None:
            yield file, join(path, inside) if inside else path
        elif path == table:
            # A table may name files elsewhere, as clones do.
            yield file, file


def _below(file: Hashable, top: Hashable) -> str | None:
    """Return the path of a file below another, by their keys, or "" for the file itself."""
    if file == top:
        return ""
    if isinstance(file, str) and isinstance(top, str):
        return below(file, top)
    if isinstance(file, tuple) and isinstance(top, tuple) and file[0] == top[0]:
        return below(f"/{file[1]}", f"/{top[1]}")
    return None
