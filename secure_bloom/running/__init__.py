"""Run the work of one call: in threads or other processes, in order, within a time limit.

    ordered_pool       threads; results in the order of the items, memory bounded
    worker_processes   other processes, which get their work over a socket
    limited_process    one file decoded in another process of limited memory
    positioned_stream  a Python stream made from a function that reads at an offset
    parallelism        chooses threads or processes for the files of a run, and loops over the files
    time_limit         how long a verb may take
    first_answer       how long a server may take to answer for the first time
    uninterrupted      what must be cleaned up, whatever signals come

A process that runs this program alone calls ``settle_process`` first and ``end_process`` last.  A
verb calls ``chosen_parallelism`` once, then takes reports from ``each_file`` as files are done:

    parallelism = chosen_parallelism(len(paths), jobs, mean_size=size, at_once=1)
    for index, report in each_file(work, open_work, paths, parallelism, lost=failed):
        reports[index] = report
"""

from __future__ import annotations

import atexit
import codecs
import gc
import io
import os
import select
import sys
from contextlib import suppress
from typing import Any, Final, NoReturn

_OBJECTS: Final = 50_000
_exit_code: int | None = None


def settle_process() -> None:
    """Set up a process that runs only this program. Call it before anything large is imported.

    Most of a short run is its start and end.
    """
    _open_closed_streams()
    _settle_streams()
    # Imports make many objects and no garbage; to look for some takes a tenth of their time.
    gc.set_threshold(_OBJECTS, 10, 10)
    # At the end the interpreter would look for garbage among all that was imported.
    atexit.register(gc.freeze)
    # What is registered first is called last, when nothing of Python's own is left to do.
    atexit.register(_leave)
    # numpy's library of linear algebra, which nothing here calls, starts a thread for each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def end_process(code: int) -> NoReturn:
    """End a settled process with this exit code, without waiting for the threads of libraries.

    pyarrow's threads free Python objects after they have returned their result. If the
    interpreter ends meanwhile, Python ends the thread inside C++ code, which then aborts the
    process.
    """
    global _exit_code
    _exit_code = code
    sys.exit(code)


def _leave() -> None:
    if _exit_code is not None:
        for stream in (sys.stdout, sys.stderr):
            # A reader that is gone was reported before.
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(_exit_code)


def _open_closed_streams() -> None:
    """Open the null device in place of standard streams that the caller has closed."""
    # The lowest free number is taken, so in this order each stream gets its own.  Left free, it
    # would go to the next file that is opened, and what libraries print would be written into that.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            stream = os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace")
            setattr(sys, name, stream)


class _Output(io.FileIO):
    """A standard stream. A write waits until the reader has room.

    Another program may have set the pipe or the terminal to non-blocking mode (O_NONBLOCK).
    """

    def write(self, data: Any, /) -> int:
        while (written := super().write(data)) is None:
            select.select([], [self], [])
        return written


class _Messages(_Output):
    """Standard error. Writes to it never fail: no run ends because nobody reads its notes.

    A full disk, a reader that went away and a terminal that was closed lose the text.
    """

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _settle_streams() -> None:
    for name, kind in (("stdout", _Output), ("stderr", _Messages)):
        stream = getattr(sys, name)
        # What replaced the stream has its own rules.
        if stream is not getattr(sys, f"__{name}__"):
            continue
        # No report is lost by a name with letters that the terminal's encoding lacks.
        is_utf8 = codecs.lookup(stream.encoding).name == "utf-8"
        errors = stream.errors if is_utf8 else "backslashreplace"
        stream.reconfigure(errors=errors)
        # Windows writes to consoles in another way.
        if os.name == "posix":
            new = io.TextIOWrapper(
                io.BufferedWriter(kind(stream.fileno(), "w", closefd=False)),
                encoding=stream.encoding,
                errors=errors,
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            setattr(sys, name, new)
