"""A folder for code that this package compiles: only its user can put something into it.

What stands there is run with the keys at hand.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


def user_cache() -> Path | None:
    """`$XDG_CACHE_HOME/secure-bloom`, else `~/.cache/secure-bloom`, made if need be.

    None where it cannot be made or written, or where others could put files into it.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return _trusted(Path(home, "secure-bloom"))


def _trusted(folder: Path) -> Path | None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        folder = folder.resolve()
    except OSError:
        return None
    if not is_ours_alone(folder) or not all(map(_is_kept_by_its_owner, folder.parents)):
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def is_ours_alone(path: Path) -> bool:
    """Whether only we, or root, can have written this file or folder."""
    try:
        status = path.lstat()
    except OSError:
        return False
    shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return _is_trusted(status) and not shared and not stat.S_ISLNK(status.st_mode)


def _is_kept_by_its_owner(folder: Path) -> bool:
    """Whether nobody whom we do not trust can put another folder in the place of one in here."""
    status = folder.stat()
    is_open = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
    return _is_trusted(status) and not is_open


def _is_trusted(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.geteuid())
