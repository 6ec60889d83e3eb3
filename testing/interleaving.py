"""Runs at the same time, one step at a time: the seed decides whose turn it is.

    run A   | ... | link |         | exchange | ...
    run B   | ... |      | flock   |          | ...

Each run is a thread that stops before each *step*, a call that others may see or that sees others.
Only one thread works at a time, so a round is the same each time that it is played.  A killed run
ends at a step, and none of its cleaning up is done: its calls fail, and its locks are released.
"""

from __future__ import annotations

import functools
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from secure_bloom.runs.progress import Meter
from secure_bloom.runs.runner import LocalRunner
from secure_bloom.runs.work import FileTask, OpenWork, R, Work

#: No trial takes a second where all is well.
HANG_SECONDS = 30
#: A run keeps its turn for another step with this probability.
_AGAIN = 0.6
#: A run that has ended by so many steps waits for no lock.
_PATIENCE = 200


class HangError(BaseException):
    """Nobody catches it on the way, as one would an OSError or an Exception."""


class KilledError(BaseException):
    """Nobody catches it on the way, as one would an OSError or an Exception."""


class Run(threading.Thread):
    """One run, which works when it is told to."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self.turn = threading.Semaphore(0)
        self.back = threading.Semaphore(0)
        #: The number of steps that are left until it is killed; None for never.
        self.life: int | None = None
        self.answer: Any = None
        self.error: BaseException | None = None
        self.steps: list[str] = []
        #: Descriptors that the run has open.
        self.open: set[int] = set()

    def run(self) -> None:
        """Work, from the first turn on."""
        self.turn.acquire()
        try:
            self.answer = self._work()
        except BaseException as error:
            self.error = error
        finally:
            # The kernel closes what a killed process has open, and so releases its locks.
            for fd in set(self.open):
                os.close(fd)
            self.back.release()

    def step(self, name: str) -> None:
        """Let others work; KilledError from the step on at which it is killed."""
        if self.life is not None:
            if self.life <= 0:
                raise KilledError
            self.life -= 1
        self.steps.append(name)
        self.back.release()
        self.turn.acquire()

    def go_on(self) -> bool:
        """Work until the next step; whether there is one."""
        self.turn.release()
        if not self.back.acquire(timeout=HANG_SECONDS):
            raise HangError(f"a run hangs after {self.steps[-3:]}")
        return self.answer is None and self.error is None


@dataclass(frozen=True)
class Beside:
    """The runner of this machine; others work once, between our look at a table and our commit."""

    others: list[Callable[[], object]]

    def process(
        self, work: Work[R], open_work: OpenWork[R], tasks: Sequence[FileTask], meter: Meter
    ) -> dict[str, R]:
        """Return the results, after the others have worked."""
        results = LocalRunner(jobs=1).process(work, open_work, tasks, meter)
        while self.others:
            self.others.pop()()
        return results


def play(
    works: Sequence[Callable[[], Any]], chance: random.Random, lives: Sequence[int | None]
) -> list[Run]:
    """Play the runs until each has ended; ``lives`` are the steps after which they are killed."""
    runs = [Run(work) for work in works]
    for run, life in zip(runs, lives, strict=True):
        run.life = life
        run.start()
    waiting = list(runs)
    while waiting:
        run = chance.choice(waiting)
        while (is_waiting := run.go_on()) and chance.random() < _AGAIN:
            pass
        if not is_waiting:
            run.join()
            waiting.remove(run)
    return runs


def play_inside(outer: Callable[[], Any], inner: Callable[[], Any], at: int) -> list[Run]:
    """Pause ``outer`` after so many steps, until ``inner`` has ended or waits for a lock."""
    runs = [Run(work) for work in (outer, inner)]
    for run in runs:
        run.start()
    is_waiting = [True, True]
    for number, steps in ((0, at), (1, _PATIENCE), (0, sys.maxsize), (1, sys.maxsize)):
        while is_waiting[number] and steps:
            is_waiting[number] = runs[number].go_on()
            steps -= 1
    return runs


@contextmanager
def steps_at(calls: Sequence[tuple[Any, str]]) -> Iterator[None]:
    """Make each call, an attribute of a module or a class, a step of the run that makes it."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(threading.Thread, "start", _start))
        stack.enter_context(mock.patch.object(os, "open", _open))
        stack.enter_context(mock.patch.object(os, "close", _close))
        for home, name in calls:
            stack.enter_context(mock.patch.object(home, name, _stepped(home, name)))
        yield


def _stepped(home: Any, name: str) -> Callable[..., Any]:
    call = getattr(home, name)

    @functools.wraps(call)
    def stepped(*arguments: Any, **options: Any) -> Any:
        run = _run_of(threading.current_thread())
        if run is not None:
            run.step(name)
        return call(*arguments, **options)

    return stepped


def _run_of(thread: threading.Thread) -> Run | None:
    """The run that a thread works for; None for other threads."""
    return thread if isinstance(thread, Run) else getattr(thread, "run_of_campaign", None)


def _start(thread: threading.Thread) -> None:
    """Start a thread, which works for the run that starts it."""
    thread.run_of_campaign = _run_of(threading.current_thread())  # type: ignore[attr-defined]
    _START(thread)


def _open(*arguments: Any, **options: Any) -> int:
    fd = _OPEN(*arguments, **options)
    run = _run_of(threading.current_thread())
    if run is not None:
        run.open.add(fd)
    return fd


def _close(fd: int) -> None:
    run = _run_of(threading.current_thread())
    if run is not None:
        run.open.discard(fd)
    _CLOSE(fd)


_START, _OPEN, _CLOSE = threading.Thread.start, os.open, os.close
