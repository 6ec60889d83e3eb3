"""Work in other processes, for many items whose work is Python, which threads cannot share.

Workers are started as new commands, so nothing of the caller's program is imported again.  This
works from a notebook, and from a script without ``if __name__ == "__main__"``.  Everything that
they receive is sent over a private socket: no key is on a command line, in the environment or in a
file.

    to a worker: sys.path | how the work is opened | (index, item) ...
    back:        True for each thread, the first once the work is open
                 (index, result, None) or (index, None, error) ...
"""

from __future__ import annotations

import pickle
import signal
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from selectors import EVENT_READ, BaseSelector, DefaultSelector
from typing import Any, Final, TypeVar

from secure_bloom.errors import Expired, WorkerLostError
from secure_bloom.running.ordered_pool import in_growing_threads

A = TypeVar("A")
B = TypeVar("B")

#: Enough for all items sent and not read yet, so that sending never waits for a worker.
_SEND_BUFFER: Final = 1 << 18

# Ctrl-C is the caller's to handle.  The socket is moved away from descriptor 0, because programs
# that the work starts would get that one too.
_BOOT: Final = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
import os, sys
try:
    from multiprocessing.connection import Connection
    parent = Connection(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.path[:] = parent.recv()
    from secure_bloom.running import settle_process
    from {module} import serve
except (ImportError, EOFError, OSError):
    sys.exit(1)
settle_process()
serve(parent)
"""


def in_processes(
    open_work: Callable[[], Callable[[A], B]],
    items: Sequence[A],
    processes: int,
    *,
    at_once: int,
    lost: Callable[[A, WorkerLostError], B],
) -> Generator[tuple[int, B], None, None]:
    """Yield the index of each item and the result of its work, in the order of completion.

    ``open_work`` is pickled, and called once in each worker. The work that it returns is called
    from up to ``at_once`` threads, and its errors are raised here.  If a worker dies, ``lost``
    makes the results of the items that it had in progress, and another worker continues.

    Items without a result are left to the caller: all items, if ``open_work`` cannot be pickled or
    opened in another process, or if no process can be started.

    When the caller closes the iterator or is interrupted, workers finish their items in progress
    and begin no other.  When a time limit is over they are killed: only verbs that read have a
    limit.
    """
    try:
        opening = pickle.dumps((open_work, at_once))
        listening = DefaultSelector()
    except Exception:  # whatever the class of a key client raises, or no descriptor is left
        return
    waiting = deque(range(len(items)))
    crew = _Crew(opening=opening, at_once=at_once, waiting=waiting, listening=listening)
    try:
        crew.start(min(processes, len(items)))
        while crew.is_busy:
            crew.feed(items)
            for worker, message in crew.messages():
                if message is not None:
                    index, result, error = message
                    worker.sent.remove(index)
                    if error is not None:
                        raise error
                    yield index, result
                    continue
                for index, error in crew.dismiss(worker):
                    yield index, lost(items[index], error)
    except Expired:
        crew.kill()
        raise
    finally:
        crew.end()


@dataclass(slots=True, eq=False)
class _Worker:
    """One process, and the number of its threads, which is 0 until its work is open.

    ``sent`` are the indexes of the items that it has not answered yet.
    """

    process: subprocess.Popen[bytes]
    connection: Connection
    threads: int = 0
    sent: deque[int] = field(default_factory=deque)

    def send(self, message: object) -> None:
        # If it is dead, a read from it fails.
        with suppress(OSError):
            self.connection.send(message)


@dataclass(slots=True, kw_only=True)
class _Crew:
    """The workers of one call, and the indexes of the items that were not yet sent to any."""

    opening: bytes
    at_once: int
    waiting: deque[int]
    listening: BaseSelector
    workers: list[_Worker] = field(default_factory=list)

    @property
    def is_busy(self) -> bool:
        """Whether results are still to come."""
        return bool(self.workers) and (
            bool(self.waiting) or any(worker.sent for worker in self.workers)
        )

    def start(self, processes: int) -> None:
        """Start ``processes`` workers, or none if the system does not allow it."""
        with suppress(OSError):
            for _ in range(processes):
                worker = _started(self.opening)
                self.workers.append(worker)
                self.listening.register(worker.connection, EVENT_READ, worker)

    def feed(self, items: Sequence[object]) -> None:
        """Send items to the workers that have few, so that workers never wait for the next item."""
        for worker in self.workers:
            while self.waiting and worker.threads and len(worker.sent) < 2 * self.at_once:
                index = self.waiting.popleft()
                worker.sent.append(index)
                worker.send((index, items[index]))

    def messages(self) -> Iterable[tuple[_Worker, Any]]:
        """Return the next message of each worker that has one, and None for a dead worker."""
        for key, _ in self.listening.select():
            worker = key.data
            try:
                message = worker.connection.recv()
            except (EOFError, OSError):
                yield worker, None
                continue
            if message is True:
                worker.threads += 1
            else:
                yield worker, message

    def dismiss(self, worker: _Worker) -> Iterable[tuple[int, WorkerLostError]]:
        """Forget a dead worker. Return the items that it had in progress, each with an error."""
        self.workers.remove(worker)
        self.listening.unregister(worker.connection)
        worker.connection.close()
        code = worker.process.wait()
        # Items are taken in the order in which they were sent.
        begun = [worker.sent.popleft() for _ in range(min(worker.threads, len(worker.sent)))]
        self.waiting.extendleft(reversed(worker.sent))
        # One that could not open its work would not do better a second time.
        if worker.threads and self.waiting:
            self.start(1)
        for index in begun:
            yield index, _lost(code)

    def kill(self) -> None:
        """Kill the workers in the middle of their work."""
        for worker in self.workers:
            worker.process.kill()

    def end(self) -> None:
        """Let the workers end: they finish their items in progress, and the results are dropped."""
        self.listening.close()
        for worker in self.workers:
            worker.connection.close()
        for worker in self.workers:
            worker.process.wait()


def _started(opening: bytes) -> _Worker:
    return _Worker(*start_process(opening, __name__))


def start_process(opening: bytes, module: str) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start a process that calls ``serve`` of a module with a connection, and send ``opening``.

    Raises OSError if the system does not allow it.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        connection = Connection(ours.detach())
        # -P: the folder that the caller is in holds none of Python's modules.  A process group of
        # its own: Ctrl-C on a terminal goes to that of the caller alone.
        command = [sys.executable, "-P", "-c", _BOOT.format(module=module)]
        try:
            process = subprocess.Popen(  # noqa: S603 - our own command
                command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, process_group=0
            )
        except OSError:
            connection.close()
            raise
    # If it is dead, a read from it fails.
    with suppress(OSError):
        connection.send(sys.path)
        connection.send_bytes(opening)
    return process, connection


def _lost(code: int) -> WorkerLostError:
    reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return WorkerLostError(
        f"the process that worked on it has died ({reason}); the file is unchanged, or finished",
        hint="run again; if memory ran out, use --jobs 1",
    )


def serve(parent: Connection) -> None:
    """Run as a worker until the caller closes the connection."""
    try:
        # The caller has opened the same, and has given warnings and errors.
        with warnings.catch_warnings(action="ignore"):
            open_work, at_once = pickle.loads(parent.recv_bytes())  # noqa: S301 - the caller's own
            work = open_work()
    except Exception:
        return
    sending = threading.Lock()

    def send(message: bytes) -> None:
        with sending:
            parent.send_bytes(message)

    answers = in_growing_threads(
        lambda numbered: send(_answer(work, *numbered)),
        iter(parent.recv, None),
        at_once,
        grown=lambda: send(pickle.dumps(True)),
    )
    # An error means that the caller has gone, or was interrupted: nothing more is begun.
    with suppress(EOFError, OSError):
        deque(answers, maxlen=0)


def _answer(work: Callable[[Any], object], index: int, item: object) -> bytes:
    try:
        return pickle.dumps((index, work(item), None))
    except Exception as error:
        # A traceback does not travel with an error, so its text does.
        error.add_note(traceback.format_exc())
        with suppress(Exception):
            return pickle.dumps((index, None, error))
        return pickle.dumps((index, None, RuntimeError(f"unforeseen {type(error).__name__}")))
