"""A folder for code that this package compiles, into which only its user can put files.

The JVM runs the code in this folder, with the keys of the session.  So a folder or a file is only
used if no other user than root can have written it, or can replace it:

- folder, and each folder above it: owned by the user or root; not writable by a group or by others,
  unless it is sticky, as /tmp is, where nobody can exchange what others own.
- file: a regular file of the user or root, which neither a group nor others may write.

An ACL that lets somebody write is visible as the group's permission.  All checks use descriptors
that follow no link, each opened below the one that was checked before.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

#: Linux opens what it may not read, to look at it; elsewhere what cannot be read does not count.
#: A system without these flags (Windows) opens no folder, so nothing counts there.
_LOOK = (
    getattr(os, "O_PATH", getattr(os, "O_NONBLOCK", 0))
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def user_cache() -> Path | None:
    """Return `$XDG_CACHE_HOME/secure-bloom`, else `~/.cache/secure-bloom`, created if necessary.

    Return None if it cannot be created or written, or if others can put files into it.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    folder = Path(home, "secure-bloom")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        folder = folder.resolve()
    except OSError:
        return None
    return folder if is_own_folder(folder) and os.access(folder, os.W_OK | os.X_OK) else None


def is_own_folder(folder: Path) -> bool:
    """Return whether only the user or root can put files into this folder, or replace it.

    ``folder`` is absolute. A link anywhere in the path makes the result False.
    """
    with ExitStack() as opened:
        try:
            *parents, status = _statuses(opened, folder, _DIRECTORY)
        except (OSError, NotImplementedError):
            return False
    return _is_written_by_its_owner(status) and all(map(_keeps_its_names, parents))


def is_own_file(path: Path) -> bool:
    """Return whether only the user or root can have written or can replace this regular file."""
    with ExitStack() as opened:
        try:
            *parents, folder, status = _statuses(opened, path, 0)
        except (OSError, NotImplementedError):
            return False
    return (
        stat.S_ISREG(status.st_mode)
        and all(map(_is_written_by_its_owner, (status, folder)))
        and all(map(_keeps_its_names, parents))
    )


def _statuses(opened: ExitStack, path: Path, flags: int) -> Iterator[os.stat_result]:
    """Yield the status of each folder from the root on, and of what ``path`` names."""
    below: int | None = None
    parts = path.parts
    for number, part in enumerate(parts, start=1):
        kind = flags if number == len(parts) else _DIRECTORY
        below = os.open(part, _LOOK | kind, dir_fd=below)
        opened.callback(os.close, below)
        yield os.fstat(below)


def _is_written_by_its_owner(status: os.stat_result) -> bool:
    return _is_trusted(status) and not status.st_mode & _OTHERS_WRITE


def _keeps_its_names(status: os.stat_result) -> bool:
    """Return whether others cannot replace what the user or root owns in this folder."""
    shared = status.st_mode & _OTHERS_WRITE
    return _is_trusted(status) and not (shared and not status.st_mode & stat.S_ISVTX)


def _is_trusted(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.geteuid())
