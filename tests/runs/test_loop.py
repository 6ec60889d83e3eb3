"""The loop of a run: list, check, process, publish, report, for any work and any target."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.runs.loop import Done, run
from secure_bloom.runs.progress import Meter
from secure_bloom.runs.runner import LocalRunner
from secure_bloom.runs.target import TableCommit
from secure_bloom.runs.work import FileReport, FileTask, Steps, new_sizes


@dataclass(frozen=True)
class Report:
    path: str
    status: str = "done"
    bytes_after: int | None = 7

    @property
    def changes(self) -> bool:
        return self.status == "done"


@dataclass
class Told:
    """What happened in a run, in order."""

    events: list[str] = field(default_factory=list)


@dataclass
class Counting:
    """A work of two steps a file that fails for files called ``bad``."""

    told: Told
    estimate: int | None = 2
    error: SecureBloomError | None = None
    writes_nothing: bool = False
    asks_for_each_key: bool = False

    def check(self, files: Sequence[str]) -> int | None:
        self.told.events.append(f"check {' '.join(files)}")
        if self.error is not None:
            raise self.error
        return self.estimate

    def in_threads(self, threads: int) -> Counting:
        return self

    def prefetch(self, targets: Mapping[str, str | None]) -> KeyPrefetch:
        return KeyPrefetch(KeyResolver(None))

    def process(self, task: FileTask, steps: Steps) -> Report:
        if task.path == "stop":
            raise KeyboardInterrupt
        for _ in steps(str, ["a", "b"]):
            pass
        self.told.events.append(f"process {task.path} to {task.target}")
        return Report(task.path, "failed" if task.path == "bad" else "done")

    def steps_of(self, report: Report) -> int:
        return 1 if self.estimate is None else 2

    @staticmethod
    def failed(task: FileTask, error: SecureBloomError) -> Report:
        return Report(task.path, "failed")


@dataclass
class InBatches:
    """A target that publishes after every few files."""

    told: Told
    files: Sequence[str]
    step: int = 2
    commits: Sequence[TableCommit] = ()
    notes: list[str] = field(default_factory=list)

    def listed(self) -> Sequence[str]:
        self.told.events.append("list")
        return self.files

    @contextmanager
    def publishing(self, *, dry_run: bool) -> Iterator[Any]:
        try:
            yield _Published(self)
        except BaseException:
            self.told.events.append("give up")
            raise
        self.notes.append("at the end")

    def gone(self, publication: Any, reports: Iterable[FileReport]) -> frozenset[str]:
        return frozenset({report.path for report in reports if report.path == "bad"})


@dataclass
class _Published:
    target: InBatches
    commits: Sequence[TableCommit] = ()
    gone: Sequence[str] = ()

    @property
    def notes(self) -> Sequence[str]:
        return self.target.notes

    def batches(self) -> Iterator[Sequence[FileTask]]:
        files, step = self.target.files, self.target.step
        for start in range(0, len(files), step):
            yield [FileTask(path, f"new {path}") for path in files[start : start + step]]

    def publish(self, reports: Sequence[Report]) -> None:
        self.target.told.events.append(f"publish {new_sizes(reports)}")


def done(work: Counting, target: InBatches, seen: list[tuple[int, int]]) -> Done[Report]:
    return run(lambda: work, target, LocalRunner(jobs=1), lambda *now: seen.append(now))


def test_each_batch_is_published_before_the_next_one_begins() -> None:
    told, seen = Told(), list[tuple[int, int]]()
    found = done(Counting(told), InBatches(told, ["x", "bad", "y"]), seen)
    assert told.events == [
        "list",
        "check x bad y",
        "process x to new x",
        "process bad to new bad",
        "publish {'x': 7, 'bad': None}",
        "process y to new y",
        "publish {'y': 7}",
    ]
    assert [report.path for report in found.reports] == ["x", "bad", "y"]
    assert found.changed == ["new x", "new y"]
    assert (found.gone, found.notes) == ({"bad"}, ("at the end",))
    # All files of the run, not those of a batch.
    assert list(dict.fromkeys(seen)) == [(count, 6) for count in range(7)]


def test_files_that_are_one_step_each_are_counted_when_they_are_done() -> None:
    told, seen = Told(), list[tuple[int, int]]()
    meter = Meter(lambda *now: seen.append(now), 3, None)
    for path in ("a", "b", "c"):
        meter.finish(FileTask(path), 1)
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert told.events == []


def test_an_error_of_the_request_comes_before_anything_is_processed() -> None:
    told = Told()
    with pytest.raises(PolicyError, match="no such column"):
        done(Counting(told, error=PolicyError("no such column")), InBatches(told, ["x"]), [])
    assert told.events == ["list", "check x"]


def test_an_interrupt_gives_up_what_is_not_published() -> None:
    told = Told()
    with pytest.raises(KeyboardInterrupt):
        done(Counting(told), InBatches(told, ["x", "stop", "y"], step=1), [])
    assert told.events[-2:] == ["publish {'x': 7}", "give up"]


class _Interrupted(InBatches):
    """A target whose commit is interrupted as by Ctrl-C."""

    @contextmanager
    def publishing(self, *, dry_run: bool) -> Iterator[Any]:
        with super().publishing(dry_run=dry_run) as published:

            def publish(reports: Sequence[Report], real: Any = published.publish) -> None:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.1)
                real(reports)

            published.publish = publish
            yield published


def test_a_commit_that_was_begun_is_finished_before_an_interrupt_ends_the_run() -> None:
    told = Told()
    with pytest.raises(KeyboardInterrupt):
        done(Counting(told), _Interrupted(told, ["x", "y"], step=1), [])
    assert told.events[-2:] == ["publish {'x': 7}", "give up"]


def test_files_that_failed_are_told_from_those_that_stay() -> None:
    reports = [Report("a"), Report("b", "failed"), Report("c", "unchanged")]
    assert new_sizes(reports) == {"a": 7, "b": None}
