"""List the files that paths mean. For a table with a log, list only the live files.

A path may be the table's folder, a folder or a file in it, or a pattern. Files that the log does
not name are not read.  Tables whose log is not honoured are refused, unless they are also given by
the address of a catalog: then the catalog says which files live.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from secure_bloom.encryption.table_patterns import is_catalog_address
from secure_bloom.errors import PolicyError, SecureBloomError, UnsupportedFeatureError
from secure_bloom.lakes.formats import listed_by_log, named_format
from secure_bloom.lakes.managed_tables import behind_links, refuse_above, refuse_folder
from secure_bloom.lakes.table_format import ListedTable, TableFormat, TableVersion, below_key
from secure_bloom.storage import (
    InputFile,
    below,
    is_object_uri,
    join,
    open_input,
    open_pinned,
)
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.listing import expand, find_by_key

if TYPE_CHECKING:
    from secure_bloom.lakes.paimon.table import PaimonFile
    from secure_bloom.lakes.table_format import ListedFile
    from secure_bloom.storage.column_mapping import ColumnMapping
    from secure_bloom.storage.folder_trees import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class TableListing:
    """Files in the order of their paths, and the tables that they belong to.

    ``tables`` are the tables whose log has a schema, and ``files`` has what the log says about each
    of their files. ``folders`` are the folders in which a log was found, and the given paths inside
    them. ``logs`` are all tables with a log, including those without a schema.
    """

    paths: tuple[str, ...]
    folders: tuple[str, ...] = ()
    tables: tuple[ListedTable, ...] = ()
    logs: tuple[ListedTable, ...] = ()
    files: Mapping[str, ListedFile] = field(default_factory=dict)
    names: Mapping[str, ColumnMapping] = field(default_factory=dict)
    #: Sizes of objects that were listed.
    sizes: Mapping[str, int] = field(default_factory=dict)

    def column_names(self) -> set[str]:
        """Return the columns that tables have and their files may lack."""
        return set().union(*(table.schema() for table in self.tables))

    def places(self) -> dict[str, str]:
        """Return the folders and files of tables that were named by an address, with the address.

        A live file that lies in no folder of its table is named itself.
        """
        found: dict[str, str] = {}
        for table in self.logs:
            if table.named is not None and is_catalog_address(table.named):
                folders = {it.rstrip("/") for it in (table.place, *table.locations)}
                outside = (it for it in table.files if not any(below(it, top) for top in folders))
                found |= dict.fromkeys((*folders, *outside), table.named)
        return found

    def paimon_file(self, path: str) -> PaimonFile | None:
        """Return what a Paimon table says of a file, or None if the file is in no Paimon table."""
        from secure_bloom.lakes.paimon.table import PaimonFile

        found = self.files.get(path)
        return found if isinstance(found, PaimonFile) else None

    def open(self, path: str, *, pinned: bool = True) -> InputFile:
        """Open one of the files. Its columns have the names of the table.

        With ``pinned``, an object is read by requests that fail if it has changed, and the first
        request reads its end. Without it, the first request only asks for the object's identity.
        """
        file = open_pinned(path, self.sizes.get(path)) if pinned else open_input(path)
        file.column_names = self.names.get(path)
        return file


def list_tables(
    paths: Collection[str],
    at: TableVersion | None = None,
    *,
    refused: list[SecureBloomError] | None = None,
) -> TableListing:
    """Return the files that ``paths`` mean, with what a table's log says about each.

    ``at`` asks for a version of the Delta tables among them. Raises PolicyError if there is none.
    ``refused`` takes the errors of folders below the paths that cannot be listed, such as tables of
    other formats. Without it the first one is raised.
    """
    found = _Listed(at or TableVersion(), paths, refused)
    folders = []
    for path in paths:
        named = named_format(path)
        if named is None:
            folders.append(path)
        else:
            found.take_named(path, named)
    folders = [path for path in folders if not found.has_inside(path)]
    above = refuse_above(folders, listed_by_log())
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
            found.take_linked(find_by_key(plain, refused=refused, check=found.check), plain)
        listing = found.listing()
        if refused and not listing.paths:
            raise refused[0]
    except PolicyError as error:
        # A folder without files is an error, a table without files an answer.
        if len(plain) > 1 or not found.is_empty_table(error.path):
            raise
        listing = found.listing()
    return listing


def _matches(path: str) -> list[str]:
    """Return the files that a path means, or [] if there is none.

    The caller reports all paths without files together.
    """
    try:
        return expand([path])
    except PolicyError:
        return []


def _table_above(path: str, above: Mapping[str, TableFormat]) -> str | None:
    """Return the innermost folder above a path that has a log, or None."""
    folders = [folder for folder in tree_of(path).parents(path) if folder in above]
    # All of them lie above one path, so the longest is the innermost.
    return max(folders, key=len, default=None)


class _Listed:
    """The files found so far, each once however many paths lead to it."""

    def __init__(
        self,
        at: TableVersion,
        given: Collection[str],
        refused: list[SecureBloomError] | None,
    ) -> None:
        self._at = at
        self._given = {path.rstrip("/") for path in given}
        self._refused = refused
        self._paths: dict[Hashable, str] = {}
        self._folders: list[str] = []
        self._tables: dict[Hashable, ListedTable] = {}
        #: The tables of a catalog by the keys of their folders.
        self._cataloged: dict[Hashable, ListedTable] = {}
        self._files: dict[str, ListedFile] = {}
        self._names: dict[str, ColumnMapping] = {}
        #: The trees whose folders were listed.
        self._trees: dict[int, Tree] = {}

    def listing(self) -> TableListing:
        """Return the listing of everything found."""
        if not self._at.is_latest and not self._tables:
            raise PolicyError(
                "a version was asked for, and only Delta, Iceberg and Paimon tables have versions "
                "that can be read",
                hint="leave it out, or give the folder of the table that has versions",
            )
        return TableListing(
            paths=tuple(sorted(self._paths.values())),
            folders=tuple(self._folders),
            tables=tuple(it for it in self._tables.values() if it.state is not None),
            logs=tuple(self._tables.values()),
            files=self._files,
            names=self._names,
            sizes=dict(self._sizes()),
        )

    def _sizes(self) -> Iterator[tuple[str, int]]:
        """Yield each object whose size a log or a listing has shown, with its size."""
        for path in filter(is_object_uri, self._paths.values()):
            sizes = [getattr(self._files.get(path), "size", None)]
            sizes += [tree.listed_size(path) for tree in self._trees.values()]
            if size := next(filter(None, sizes), None):
                yield path, size

    def is_empty_table(self, path: str | None) -> bool:
        """Return whether the path is a table whose log names no file.

        The table then has a schema but no rows.
        """
        key = None if path is None else tree_of(path).key(path)
        table = self._tables.get(key) or self._cataloged.get(key)
        return table is not None and table.state is not None and not table.files

    def take(self, paths: Collection[str]) -> None:
        """Add files that exist."""
        trees: dict[bool, Tree] = {}
        for path in paths:
            # One tree for all files: it keeps where the links among their folders lead.
            tree = trees.setdefault(is_object_uri(path), tree_of(path))
            self._paths.setdefault(tree.key(path), path)

    def check(self, tree: Tree, folder: str, folders: Collection[str]) -> Sequence[str] | None:
        """Return the live files of a folder that is a table, or None for another folder."""
        self._trees[id(tree)] = tree
        try:
            log = refuse_folder(tree, folder, folders, honoured=listed_by_log())
        except UnsupportedFeatureError as error:
            table = self._cataloged.get(tree.key(folder))
            if table is not None:
                return list(table.files)
            if self._refused is None or folder.rstrip("/") in self._given:
                raise
            self._refused.append(error)
            return ()
        return None if log is None else self._files_of(log, folder, [folder])

    def take_named(self, path: str, named: TableFormat) -> None:
        """Add the files of a table that the caller named by a path or in a catalog."""
        table = replace(named.list_table(path, self._at), named=path)
        self._tables[path] = table
        if is_catalog_address(path):
            for place in (it.rstrip("/") for it in table.locations):
                self._cataloged[tree_of(place).key(place)] = table
        self._files |= table.files
        self._names |= {it: names for it in table.files if (names := table.names_of(it))}
        self.take(table.files)

    def has_inside(self, path: str) -> bool:
        """Return whether a path lies in the folder of a table of a catalog, which was taken.

        Raises PolicyError if none of the table's live files is there.
        """
        tree = tree_of(path)
        above = (tree.key(it) for it in tree.parents(path)) if self._cataloged else ()
        table = next((self._cataloged[key] for key in above if key in self._cataloged), None)
        if table is None or tree.key(path) in self._cataloged:
            return False
        if not any(_within(tree, table.place, expand([path]), table.files)):
            raise _without_live_file(path)
        return True

    def take_inside(
        self, path: str, inside: Mapping[str, str | None], logs: Mapping[str, TableFormat]
    ) -> None:
        """Add the files for a path inside tables: its matches, each with its table."""
        plain = [match for match, table in inside.items() if table is None]
        self.take_linked(find_by_key(plain, check=self.check), plain)
        matches: dict[str, list[str]] = defaultdict(list)
        for match, table in inside.items():
            if table is not None:
                matches[table].append(match)
        files = [
            it for table in matches for it in self._files_of(logs[table], table, matches[table])
        ]
        if not files and not plain:
            raise _without_live_file(path)
        self.take(files)

    def take_linked(self, files: dict[Hashable, str], paths: Collection[str]) -> None:
        """Add the files that were found below the paths.

        Of files of tables to which links lead, only live ones are added.
        """
        # What a log names is listed by it, wherever it is.
        found = [it for it in files.items() if it[1] not in self._files]
        linked: dict[tuple[TableFormat, str], list[str]] = defaultdict(list)
        dropped: set[str] = set()
        for folder, inside in behind_links(found, paths).items():
            try:
                above = refuse_above([inside[0]], listed_by_log())
            except UnsupportedFeatureError as error:
                dropped.update(inside)
                place = error.path or ""
                if tree_of(place).key(place) in self._cataloged:
                    continue
                if self._refused is None:
                    raise
                self._refused.append(error)
                continue
            table = _table_above(inside[0], above)
            if table is not None:
                self._folders.append(folder)
                linked[above[table], table] += inside
        for (log, table), inside in linked.items():
            dropped.update(set(inside).difference(self._files_of(log, table, inside)))
        for key, path in files.items():
            if path not in dropped:
                self._paths.setdefault(key, path)

    def _files_of(self, log: TableFormat, table: str, paths: Collection[str]) -> list[str]:
        """Return the live files of a table that are one of ``paths``, or below one.

        The paths are inside the table.
        """
        tree = tree_of(table)
        self._folders.extend(paths)
        listed = self._table(log, tree, table)
        found = []
        for stored, shown in _within(tree, table, paths, listed.files):
            found.append(shown)
            self._files[shown] = listed.files[stored]
            if names := listed.names_of(stored):
                self._names[shown] = names
        return found

    def _table(self, log: TableFormat, tree: Tree, table: str) -> ListedTable:
        key = tree.key(table)
        if key not in self._tables:
            self._tables[key] = log.list_table(table, self._at)
        return self._tables[key]


def _without_live_file(path: str) -> PolicyError:
    return PolicyError(
        "no file of the table's version lies there",
        hint="the table's log says which of its files live; others are not looked at",
        path=path,
    )


def _within(
    tree: Tree, table: str, paths: Iterable[str], files: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield each file of a table that is in one of ``paths``, with its path below that path."""
    # A key takes a call of the system, so each file's is looked up once for all paths.
    by_key = {tree.key(file): file for file in files}
    for path in paths:
        top = tree.key(path)
        if top in by_key:
            yield by_key[top], path
            continue
        for key, file in by_key.items():
            inside = below_key(key, top)
            if inside is not None:
                yield file, join(path, inside)
            elif path == table:
                # A table may name files elsewhere, as clones do.
                yield file, file
