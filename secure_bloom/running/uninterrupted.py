"""Do what must not be left half-done, whatever signals come: a commit, the end of a run."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable

from secure_bloom.errors import Expired


def uninterrupted(work: Callable[[], None]) -> None:
    """Run ``work`` to its end in a thread, which no signal reaches. Raise its error here.

    What a signal raises meanwhile, by Ctrl-C or a time limit, is raised when the work has ended.
    """
    ended = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    interrupts: list[BaseException] = []
    # Rights to a store count in the context of their call.
    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,))
    try:
        thread.start()
    except (KeyboardInterrupt, Expired) as error:
        # Only the wait for its start was interrupted.
        interrupts.append(error)
    # An event, and no join: Python takes a thread for dead when a join is interrupted.
    while not ended.is_set():
        try:
            ended.wait()
        except (KeyboardInterrupt, Expired) as error:
            interrupts.append(error)
    for reason in (*interrupts, *failed):
        raise reason
