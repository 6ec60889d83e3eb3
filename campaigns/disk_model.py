"""What a disk may hold after a power cut, worked out from the writes and syncs of a run.

Recorded are the calls by which `storage` writes.  A power cut comes behind any of them.  Then

- of a file that was not synced since, each page is the one of its last sync or the latest one, and
  so is its size; a page that was lost inside the new size is zeros or garbage;
- a direct write that lengthens a file is there whole, with its size, or not at all: ext4 and XFS
  set the size when the data is on the disk;
- of a folder that was not synced since, each change of a name has happened or has not.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import random
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from secure_bloom.storage import open_folder
from secure_bloom.storage.open_folder import exchange_names

PAGE = 4096
#: Of more lost pages than this not every subset is tried, but so many at random.
_EVERY_SUBSET_OF = 8
_GARBAGE = b"\xaa" * PAGE


@dataclass(slots=True)
class FileState:
    """One file: its content as of the last sync, and as programs see it."""

    synced: bytes = b""
    current: bytes = b""
    #: Set by a direct write: the pages and the size come together.
    at_once: bool = False

    def sync(self) -> None:
        """All of it is on the disk."""
        self.synced, self.at_once = self.current, False

    def write(self, offset: int, data: bytes) -> None:
        """A write, which may leave a hole before it."""
        content = self.current.ljust(offset, b"\0")
        self.current = content[:offset] + data + content[offset + len(data) :]

    def after_a_power_cut(self, chance: random.Random, samples: int) -> Iterator[bytes]:
        """Contents that the file may have then."""
        yield from {self.synced: None, self.current: None}
        if self.at_once or self.synced == self.current:
            return
        size = max(len(self.synced), len(self.current))
        dirty = [at for at in range(0, size, PAGE) if self._page(at, old=True) != self._page(at)]
        for kept in _subsets(dirty, chance, samples):
            for length in {len(self.synced), len(self.current)}:
                for lost in (bytes(PAGE), _GARBAGE):
                    yield self._with(set(kept), length, lost)

    def _page(self, at: int, *, old: bool = False) -> bytes:
        return (self.synced if old else self.current)[at : at + PAGE]

    def _with(self, kept: set[int], length: int, lost: bytes) -> bytes:
        pages = []
        for at in range(0, length, PAGE):
            page = self._page(at, old=at not in kept)
            pages.append(page + lost[len(page) :])
        return b"".join(pages)[:length]


def _subsets(items: list[int], chance: random.Random, samples: int) -> Iterator[tuple[int, ...]]:
    if len(items) <= _EVERY_SUBSET_OF:
        for count in range(len(items) + 1):
            yield from itertools.combinations(items, count)
        return
    for item in items:
        yield (item,)
        yield tuple(other for other in items if other != item)
    for _ in range(samples):
        yield tuple(item for item in items if chance.random() < 0.5)


Names = dict[str, int]
NameChange = Callable[[Names], None]


@dataclass(slots=True)
class Disk:
    """Files by inode, and the names that lead to them, on the disk and not yet there."""

    files: dict[int, FileState] = field(default_factory=dict)
    names: Names = field(default_factory=dict)
    pending: list[NameChange] = field(default_factory=list)

    def file(self, inode: int) -> FileState:
        """The file with this inode, a new and empty one when it was not seen before."""
        return self.files.setdefault(inode, FileState())

    def sync_names(self) -> None:
        """All changes of names are on the disk."""
        for change in self.pending:
            change(self.names)
        self.pending = []

    def after_a_power_cut(self, chance: random.Random, samples: int) -> Iterator[dict[str, bytes]]:
        """Folders that may be found then; one file at a time differs from what was synced."""
        for names in self._namings():
            for inode in set(names.values()):
                for content in self.file(inode).after_a_power_cut(chance, samples):
                    yield {
                        name: content if at == inode else self.file(at).synced
                        for name, at in names.items()
                    }

    def _namings(self) -> Iterator[Names]:
        for chosen in itertools.product((False, True), repeat=len(self.pending)):
            names = dict(self.names)
            for change in itertools.compress(self.pending, chosen):
                change(names)
            yield names


@dataclass(slots=True)
class Recorder:
    """Follows the calls of a run on a disk; ``cut`` is called behind each of them."""

    disk: Disk
    cut: Callable[[Disk], None]
    _paused: bool = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Follow what is called inside."""
        with ExitStack() as stack:
            for name in ("pwritev", "copy_file_range", "ftruncate", "fsync"):
                stack.enter_context(mock.patch.object(os, name, self._on_file(name)))
            for name in ("rename", "link", "unlink"):
                stack.enter_context(mock.patch.object(os, name, self._on_name(name)))
            exchange = mock.patch.object(open_folder, "exchange_names", self._exchange)
            stack.enter_context(exchange)
            yield

    def _on_file(self, name: str) -> Callable[..., Any]:
        call, follow = getattr(os, name), getattr(self, f"_{name}")

        def followed(fd: int, *arguments: Any) -> Any:
            result = call(fd, *arguments)
            if not self._paused:
                follow(result, fd, *arguments)
                self._cut_power()
            return result

        return followed

    def _pwritev(self, written: int, fd: int, parts: list[bytes], offset: int) -> None:
        file = self.disk.file(os.fstat(fd).st_ino)
        direct = bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT)
        file.write(offset, b"".join(bytes(part) for part in parts)[:written])
        file.at_once = direct

    def _copy_file_range(
        self, copied: int, _source: int, target: int, _count: int, _from: int, offset: int
    ) -> None:
        self.disk.file(os.fstat(target).st_ino).write(offset, os.pread(target, copied, offset))

    def _ftruncate(self, _: None, fd: int, size: int) -> None:
        file = self.disk.file(os.fstat(fd).st_ino)
        file.current = file.current[:size].ljust(size, b"\0")

    def _fsync(self, _: None, fd: int) -> None:
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            self.disk.sync_names()
            return
        # A file that Python's own objects write to is not followed call by call.
        file = self.disk.file(status.st_ino)
        file.current = os.pread(fd, status.st_size, 0)
        file.sync()

    def _on_name(self, name: str) -> Callable[..., Any]:
        call = getattr(os, name)

        def followed(*arguments: Any, **folders: Any) -> None:
            if self._paused:
                call(*arguments, **folders)
                return
            change = _changes(name, *arguments, **folders)
            call(*arguments, **folders)
            self.disk.pending.append(change)
            self._cut_power()

        return followed

    def _exchange(self, folder: int, one: str, other: str) -> None:
        exchange_names(folder, one, other)
        if not self._paused:
            names = _absolute(one, folder), _absolute(other, folder)
            self.disk.pending.append(partial(_exchanged, *names))
            self._cut_power()

    def _cut_power(self) -> None:
        self._paused = True  # what looks at the disk may write too
        self.cut(self.disk)
        self._paused = False


def _changes(name: str, path: str, new: str = "", **folders: Any) -> NameChange:
    """What the call does to names; an inode is looked up now, while its name is there."""
    source = _absolute(path, folders.get("src_dir_fd", folders.get("dir_fd")))
    target = _absolute(new, folders.get("dst_dir_fd"))
    inode = Path(source).stat().st_ino if name == "link" else 0

    def change(names: Names) -> None:
        if name == "link":
            names[target] = inode
        elif source in names:
            inode_of_source = names.pop(source)
            if name == "rename":
                names[target] = inode_of_source

    return change


def _exchanged(one: str, other: str, names: Names) -> None:
    # Together or not at all: it is one transaction of the file system's journal.
    if one in names and other in names:
        names[one], names[other] = names[other], names[one]


def _absolute(path: str, folder: int | None) -> str:
    return path if folder is None else str(Path(f"/proc/self/fd/{folder}").readlink() / path)
