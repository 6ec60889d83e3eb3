"""Decode one file in a process of its own, which may take a limited amount of memory.

Some libraries allocate what a file claims to hold, before anybody can count it.  Where they run
alone, the system refuses what is too much, and the caller's process stays as it is.

    for message in in_limited_process(decode, file, memory): ...

``decode(file, emit)`` is pickled.  It gets a file that reads from the caller's, and calls ``emit``
with each message.  Nothing of the file is on a command line, in the environment or on a disk::

    to the process:  sys.path | decode, memory, size of the file | what was asked for ...
    back:            b"r" offset, size | b"m" message ... | b"."
"""

from __future__ import annotations

import io
import os
import pickle
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final, cast

from secure_bloom.running.positioned_stream import PositionedStream
from secure_bloom.running.worker_processes import start_process

Emit = Callable[[bytes], None]
Decode = Callable[[BinaryIO, Emit], None]
_READ, _MESSAGE, _END = b"r", b"m", b"."
_ASKED: Final = Struct("<QQ")
#: Bytes that are asked for at a time.
_PIECE: Final = 1 << 18


class LimitedProcessError(Exception):
    """The process ended before its work was done. The text says why, as far as that is known."""


def in_limited_process(decode: Decode, file: BinaryIO, memory: int) -> Generator[bytes, None, None]:
    """Yield what ``decode`` emits in another process, which may take up to ``memory`` bytes.

    Raises LimitedProcessError if the process ends early, or cannot be started.
    """
    size = file.seek(0, io.SEEK_END)
    try:
        process, connection = start_process(
            pickle.dumps((decode, memory, size)), "secure_bloom.running.limited_process"
        )
    except OSError:
        raise LimitedProcessError("no process can be started") from None
    try:
        while (message := connection.recv_bytes())[:1] != _END:
            if message[:1] == _MESSAGE:
                yield message[1:]
                continue
            offset, wanted = _ASKED.unpack(message[1:])
            file.seek(offset)
            connection.send_bytes(file.read(wanted))
    except (EOFError, OSError):
        raise LimitedProcessError(
            "the process that decodes it ended, most likely because it ran out of memory"
        ) from None
    finally:
        connection.close()
        process.kill()
        process.wait()


def serve(caller: Connection) -> None:
    """Decode the file that the caller sends. After an error this process ends without a message."""
    # What a library writes before it aborts may show values.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # Arrow's other allocators reserve more than they use.
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    with suppress(Exception):
        decode, memory, size = pickle.loads(caller.recv_bytes())  # noqa: S301 - the caller's own
        _limit(memory)
        stream = PositionedStream(_asking(caller), size)
        file = cast("BinaryIO", io.BufferedReader(stream, _PIECE))
        decode(file, lambda message: caller.send_bytes(_MESSAGE + message))
        caller.send_bytes(_END)


def _asking(caller: Connection) -> Callable[[int, int], bytes]:
    """Return a function that reads from the caller's file. It may be called from any thread."""
    lock = threading.Lock()

    def read_at(offset: int, length: int) -> bytes:
        with lock:
            caller.send_bytes(_READ + _ASKED.pack(offset, min(length, _PIECE)))
            return caller.recv_bytes()

    return read_at


def _limit(memory: int) -> None:
    """Let this process take ``memory`` bytes more than it has, if the system can limit that."""
    try:
        import resource

        [line] = (it for it in Path("/proc/self/status").read_text().splitlines() if "VmData" in it)
    except (ImportError, OSError, ValueError):
        return
    most = int(line.split()[1]) * 1024 + memory
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    # No dump of the memory of a process that aborts.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
