"""Refuse tables whose own log records which files are live, unless the caller honours the log.

Their readers trust the recorded size to find the footer, so a file that is replaced under its name
is broken for them.  And all files of a folder together hold rows that the log has removed, or has
not committed.
"""

from __future__ import annotations

import enum
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.folder_trees import Tree
from secure_bloom.storage.listing import DATA_SUFFIXES, expand, find_files
from secure_bloom.storage.paths import files_at_once

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class TableLog(enum.StrEnum):
    """The kinds of tables that keep a log of their files, as errors name them."""

    DELTA = "a Delta table"
    HUDI = "a Hudi table"
    ICEBERG = "an Iceberg table"
    PAIMON = "a Paimon table"
    STREAMING = "a table of Spark Structured Streaming"


#: The logs of Iceberg and Paimon have common names, so they count for what is in them.
_MARKS = {
    # Anywhere in the name: a compressed one ends in .metadata.json.gz.
    "metadata": re.compile(r".*\.metadata\.json.*", re.DOTALL),
    "schema": re.compile(r"schema-[0-9]+"),
}
#: The folder of each log.
_FOLDERS = {
    "_delta_log": TableLog.DELTA,
    ".hoodie": TableLog.HUDI,
    "_spark_metadata": TableLog.STREAMING,
    "metadata": TableLog.ICEBERG,
    "schema": TableLog.PAIMON,
}
_HINT = "read the table with its own engine, or write its rows to plain Parquet files"
_HINTS = {
    TableLog.DELTA: "give add, reencrypt or rotate the table's folder alone, with --where for some "
    "of its partitions: they commit to its log; else read the table with its own engine",
    TableLog.ICEBERG: "the catalog knows which file counts: give add and the verbs that read "
    "iceberg://CATALOG/NAMESPACE.TABLE; those that read take the metadata file too, "
    "metadata/*.metadata.json",
    TableLog.PAIMON: "secure-bloom paimon build TABLE gives the table's folder indexes that its "
    "readers ask; give the verbs that read the table's folder, or read it with its own engine",
}


def find_unmanaged(
    paths: Paths,
    *,
    suffixes: tuple[str, ...] = DATA_SUFFIXES,
    honoured: Collection[TableLog] = (),
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

    return find_files(every, suffixes=suffixes, check=check)


def refuse_managed(paths: Paths, *, honoured: Collection[TableLog] = ()) -> None:
    """Raise :class:`UnsupportedFeatureError` if a path is, contains or is inside a managed table.

    Looks at the folders above each path up to the root, and at all folders below it.  A table whose
    log is stored elsewhere (Iceberg with ``write.metadata.path``) cannot be recognized.
    """
    every = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    refuse_above(every, honoured)
    for path in expand(every):
        tree = tree_of(path)
        if tree.is_folder(path):
            for folder, folders, _ in tree.walk(path):
                refuse_folder(tree, folder, folders, honoured=honoured)


def refuse_above(paths: Paths, honoured: Collection[TableLog] = ()) -> dict[str, TableLog]:
    """Refuse paths inside a managed table, by looking at the folders above them.

    Looks at each folder once, and at the folders of a store in parallel.  Returns the folders with
    an ``honoured`` log.
    """
    above: dict[str, Tree] = {}
    for path in _there(paths):
        tree = tree_of(path)
        above |= dict.fromkeys((p for p in tree.parents(path) if p not in above), tree)
    looks = [(tree, folder, name) for folder, tree in above.items() for name in _FOLDERS]
    names: dict[str, dict[str, bool | None]] = defaultdict(dict)
    for (_, folder, name), is_folder in zip(looks, _seen(looks), strict=True):
        names[folder][name] = is_folder
    logs = {
        folder: _refuse(tree, folder, names[folder], honoured) for folder, tree in above.items()
    }
    return {folder: log for folder, log in logs.items() if log is not None}


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
    workers = files_at_once(folder for _, folder, _ in looks)
    return in_order(lambda look: _find_log(*look), looks, workers, room=len(looks))


def _find_log(tree: Tree, folder: str, name: str) -> bool | None:
    # Access to a bucket is often granted below one prefix only: no reason to give up.
    return tree.find_folder(tree.join(folder, name))


def refuse_folder(
    tree: Tree, folder: str, folders: Collection[str], *, honoured: Collection[TableLog] = ()
) -> TableLog | None:
    """Refuse a folder that has a log among its subfolders. Return the log if it is honoured.

    A table may have logs of several formats.  Each of them lists its files, so one is enough.
    """
    names = {
        name: name in folders or tree.find_unlisted(tree.join(folder, name)) for name in _FOLDERS
    }
    return _refuse(tree, folder, names, honoured)


def _refuse(
    tree: Tree, folder: str, names: Mapping[str, bool | None], honoured: Collection[TableLog]
) -> TableLog | None:
    """Do what :func:`refuse_folder` does, with what was found under the name of each log."""
    _refuse_lost_log(folder, names)
    present = {
        log: name for name, log in _FOLDERS.items() if names[name] and _is_log(tree, folder, name)
    }
    for log, name in present.items():
        if present.keys().isdisjoint(honoured):
            raise UnsupportedFeatureError(
                f"{log}: its own log ({name}) records which files are part of it, and their "
                "sizes; a file that is replaced under it breaks the table, and its files without "
                "the log hold rows that were removed or never committed",
                hint=_HINTS.get(log, _HINT),
                path=folder,
            )
    return next((log for log in present if log in honoured), None)


def _refuse_lost_log(folder: str, names: Mapping[str, bool | None]) -> None:
    """Refuse a folder in which a log should be, but cannot be read."""
    # A link to a disk that is not mounted: without its log, the table would pass for plain files.
    for name, is_folder in names.items():
        if is_folder is False and name not in _MARKS:
            raise UnsupportedFeatureError(
                f"{_FOLDERS[name]} whose log cannot be read: {name} is a file, or a link that "
                "leads nowhere",
                hint=f"mend {name}, or remove it if this is no such table",
                path=folder,
            )


def _is_log(tree: Tree, folder: str, name: str) -> bool:
    if name not in _MARKS:
        return True
    return any(_MARKS[name].fullmatch(inside) for inside in tree.names(tree.join(folder, name)))
