"""KMS clients that show what happens in worker processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from testing.tables import KEYRING


def in_worker() -> bool:
    """Whether this is a worker of ours: those of pytest-xdist begin with ``-c`` too."""
    return sys.argv == ["-c"] and "pytest" not in sys.modules


class WorkerKms:
    """The development keyring; what it sees of its process goes to files of ``folder``."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        if in_worker():
            self.seen()
        return KEYRING.unwrap_key(wrapped_key, master_key_identifier)

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return KEYRING.wrap_key(key_bytes, master_key_identifier)

    def seen(self) -> None:
        proc = Path("/proc/self")
        told = [(proc / name).read_bytes() for name in ("cmdline", "environ") if proc.exists()]
        (self.folder / f"{os.getpid()}.seen").write_bytes(b"".join(told))
        with (self.folder / "calls").open("a") as file:
            file.write(f"{os.getpid()}\n")


class WaitingKms(WorkerKms):
    """In a worker it waits for the file ``go``."""

    def seen(self) -> None:
        super().seen()
        while not (self.folder / "go").exists():
            time.sleep(0.005)


class DeadlyKms(WorkerKms):
    """The first call in a worker kills the worker."""

    def seen(self) -> None:
        super().seen()
        try:
            (self.folder / "killed").touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


class LockedKms(WorkerKms):
    """It cannot be pickled."""

    def __reduce__(self) -> str:
        raise TypeError("this client stays where it is")
