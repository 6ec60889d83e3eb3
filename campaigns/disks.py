"""The real file systems that campaigns write to."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

#: A folder in memory for files of which it does not matter where they are; None if there is none.
MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None
#: File systems on which one direct write lengthens a file at once; tmpfs takes it page by page.
_AT_ONCE = ("ext4", "xfs")


def folders() -> dict[str, str]:
    """A folder for each kind of file system that is at hand: its name -> the folder."""
    places = (tempfile.gettempdir(), "/dev/shm")
    return {file_system(Path(place)): place for place in places if Path(place).is_dir()}


def file_system(folder: Path) -> str:
    """The kind of file system that the folder is on."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    inside = [(point, kind) for point, kind in mounts if folder.resolve().is_relative_to(point)]
    return max(inside, key=lambda mount: len(mount[0]))[1]


def writes_at_once(folder: Path) -> bool:
    """Whether a kill during a direct write leaves the old file or the new one."""
    return file_system(folder) in _AT_ONCE
