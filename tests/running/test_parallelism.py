"""How files are shared: processes for many small ones, threads for few, large or remote ones."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.running import parallelism as parallelism_module
from secure_bloom.running.ordered_pool import AT_ONCE
from secure_bloom.running.parallelism import Parallelism, chosen_parallelism, each_file
from secure_bloom.storage.paths import files_at_once, mean_size


def _files(folder: Path, count: int, size: int = 10) -> list[str]:
    paths = [folder / f"{i:04}" for i in range(count)]
    for path in paths:
        with path.open("wb") as file:
            file.truncate(size)
    return [str(path) for path in paths]


def _chosen(paths: list[str], jobs: int | None) -> Parallelism:
    size, at_once = mean_size(paths), files_at_once(paths)
    return chosen_parallelism(len(paths), jobs, mean_size=size, at_once=at_once)


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)


@pytest.mark.usefixtures("four_cores")
@pytest.mark.parametrize(
    ("count", "jobs", "processes", "threads"),
    [
        (1, None, 1, 4),
        (255, None, 1, 4),
        (256, None, 2, 4),
        (2000, None, 4, 4),
        (2000, 1, 1, 1),
        (2000, 3, 3, 3),
        (3, 2, 1, 2),
        (4, 2, 2, 2),
    ],
)
def test_many_small_files_go_to_processes(
    tmp_path: Path, count: int, jobs: int | None, processes: int, threads: int
) -> None:
    chosen = _chosen(_files(tmp_path, count, size=1024 * 1024), jobs)
    begins_here = jobs is None and processes > 1
    every = Parallelism(
        processes=processes, threads=threads, files=AT_ONCE, begins_here=begins_here
    )
    assert chosen == every
    # Tiny ones go to as many processes, and a single thread of each computes.
    chosen = _chosen(_files(tmp_path, count), jobs)
    assert chosen == replace(every, threads=1)


def test_no_files_are_done_by_one_process(tmp_path: Path) -> None:
    assert _chosen(_files(tmp_path, 0), 2).processes == 1


@pytest.mark.parametrize("jobs", [None, 2])
def test_large_files_and_objects_go_to_threads(tmp_path: Path, jobs: int | None) -> None:
    large = _files(tmp_path, 300, size=64 * 1024 * 1024)
    objects = [f"s3://bucket/{i}" for i in range(300)]
    for chosen in (_chosen(paths, jobs) for paths in (large, objects)):
        assert chosen.processes == 1
    assert _chosen(large, jobs).files == _chosen(large, jobs).threads


@pytest.mark.parametrize("jobs", [0, -1])
def test_no_job_at_all_is_an_error(jobs: int) -> None:
    with pytest.raises(PolicyError, match=f"jobs is {jobs}"):
        _chosen([], jobs)


def _pid_of_worker() -> Callable[[str], int]:
    return lambda _: os.getpid()


def _pids(open_work: Callable[[], Callable[[str], int]]) -> dict[int, int]:
    parallelism = Parallelism(processes=2, threads=2, files=2)
    files = [str(i) for i in range(20)]
    return dict(each_file(lambda _: os.getpid(), open_work, files, parallelism, lost=lambda *_: 0))


def test_files_are_done_in_other_processes_or_here_where_that_cannot_be() -> None:
    elsewhere = _pids(functools.partial(_pid_of_worker))
    assert sorted(elsewhere) == list(range(20))
    assert os.getpid() not in elsewhere.values()
    here = _pids(lambda: _pid_of_worker())
    assert sorted(here) == list(range(20))
    assert set(here.values()) == {os.getpid()}


def _pids_after_a_trial(count: int) -> list[int]:
    parallelism = Parallelism(processes=2, threads=1, files=2, begins_here=True)
    done = each_file(
        lambda _: os.getpid(),
        functools.partial(_pid_of_worker),
        [str(i) for i in range(count)],
        parallelism,
        lost=lambda *_: 0,
    )
    found = dict(done)
    assert sorted(found) == list(range(count))
    return [found[index] for index in range(count)]


def test_work_that_takes_little_starts_no_process() -> None:
    assert set(_pids_after_a_trial(500)) == {os.getpid()}


def test_work_that_takes_long_goes_on_in_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallelism_module, "_TRIAL", 0.0)
    monkeypatch.setattr(parallelism_module, "_WORTH", 0.0)
    pids = _pids_after_a_trial(20)
    # The first file is begun before there is anything to estimate from.
    assert [pid == os.getpid() for pid in pids] == [True] + [False] * 19
