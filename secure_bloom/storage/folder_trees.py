# File descriptors and strings, not Path objects, throughout.
# The base class documents the methods.
# ruff: noqa: D102, PTH100, PTH114, PTH116, PTH118, PTH120, PTH208
"""Folders: one interface for a local disk and an object store, and its class for the local disk."""

from __future__ import annotations

import errno
import functools
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterator

from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import with_slashes

#: A folder, the names of its subfolders (callers may shorten the list), the names of its files.
Level = tuple[str, list[str], list[str]]

#: Last parts of paths that are not the name of a file in the folder before them.
_NO_NAMES = {"", ".", ".."}

#: The system's errors for a path under which nothing can be.  Any other error says nothing of
#: that: a table whose log cannot be looked at is no table without one.
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}
_DENIED = {errno.EACCES, errno.EPERM}
_UNSEEN = _ABSENT | _DENIED


class Tree(ABC):
    """The folders of one store."""

    @abstractmethod
    def is_file(self, path: str) -> bool:
        """Return whether there is anything at the path that is not a folder."""

    @abstractmethod
    def is_folder(self, path: str) -> bool:
        """Return whether there is a folder at the path."""

    @abstractmethod
    def find_folder(self, path: str) -> bool | None:
        """Return True for a folder, False for a file or a broken link, and None for neither.

        A path that this process may not look at is None too.
        """

    def find_unlisted(self, path: str) -> bool | None:
        """Return :meth:`find_folder` of a path that :meth:`walk` did not list as a folder.

        In a store the result is None, because a store lists everything that it has.
        """
        del path
        return None

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, or [] if it is no folder or may not be read."""

    @abstractmethod
    def join(self, folder: str, name: str) -> str:
        """Return the path of a name in a folder."""

    @abstractmethod
    def walk(self, folder: str, refused: list[SecureBloomError] | None = None) -> Iterator[Level]:
        """Yield the folder and all folders below it, top-down and in order.

        Loops of links are not followed. A folder that may not be read raises an error, or adds the
        error to ``refused`` if that is given.
        """

    @abstractmethod
    def level(self, folder: str, most: int) -> tuple[list[str], list[str] | None]:
        """Return the names of the subfolders, and the names of the files.

        The files are None if there are more than ``most``.
        """

    @abstractmethod
    def written_ns(self, path: str) -> int:
        """Return the time of the file's last write, in nanoseconds after 1970."""

    @abstractmethod
    def size(self, path: str) -> int:
        """Return the size of a file in bytes, or 0 if nothing is there."""

    def listed_size(self, path: str) -> int | None:
        """Return the size of a file if a listing has shown it; None for local files."""
        del path
        return None

    @abstractmethod
    def parents(self, path: str) -> list[str]:
        """Return all folders above the path.

        These are the folders above the path as given, and above the paths to which its links lead.
        """

    @abstractmethod
    def key(self, path: str) -> Hashable:
        """Return a key that is equal for two paths of one file."""


class LocalTree(Tree):
    """The local disk."""

    def __init__(self) -> None:
        self._real_folders: dict[str, str] = {}

    def is_file(self, path: str) -> bool:
        # A link that leads nowhere counts as a file: opened, it is an error, and not passed over.
        return _status(path, follow=False) is not None and not self.is_folder(path)

    def is_folder(self, path: str) -> bool:
        return _is_folder(_status(path))

    def find_folder(self, path: str) -> bool | None:
        # Most paths name nothing: one call of the system answers for them.
        status = _status(path, follow=False, absent=_UNSEEN)
        if status is not None and stat.S_ISLNK(status.st_mode):
            return _is_folder(_status(path, absent=_UNSEEN))
        return None if status is None else _is_folder(status)

    def find_unlisted(self, path: str) -> bool | None:
        return self.find_folder(path)

    def names(self, folder: str) -> list[str]:
        with system_errors(folder):
            try:
                return os.listdir(folder)
            except OSError as error:
                if error.errno in _UNSEEN:
                    return []
                raise

    def join(self, folder: str, name: str) -> str:
        return with_slashes(os.path.join(folder, name))

    def walk(self, folder: str, refused: list[SecureBloomError] | None = None) -> Iterator[Level]:
        seen, waiting = set(), [folder]
        refuse = functools.partial(_refuse, refused=refused)
        while waiting:
            # One level at a time: os.walk hands each level through all levels above it.
            level = next(os.walk(waiting.pop(), followlinks=True, onerror=refuse), None)
            status = None if level is None else _status(level[0])
            if level is None or status is None:
                continue
            inode = (status.st_dev, status.st_ino)
            if inode in seen:
                # A link that leads back up: to go on would end at the longest path that the system
                # takes.
                continue
            seen.add(inode)
            current, folders, files = level
            folders.sort()
            yield with_slashes(current), folders, sorted(files)
            # The caller may have taken folders out.
            waiting += [os.path.join(current, name) for name in reversed(folders)]

    def level(self, folder: str, most: int) -> tuple[list[str], list[str] | None]:
        folders: list[str] = []
        files: list[str] = []
        # One entry at a time: a folder may hold more names than there is memory for.
        with system_errors(folder), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.name)
                # One more than wanted is kept, to know that there are more.
                elif len(files) <= most:
                    files.append(entry.name)
        return sorted(folders), sorted(files) if len(files) <= most else None

    def written_ns(self, path: str) -> int:
        with system_errors(path):
            return os.stat(path).st_mtime_ns

    def size(self, path: str) -> int:
        status = _status(path)
        return 0 if status is None else status.st_size

    def parents(self, path: str) -> list[str]:
        given, real = os.path.abspath(path), self.key(path)
        return list(_above(os.path.dirname(given), os.path.dirname(real)))

    def key(self, path: str) -> str:
        folder, name = os.path.split(path)
        return _behind_link(self._real_folder(folder), name)

    def _real_folder(self, folder: str) -> str:
        # Following links is slow, and most files of a table are in few folders: so the real path of
        # each folder is kept, and those above it are followed once for all folders below.
        known, above, below = self._real_folders, folder, list[tuple[str, str]]()
        while above not in known:
            parent, name = os.path.split(above)
            if parent == above or name in _NO_NAMES:
                known[above] = os.path.realpath(above)
            else:
                below.append((above, parent))
                above = parent
        for each, parent in reversed(below):
            known[each] = _behind_link(known[parent], os.path.split(each)[1])
        return known[folder]


def _behind_link(real_folder: str, name: str) -> str:
    """Return the real path of the file or folder with this name in a folder."""
    found = os.path.join(real_folder, name)
    return os.path.realpath(found) if name in _NO_NAMES or os.path.islink(found) else found


def _status(
    path: str, *, follow: bool = True, absent: Collection[int] = _ABSENT
) -> os.stat_result | None:
    """Return the system's status of the path, or None if nothing is there."""
    with system_errors(path):
        try:
            return os.stat(path, follow_symlinks=follow)
        except OSError as error:
            if error.errno in absent:
                return None
            raise
        except ValueError:
            # A zero byte, or half a character: no name of a file has that.
            return None


def _is_folder(status: os.stat_result | None) -> bool:
    return status is not None and stat.S_ISDIR(status.st_mode)


@functools.lru_cache(maxsize=64)
def _above(*folders: str) -> tuple[str, ...]:
    """Return the given folders and all of their parent folders, each once."""
    found: dict[str, None] = {}
    for folder in folders:
        while folder not in found:
            found[folder] = None
            folder = os.path.dirname(folder)
    return tuple(found)


def _refuse(error: OSError, refused: list[SecureBloomError] | None) -> None:
    try:
        with system_errors(os.fsdecode(error.filename)):
            raise error
    except PolicyError as refusal:
        if refused is None:
            raise
        refused.append(refusal)
