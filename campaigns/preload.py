"""Building `preload.c`, loading it under a Python process, and telling it what to do."""

from __future__ import annotations

import ctypes
import enum
import shutil
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("preload.c")


class Action(enum.IntEnum):
    """What happens to the chosen call; the numbers of `preload.c`."""

    NONE = 0
    KILL_BEFORE = 1
    KILL_AFTER = 2
    FAIL_BEFORE = 3
    FAIL_AFTER = 4
    SHORT = 5


def compiler() -> str | None:
    """A C compiler, or None."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build(library: Path) -> Path:
    """Compile the library to this path."""
    command = compiler()
    if command is None:
        raise FileNotFoundError("a C compiler is needed (Debian, Ubuntu: apt-get install gcc)")
    flags = ["-O1", "-shared", "-fPIC", "-D_LARGEFILE64_SOURCE", "-o", str(library)]
    subprocess.run([command, *flags, str(_SOURCE), "-ldl"], check=True)
    return library


class Preload:
    """The library of this process, which was started with LD_PRELOAD."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.faults_name.restype = ctypes.c_char_p

    def arm(self, at: int = -1, action: Action = Action.NONE, error: int = 0) -> None:
        """From now on count calls; at the one with number ``at`` do what is said."""
        self._library.faults_arm(at, int(action), error)

    def disarm(self) -> list[str]:
        """Stop; the names of the calls that were seen."""
        count: int = self._library.faults_disarm()
        return [self._library.faults_name(at).decode() for at in range(count)]
