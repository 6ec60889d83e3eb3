"""Run many jobs in lockstep: the first part of all of them, then the second part, and so on.

    job 1   parse ─┐   get key ─┐   decrypt ─┐
    job 2   parse ─┤   get key ─┤   decrypt ─┤
    job 3   parse ─┘   get key ─┘   decrypt ─┘

That takes half the time of one job after the other, because the code and data of one part stay in
the processor's caches.  A job is a generator that yields between its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

Job: TypeAlias = Generator[None, None, T]

#: Runs of jobs grow by this factor up to this size: small at first, so that results come soon.
_GROWTH, _MOST = 8, 256


@dataclass(slots=True, eq=False)
class JobResult(Generic[T]):
    """The result of a job, or its error."""

    _value: T | None = None
    _error: Exception | None = None

    def result(self) -> T:
        """The value that the job returned; raises what the job raised."""
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # set by now; None only if T has it

    def advance(self, job: Job[T]) -> bool:
        """Run the next part of the job; return whether there are more."""
        try:
            next(job)
        except StopIteration as end:
            self._value = end.value
            return False
        except Exception as error:
            self._error = error
            return False
        return True


def run(job: Job[T]) -> T:
    """Run one job to its end and return its result."""
    while True:
        try:
            next(job)
        except StopIteration as end:
            value: T = end.value
            return value


def in_lockstep(jobs: Iterable[Job[T]]) -> list[JobResult[T]]:
    """The results of the jobs, in their order; a job that fails does not stop the others."""
    begun = [(JobResult[T](), job) for job in jobs]
    active = begun
    while active:
        active = [(outcome, job) for outcome, job in active if outcome.advance(job)]
    return [outcome for outcome, _ in begun]


def growing_runs(count: int, most: Callable[[int], int]) -> Iterator[range]:
    """The ordinals below ``count`` in runs, each longer than the one before.

    ``most`` says how many jobs have room in memory together, from an ordinal on; one always has.
    """
    start, size = 0, 1
    while start < count:
        size = max(1, min(size, most(start)))
        yield range(start, min(start + size, count))
        start, size = start + size, min(_GROWTH * size, _MOST)
