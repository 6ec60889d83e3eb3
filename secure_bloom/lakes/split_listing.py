"""List a table in two parts: the upper folders here, and what is below them in other processes.

The rules for names are those of ``listing``.  Nothing here holds all files of a table at once: the
first part ends when it has found enough folders to share out, or too many files.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from secure_bloom.lakes.managed_tables import refuse_above, refuse_folder, refuse_linked
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.folder_trees import Tree
from secure_bloom.storage.listing import SUMMARY_NAME, expand, is_data_file, is_data_name
from secure_bloom.storage.paths import name_of

#: Files that the first part may hold, and folders that are worth sharing out.
_FILES, _BRANCHES = 1000, 32


class FileFilter(Protocol):
    """Decides which folders and files of a listing are wanted."""

    def folder(self, path: str, /) -> bool:
        """Return whether any file below the folder may be wanted."""

    def file(self, tree: Tree, path: str, /) -> bool:
        """Return whether the file is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A folder that is still to be listed. With ``deep``, all folders below it are listed, too.

    ``root`` is the ordinal of the given path that led to it.
    """

    root: int
    folder: str
    deep: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file that was found: data, or a summary file.

    ``key`` is the same for all paths of one file.

    ``size`` is the size in bytes of a data file.
    """

    root: int
    path: str
    key: Hashable
    is_summary: bool = False
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperPart:
    """The files that the first part found, and the branches that are left."""

    entries: tuple[Entry, ...]
    branches: tuple[Branch, ...]


def list_upper_part(
    paths: Sequence[str],
    selection: FileFilter,
    *,
    most_files: int = _FILES,
    branches: int = _BRANCHES,
) -> UpperPart:
    """List the paths from the top until there are enough branches, or everything is listed.

    Raises :class:`PolicyError` for a path that does not exist, and :class:`UnsupportedFeatureError`
    for a table with its own log in the folders that were listed.
    """
    # Once, here: the processes that list branches look at folders below these alone.
    refuse_above(paths)
    upper = _UpperPart(selection, most_files)
    for root, path in enumerate(paths):
        upper.start(root, path)
    while upper.pending and len(upper.pending) < branches:
        upper.descend(upper.pending.popleft())
    return UpperPart(entries=tuple(upper.entries), branches=(*upper.flat, *upper.pending))


def list_branch(branch: Branch, selection: FileFilter) -> Iterator[Entry]:
    """Yield the files of a branch, folder by folder.

    Raises the errors of :func:`find_files`.
    """
    tree = tree_of(branch.folder)
    if not branch.deep:
        # Without a bound: the bound of the first part is why this folder was left to another
        # process.
        _, files = tree.level(branch.folder, sys.maxsize)
        yield from _entries(tree, branch.root, branch.folder, files or (), selection)
        return
    for folder, folders, files in tree.walk(branch.folder):
        refuse_folder(tree, folder, folders)
        folders[:] = _wanted_folders(tree, folder, folders, selection)
        yield from _entries(tree, branch.root, folder, files, selection)


class _UpperPart:
    """The part of a table that the driver lists: files found, and folders still to be listed."""

    def __init__(self, selection: FileFilter, most_files: int) -> None:
        self._selection = selection
        self._left = most_files
        self._seen: set[Hashable] = set()
        self.entries: list[Entry] = []
        self.pending: deque[Branch] = deque()
        #: Folders whose own files are too many; the folders below them are pending.
        self.flat: list[Branch] = []

    def start(self, root: int, path: str) -> None:
        """Begin with the files or folders that a given path names."""
        for match in expand([path]):
            tree = tree_of(match)
            if tree.is_folder(match):
                self.pending.append(Branch(root=root, folder=match, deep=True))
            elif (match == path or is_data_file(name_of(match))) and self._selection.file(
                tree, match
            ):
                self.entries.append(_data_entry(tree, root, match))

    def descend(self, branch: Branch) -> None:
        """List one folder, and add its subfolders to the folders that are pending."""
        tree = tree_of(branch.folder)
        # A link may lead back up.
        key = branch.root, tree.key(branch.folder)
        if key in self._seen:
            return
        self._seen.add(key)
        folders, files = tree.level(branch.folder, self._left)
        refuse_folder(tree, branch.folder, folders)
        for name in _wanted_folders(tree, branch.folder, folders, self._selection):
            inner = tree.join(branch.folder, name)
            self.pending.append(Branch(root=branch.root, folder=inner, deep=True))
        if files is None:
            # Its files are left to another process, which need not hold them all at once.
            self.flat.append(Branch(root=branch.root, folder=branch.folder, deep=False))
            return
        self._left -= len(files)
        self.entries += _entries(tree, branch.root, branch.folder, files, self._selection)


def _wanted_folders(
    tree: Tree, folder: str, names: Sequence[str], selection: FileFilter
) -> list[str]:
    data = filter(is_data_name, names)
    wanted = [name for name in data if selection.folder(tree.join(folder, name))]
    inner = [tree.join(folder, name) for name in wanted]
    refuse_linked([(tree.key(path), path) for path in inner], [folder])
    return wanted


def _entries(
    tree: Tree, root: int, folder: str, names: Sequence[str], selection: FileFilter
) -> Iterator[Entry]:
    place = str(tree.key(folder))
    for name in names:
        path = tree.join(folder, name)
        if name == SUMMARY_NAME:
            yield Entry(root=root, path=path, key=tree.key(path), is_summary=True)
        elif is_data_file(name) and selection.file(tree, path):
            entry = _data_entry(tree, root, path)
            if entry.key != tree.join(place, name):
                # A link, or an object, of which nothing is asked.
                refuse_linked([(entry.key, path)], [folder])
            yield entry


def _data_entry(tree: Tree, root: int, path: str) -> Entry:
    return Entry(root=root, path=path, key=tree.key(path), size=tree.size(path))
