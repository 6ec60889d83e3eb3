# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH100
"""A record of the files that a run is about to write into a table, kept until the run has ended.

    .run-<run>.secure-bloom    {"version", "boot", "files": [path, ...]}

A run that is killed leaves new files that no version names.  The next run removes them, but only if
it is certain that the killed run is dead and commits nothing any more.  That is certain if the
record names the files, the run ran since this machine's kernel last started, and its lock is free.
The files must also not be named by any version: what a dead run left becomes live if somebody
removes the log, and converts the folder to a table again.  If this cannot be known (an object
store, another machine), the files are left to the table's VACUUM.

A file that replaces another one gets a generated name beside the old one.  Paths are as the log has
them, URIs relative to the table's folder, percent-encoded:

    day=1/part-0.snappy.parquet  ->  day=1/part-0.snappy.sb-<run>.parquet
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from secure_bloom.errors import SecureBloomError
from secure_bloom.lakes.delta.actions import json_lines
from secure_bloom.lakes.delta.log_commit import log_file
from secure_bloom.lakes.delta.log_files import LOG_FOLDER, resolve, sort_names
from secure_bloom.lakes.delta.snapshot import snapshot
from secure_bloom.lakes.new_files import is_marked, marked_name, remove_new_file
from secure_bloom.running.memory_budget import DecodedBytes
from secure_bloom.storage import is_object_uri, join, open_input
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.durable_writes import read_all, write_all
from secure_bloom.storage.locks import try_lock
from secure_bloom.storage.open_folder import OpenFolder, close
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import without_links

_NAME = re.compile(r"\.run-([0-9a-f]{16})\.secure-bloom")
#: The kernel makes a new id at each start.  Locks are the kernel's, so they say nothing elsewhere.
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MOST_BYTES = 1 << 30


@contextmanager
def recorded(folder: str, run: str, version: int, files: Sequence[str]) -> Iterator[list[str]]:
    """Keep a record of a run's new files, by their paths in the log, while the block runs.

    Yields a list. After the block it holds the notes for the report.  If the run fails and some of
    its files exist, the record stays, and the next run removes these files.
    """
    boot = _boot()
    if is_object_uri(folder) or boot is None:
        yield []
        return
    name = f".run-{run}.secure-bloom"
    content = json.dumps({"version": version, "boot": boot, "files": list(files)}).encode()
    with system_errors(folder):
        opened = OpenFolder(os.path.abspath(folder))
    with opened:
        with system_errors(folder):
            fd = _begin(opened, name, content)
        notes: list[str] = []
        try:
            yield notes
        except BaseException:
            if not _any_left(folder, files):
                notes += _end(opened, name)
            raise
        else:
            notes += _end(opened, name)
        finally:
            close(fd)


def _any_left(folder: str, files: Iterable[str]) -> bool:
    try:
        return any(tree_of(folder).is_file(resolve(folder, file)) for file in files)
    except SecureBloomError:
        return True


def _end(opened: OpenFolder, name: str) -> Iterator[str]:
    try:
        opened.unlink(name)
    except OSError:
        yield f"{name} stays, the next run removes it"


def _begin(opened: OpenFolder, name: str, content: bytes) -> int:
    """Create the record. Return its descriptor, which holds the lock."""
    fd = opened.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        # Without a lock nobody could see that this run lives, so nobody may clean up after it.  And
        # before the lock was taken, another run may have removed the empty record as a dead run's.
        if try_lock(fd) and opened.holds(name, fd):
            write_all(fd, [content], 0)
            os.fsync(fd)
    except BaseException:
        with suppress(OSError):
            opened.unlink(name)
        close(fd)
        raise
    return fd


def remove_files(folder: str, files: Iterable[str]) -> None:
    """Remove new files that no version names, with their key material and temporary files."""
    for file in files:
        remove_new_file(new_file(folder, file))


def new_file(folder: str, path: str) -> str:
    """Return the path that opens a new file, given its path in the log.

    Raises an error if a folder between the table's own and the file is a symbolic link.
    """
    return without_links(resolve(folder, path), folder)


def clean_up(folder: str) -> None:
    """Remove files that dead runs have left.

    A file that cannot be removed stays for the next run.
    """
    boot = _boot()
    if is_object_uri(folder) or boot is None:
        return
    with system_errors(folder), OpenFolder(os.path.abspath(folder)) as opened:
        for name in tree_of(folder).names(folder):
            found = _NAME.fullmatch(name)
            if found is not None:
                with suppress(OSError, SecureBloomError):
                    _clean_up_after(opened, folder, name, found[1], boot)


def _clean_up_after(opened: OpenFolder, folder: str, name: str, run: str, boot: str) -> None:
    fd = opened.open(name, os.O_RDONLY)
    try:
        if not _is_mine(fd) or not try_lock(fd):
            return
        record = _record(fd)
        # Written under another start of the kernel, or on another machine: its lock may be held
        # there.
        if record is not None and record["boot"] != boot:
            return
        if record is not None:
            mine = [path for path in record["files"] if is_of_run(path, run)]
            # The commit may have come right before the kill: what it names is alive.
            named = _named(folder, run, record["version"])
            remove_files(folder, [path for path in mine if resolve(folder, path) not in named])
        # Last: killed before, the next run finds the record and goes on.
        opened.unlink(name)
    finally:
        close(fd)


def _is_mine(fd: int) -> bool:
    """Return whether only this user can have written the record.

    Files that a record names are removed. So a record that another user wrote must not be trusted.
    """
    status = os.fstat(fd)
    is_private = status.st_nlink == 1 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and is_private


def _record(fd: int) -> dict[str, Any] | None:
    """Return the content of a record, or None if its writer died before it wrote any file."""
    try:
        record = json.loads(read_all(fd, 0, min(os.fstat(fd).st_size, _MOST_BYTES)))
        if isinstance(record["version"], int) and all(
            isinstance(it, str) for it in record["files"]
        ):
            return {name: record[name] for name in ("version", "boot", "files")}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return None


def _named(folder: str, run: str, version: int) -> set[str]:
    """Return the new files of a run that a version names, as paths that can be opened.

    Raises MissingPathError if a commit after ``version`` is gone, because then this is unknown.
    """
    # All versions: the log may be another one than the run has read, after somebody removed that
    # log, and converted the folder with whatever was in it.
    table = snapshot(folder)
    found = set() if table is None else {file.path for file in table.files}
    log = sort_names(tree_of(folder).names(join(folder, LOG_FOLDER)))
    # The last version may have a checkpoint alone, because its commit was cleaned up.
    for number in log.commits.keys() | {*range(version + 1, log.latest + 1)}:
        with open_input(log_file(folder, number)) as file:
            content = file.all_bytes()
        # Searched as bytes first: commits of other writers may have megabytes, and none has this
        # run's name.
        if run.encode() in content:
            actions = json_lines(content, DecodedBytes("a commit of the log"))
            found |= {resolve(folder, it["add"]["path"]) for it in actions if it.get("add")}
    return found


def _boot() -> str | None:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return None


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def is_of_run(path: str, run: str) -> bool:
    """Return whether a path of the log has the name of a file that this run writes in the table."""
    parts = unquote(path).split("/")
    is_inside = _SCHEME.match(path) is None and not {"", ".", ".."} & {*parts}
    # Files whose paths pass are removed, so both must hold.
    return is_inside and is_marked(parts[-1], run)


def new_path(path: str, run: str, *, hashed: bool = False) -> str:
    """Return the path, for the log, of the file that replaces ``path``.

    With ``hashed`` the name is a hash of the old path: see :func:`.new_files.new_paths`.

    A file of another table, which a shallow clone names by its full path, is replaced by a file in
    this table's own folder. The VACUUM of the other table would remove a file in that table.
    """
    is_elsewhere = path.startswith("/") or _SCHEME.match(path) is not None
    *folders, name = path.split("/")
    marked = marked_name(name, run, unique=path, hashed=hashed)
    # Beside the old file: folders of partitions are no more than names, and engines go by the log.
    # "x//a" and "x/./a" name one file, and their new files must not become one.
    steps = [] if is_elsewhere else [step for step in folders if step not in ("", ".")]
    return "/".join([*steps, marked])
