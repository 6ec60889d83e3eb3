"""Wait for the first answer of a server: say so after 3 seconds, and give up before 30.

    answered(server, ask)     ask(), watched until the server has answered once in this process
    watched(server, ask)      ask(), watched each time

SDKs repeat requests to a server that is silent for minutes, and their calls into compiled code
cannot be interrupted.  So the call runs in a thread of its own, which is left behind if it does not
end.  Once a server has answered, the limits of its SDK are enough, and its calls cost no thread.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

#: Seconds after which the wait is reported, and after which it ends.
SAY_SECONDS: Final = 3.0
GIVE_UP_SECONDS: Final = 20.0
#: A server that did not answer is not asked again for this time: a run has many files.
_REST_SECONDS: Final = 60.0

_answered: Final = set[str]()
#: Server -> the time until which it is not asked.
_silent: Final = dict[str, float]()


class WaitingWarning(UserWarning):
    """A server takes long to answer."""


class NoAnswerError(Exception):
    """The server did not answer. Its caller raises an error of this package in its place."""


def answered(server: str, ask: Callable[[], T]) -> T:
    """Return ``ask()``. Raises NoAnswerError if the server's first answer does not come in time.

    ``server`` names the server for people, without secrets.  What ``ask`` raises is raised.
    """
    if server in _answered:
        return ask()
    answer = watched(server, ask)
    _answered.add(server)
    return answer


def has_answered(server: str) -> bool:
    """Return whether the server has answered in this process."""
    return server in _answered


def watched(server: str, ask: Callable[[], T]) -> T:
    """Return ``ask()``. Raises NoAnswerError if it takes too long, whatever was answered before."""
    if time.monotonic() < _silent.get(server, 0.0):
        raise NoAnswerError
    found: list[T] = []
    failed: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            found.append(ask())
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    # A daemon: the end of the program does not wait for it.
    threading.Thread(target=run, daemon=True, name="secure-bloom-first-answer").start()
    if not done.wait(SAY_SECONDS):
        warnings.warn(f"waiting for an answer of {server}", WaitingWarning, stacklevel=2)
        if not done.wait(GIVE_UP_SECONDS - SAY_SECONDS):
            _silent[server] = time.monotonic() + _REST_SECONDS
            raise NoAnswerError
    if failed:
        raise failed[0]
    return found[0]


def left_threads() -> bool:
    """Return whether a thread still waits for a server that did not answer in time."""
    return bool(_silent)
