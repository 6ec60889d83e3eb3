"""A campaign in pieces, each tried in one of as many processes as there are cores.

    tally = in_pieces("integrity", pieces, work, quick=effort.quick)

Workers are forks: they have what was made before, files and keys and parsed footers, and imported
modules, and nothing is pickled on the way to them.  How far the campaign is goes to stderr.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

P = TypeVar("P")

PROCESSES: Final = len(os.sched_getaffinity(0))
#: Seconds between two lines of progress.
_SECONDS: Final = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What pieces came to: trials, failures, and other things that were counted."""

    trials: int = 0
    failures: tuple[str, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            trials=self.trials + other.trials,
            failures=self.failures + other.failures,
            counts=self.counts + other.counts,
        )

    def json(self) -> str:
        """Return the tally as one line, for a process that reads it."""
        return json.dumps([self.trials, self.failures, self.counts])

    @classmethod
    def parse(cls, text: str) -> Tally:
        """Return the tally of :meth:`json`."""
        trials, failures, counts = json.loads(text)
        return cls(trials=trials, failures=tuple(failures), counts=Counter(counts))

    def counted(self) -> str:
        """Return what was counted, as words."""
        return ", ".join(f"{count:,} {name}" for name, count in sorted(self.counts.items()))


def in_pieces(
    campaign: str, pieces: Sequence[P], work: Callable[[P], Tally], *, quick: bool
) -> Tally:
    """Return what all pieces came to together. A quick run tries them in this process."""
    progress = Progress(campaign, of=len(pieces))
    total = Tally()
    for found in map(work, pieces) if quick else _in_processes(pieces, work):
        total += found
        progress.add(found.trials, len(found.failures))
    return total


class Progress:
    """Lines on stderr that say how far a campaign is, not too many."""

    def __init__(self, campaign: str, of: int) -> None:
        self._campaign, self._of = campaign, of
        self._pieces = self._trials = self._failures = 0
        self._started = self._last = time.monotonic()

    def add(self, trials: int, failures: int) -> None:
        """Count one piece."""
        self._pieces += 1
        self._trials += trials
        self._failures += failures
        now = time.monotonic()
        if now - self._last < _SECONDS:
            return
        self._last = now
        print(
            f"{self._campaign}: {self._pieces:,} of {self._of:,} pieces, {self._trials:,} trials, "
            f"{self._failures:,} failures, {now - self._started:.0f} s",
            file=sys.stderr,
            flush=True,
        )


def _in_processes(pieces: Sequence[P], work: Callable[[P], Tally]) -> Iterator[Tally]:
    """Yield what each piece came to, in the order in which they end."""
    with ProcessPoolExecutor(
        PROCESSES, multiprocessing.get_context("fork"), _Worker.take, (work, pieces)
    ) as executor:
        try:
            running = [executor.submit(_Worker.run, number) for number in range(len(pieces))]
            for done in as_completed(running):
                yield done.result()
        except BaseException:
            executor.shutdown(cancel_futures=True)
            raise


class _Worker:
    """What a worker process works on, which it has by its fork."""

    work: Callable[[Any], Tally]
    pieces: Sequence[Any]

    @classmethod
    def take(cls, work: Callable[[Any], Tally], pieces: Sequence[Any]) -> None:
        cls.work, cls.pieces = staticmethod(work), pieces

    @classmethod
    def run(cls, number: int) -> Tally:
        return cls.work(cls.pieces[number])
