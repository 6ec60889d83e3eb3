"""Time limits: a soft limit in a program, by a signal; a hard one for the command line, by a fork.

    with time_limit(30):
        read_table(...)                 TimeLimitError after 30 seconds

Python delivers a signal between two of its own instructions.  A long call of compiled code delays
it, so the command line forks: the child works under the soft limit, and the parent kills it, with
all processes that it started, if it does not end by itself.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.errors import Expired, PolicyError, TimeLimitError

#: The seconds that a process has to end by itself after its limit.
GRACE = 1.0
#: An exception is lost if it is raised in a destructor, so the signal comes again.
_AGAIN = 5.0
#: The longest limit: a year.
_LONGEST = 366 * 86_400.0
#: The signals that end a program, and that of a child that has ended.
_AWAITED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


@checked_arguments
def time_limit(seconds: float) -> AbstractContextManager[None]:
    """Raise :class:`TimeLimitError` in the block once it has run for ``seconds``.

    A call of compiled code ends before the error is raised.

    Args:
        seconds: How long the block may run.

    Returns:
        A context manager.

    Raises:
        PolicyError: The caller is not in the main thread, where Python handles signals (SIGALRM).

    Example:
        >>> with sb.time_limit(30):
        ...     sb.read_table("plain/", columns=["email"]).num_columns
        1
    """
    return _limited(checked_limit(seconds))


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        raise PolicyError(
            "a time limit works in the main thread alone",
            hint="call it there, or run secure-bloom --timeout SECONDS as a process",
        )
    is_over = False

    def expire(_signal: int, _frame: FrameType | None) -> None:
        nonlocal is_over
        is_over = True
        raise Expired

    handler, began = signal.signal(signal.SIGALRM, expire), time.monotonic()
    outer, interval = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    if 0 < outer < seconds:
        signal.setitimer(signal.ITIMER_REAL, outer, _AGAIN)
    try:
        yield
    except BaseException:
        # Whatever code on the way has made of the exception.
        if not is_over:
            raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if outer:
            left = max(outer - (time.monotonic() - began), 0.001)
            signal.setitimer(signal.ITIMER_REAL, left, interval)
    if is_over:
        raise limit_error(seconds)


def checked_limit(seconds: float) -> float:
    """Return the limit. Raises PolicyError for an invalid one."""
    if not (math.isfinite(seconds) and 0 < seconds <= _LONGEST):
        raise PolicyError(
            f"the time limit is {seconds:g} s, wanted more than 0 and at most {_LONGEST:g}",
            hint="write for example --timeout 30",
        )
    return seconds


def limit_error(seconds: float) -> TimeLimitError:
    """Return the error for work that took longer than ``seconds``."""
    return TimeLimitError(
        f"the time limit of {seconds:g} s is over",
        hint="allow more by --timeout SECONDS, or look at fewer files",
    )


def supervise(seconds: float) -> int | None:
    """Fork. Return None in the child, which does the work, and the child's exit code in the parent.

    Raises TimeLimitError in the parent if the child runs longer than ``seconds`` and a grace
    period. By then the child and the processes that it started are killed.  Also returns None,
    without a fork, on a system that cannot wait for signals.
    """
    if not hasattr(signal, "sigtimedwait"):
        return None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return None
    deadline = time.monotonic() + seconds + GRACE
    while True:
        got = signal.sigtimedwait(_AWAITED, max(0.0, deadline - time.monotonic()))
        if got is None:
            # Stopped first, it starts no more of them.
            os.kill(child, signal.SIGSTOP)
            for process in (*_descendants(child), child):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            os.waitpid(child, 0)
            raise limit_error(seconds)
        if got.si_signo != signal.SIGCHLD:
            # A terminal sends its signals to the child as well: those of the kernel have codes > 0.
            if got.si_code <= 0:
                os.kill(child, got.si_signo)
            continue
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _descendants(root: int) -> list[int]:
    """Return the processes below ``root``, by the parents that /proc lists."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        # A process may end meanwhile.
        with contextlib.suppress(OSError):
            # pid (name) state parent ...: the name may hold anything.
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found, pending = list[int](), [root]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found
