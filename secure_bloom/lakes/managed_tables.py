"""Refuse tables whose own log records which files are live, unless the caller honours the log.

Readers of such tables use the recorded size to find the footer, so they cannot read a file that
was replaced under the same name. And the files of a folder together hold rows that the log has
removed or not committed.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.lakes import formats
from secure_bloom.lakes.table_format import TableFormat
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.folder_trees import Tree
from secure_bloom.storage.listing import (
    DATA_SUFFIXES,
    expand,
    file_keys,
    find_by_key,
    find_files,
    is_data_file,
    is_data_name,
)
from secure_bloom.storage.paths import below, files_at_once, is_object_uri

#: Tables that an error lists.
_MOST_TABLES = 10

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class ManagedTableError(UnsupportedFeatureError):
    """A folder is a table of a ``format`` whose log the caller does not honour.

    If the given paths contain the table, ``tables`` are all tables below them, and ``others`` the
    highest places that have data files and no table.
    """

    format: TableFormat | None = None
    tables: Mapping[str, TableFormat] = MappingProxyType({})
    others: Sequence[str] = ()


def find_unmanaged(
    paths: Paths,
    *,
    suffixes: tuple[str, ...] = DATA_SUFFIXES,
    honoured: Collection[TableFormat] = (),
) -> list[str]:
    """Find files as :func:`find_files` does, and refuse files that a table's log records.

    Raises UnsupportedFeatureError if a path is, contains or is inside a table with its own log,
    unless the table is among the ``honoured`` ones.
    """
    every = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    refuse_above(every, honoured)

    def check(tree: Tree, folder: str, folders: Collection[str]) -> None:
        # None for every folder: the files are those that lie there, also under an honoured log.
        refuse_folder(tree, folder, folders, honoured=honoured)

    found = find_by_key(every, suffixes=suffixes, check=check)
    refuse_linked(found.items(), every, honoured)
    return sorted(found.values())


def refuse_managed(paths: Paths, *, honoured: Collection[TableFormat] = ()) -> None:
    """Raise :class:`UnsupportedFeatureError` if a path is, contains or is inside a managed table.

    Looks at the folders above each path up to the root, and at all folders below it.  A table whose
    log is stored elsewhere (Iceberg with ``write.metadata.path``) cannot be recognized.
    """
    every = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    refuse_above(every, honoured)
    refused: list[UnsupportedFeatureError] = []
    given = expand(every)
    for path in given:
        tree = tree_of(path)
        if tree.is_folder(path):
            for folder, folders, _ in tree.walk(path):
                try:
                    refuse_folder(tree, folder, folders, honoured=honoured)
                except UnsupportedFeatureError as error:
                    refused.append(error)
                    folders.clear()
    if refused:
        raise _first_of(refused, given)


def _first_of(
    refused: Sequence[UnsupportedFeatureError], given: Sequence[str]
) -> UnsupportedFeatureError:
    """Return the first error, with a hint that names all tables, because each needs its own run."""
    first, tables = refused[0], [str(error.path) for error in refused]
    others = [it for path in given for it in _others(path, tables)]
    for what, places in (
        ("tables here", tables[not others and len(tables) == 1 :]),
        ("other files", others),
    ):
        if places:
            more = len(places) - _MOST_TABLES
            rest = f" and {more:,} more" if more > 0 else ""
            first.hint = f"{first.hint}; {what}: {', '.join(places[:_MOST_TABLES])}{rest}"
    if isinstance(first, ManagedTableError):
        managed = [it for it in refused if isinstance(it, ManagedTableError)]
        first.tables = {str(it.path): it.format for it in managed if it.format is not None}
        first.others = others
    return first


def _others(path: str, tables: Sequence[str]) -> Iterator[str]:
    """Yield the highest places at or below a path that have data files and none of ``tables``."""
    tree = tree_of(path)
    if not any(it == path or below(it, path) is not None for it in tables):
        with suppress(PolicyError):
            yield from [path] if find_files([path]) else ()
    elif path not in tables:
        folders, files = tree.level(path, sys.maxsize)
        for name in (*filter(is_data_name, folders), *filter(is_data_file, files or ())):
            yield from _others(tree.join(path, name), tables)


def refuse_above(paths: Paths, honoured: Collection[TableFormat] = ()) -> dict[str, TableFormat]:
    """Refuse paths inside a managed table, by looking at the folders above them.

    Looks at each folder once, and at the folders of a store in parallel.  Returns the folders with
    an ``honoured`` log.
    """
    above: dict[str, Tree] = {}
    trees: dict[bool, Tree] = {}
    for path in _there(paths):
        # One tree for all paths: it keeps where the links among their folders lead.
        tree = trees.setdefault(is_object_uri(path), tree_of(path))
        above |= dict.fromkeys((p for p in tree.parents(path) if p not in above), tree)
    return _refuse_folders(above, honoured)


def refuse_output(folder: str) -> None:
    """Refuse a folder for new files in a managed table: a new file could replace a live one."""
    tree = tree_of(folder)
    _refuse_folders(dict.fromkeys(tree.parents(tree.join(folder, "new")), tree))


def tables_above(path: str) -> dict[str, TableFormat]:
    """Return the folders above a path that have the log of a table, whether the path exists."""
    tree = tree_of(path)
    return _refuse_folders(dict.fromkeys(tree.parents(path), tree), formats.FORMATS)


def _refuse_folders(
    above: Mapping[str, Tree], honoured: Collection[TableFormat] = ()
) -> dict[str, TableFormat]:
    looks = [(tree, folder, name) for folder, tree in above.items() for name in _log_folders()]
    names: dict[str, dict[str, bool | None]] = defaultdict(dict)
    for (_, folder, name), is_folder in zip(looks, _seen(looks), strict=True):
        names[folder][name] = is_folder
    logs = {
        folder: _refuse(tree, folder, names[folder], honoured) for folder, tree in above.items()
    }
    return {folder: log for folder, log in logs.items() if log is not None}


def _log_folders() -> list[str]:
    return [it.log_folder for it in formats.FORMATS]


def refuse_linked(
    files: Iterable[tuple[Hashable, str]], paths: Paths, honoured: Collection[TableFormat] = ()
) -> None:
    """Refuse files of a managed table to which links below the paths lead.

    ``files`` are those of :func:`behind_links`.  The folders above and below each path itself are
    looked at by other functions of this module.
    """
    linked = behind_links(files, paths)
    if linked:
        # One file of each folder is enough.
        refuse_above([it[0] for it in linked.values()], honoured)


def behind_links(files: Iterable[tuple[Hashable, str]], paths: Paths) -> dict[str, list[str]]:
    """Return the files to which links below the paths lead, by the folder that holds each.

    ``files`` are those found below the paths, with their keys.  Only these folders are not looked
    at by other functions of this module, which look above and below each path itself.
    """
    given = [*_there(paths)]
    named = {path.rstrip("/") for path in given}
    below_them = [(key, it) for key, it in files if it not in named and isinstance(key, str)]
    if not below_them:
        return {}
    roots = dict(zip((path.rstrip("/") for path in given), file_keys(given), strict=True))
    found: dict[str, list[str]] = defaultdict(list)
    plain: dict[tuple[str, str], bool] = {}
    for key, file in below_them:
        place = file.rpartition("/")[0], key.rpartition("/")[0]
        if place not in plain:
            root = place[0]
            while root and root not in roots:
                root = root.rpartition("/")[0]
            plain[place] = f"{roots.get(root)}{place[0].removeprefix(root)}" == place[1]
        if not plain[place]:
            found[place[1]].append(file)
    return found


def _there(paths: Paths) -> Iterable[str]:
    """Return the files and folders that the paths name.

    A path that names nothing is reported by the caller that looks for files.
    """
    for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        try:
            yield from expand(path)
        except PolicyError:
            continue


def _seen(looks: Sequence[tuple[Tree, str, str]]) -> Iterable[bool | None]:
    """Return, for each (tree, folder, name), what :meth:`Tree.find_folder` finds."""
    workers = files_at_once({folder for _, folder, _ in looks})
    return in_order(lambda look: _find_log(*look), looks, workers, room=len(looks))


def _find_log(tree: Tree, folder: str, name: str) -> bool | None:
    # Access to a bucket is often granted below one prefix only: no reason to give up.
    return tree.find_folder(tree.join(folder, name))


def refuse_folder(
    tree: Tree, folder: str, folders: Collection[str], *, honoured: Collection[TableFormat] = ()
) -> TableFormat | None:
    """Refuse a folder that has a log among its subfolders. Return the log if it is honoured.

    A table may have logs of several formats.  Each of them lists its files, so one is enough.
    """
    names = {
        name: name in folders or tree.find_unlisted(tree.join(folder, name))
        for name in _log_folders()
    }
    return _refuse(tree, folder, names, honoured)


def _refuse(
    tree: Tree, folder: str, names: Mapping[str, bool | None], honoured: Collection[TableFormat]
) -> TableFormat | None:
    """Refuse a folder as :func:`refuse_folder` does. ``names`` says which logs the folder has."""
    _refuse_lost_log(folder, names)
    present = [it for it in formats.FORMATS if names[it.log_folder] and _is_log(tree, folder, it)]
    for found in present:
        if set(present).isdisjoint(honoured):
            error = ManagedTableError(
                f"{found}: its own log ({found.log_folder}) records which of its files count, and "
                "their sizes. By its folder alone, whoever reads meets rows that were removed or "
                "never committed, and whoever replaces a file breaks the table",
                hint=found.refusal,
                path=folder,
            )
            error.format = found
            raise error
    return next((it for it in present if it in honoured), None)


def _refuse_lost_log(folder: str, names: Mapping[str, bool | None]) -> None:
    """Refuse a folder in which a log should be, but cannot be read."""
    # A link to a disk that is not mounted: without its log, the table would pass for plain files.
    for each in formats.FORMATS:
        name = each.log_folder
        if names[name] is False and each.log_mark is None:
            raise UnsupportedFeatureError(
                f"{each} whose log cannot be read: {name} is a file, or a link that leads nowhere",
                hint=f"mend {name}, or remove it if this is no such table",
                path=folder,
            )


def _is_log(tree: Tree, folder: str, of: TableFormat) -> bool:
    mark = of.log_mark
    # A folder of a common name counts for what is in it.
    return mark is None or any(map(mark.fullmatch, tree.names(tree.join(folder, of.log_folder))))


def table_to_write(paths: Sequence[str]) -> tuple[TableFormat, str] | None:
    """Return the format and the place of the table that paths name, or None if they name files.

    The table takes new files by a commit.
    """
    # First the format that a path names: other formats cannot open it.
    for each in sorted(formats.FORMATS, key=lambda it: not any(map(it.recognizes, paths))):
        place = each.table_to_write(paths)
        if place is not None:
            if not each.recognizes(place):
                # A table inside another one: the outer log would not know of a commit.
                refuse_above([place])
            return each, place
    return None
