"""Work in other processes: real ones, killed, interrupted, and unable to start."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.errors import PolicyError, TimeLimitError, WorkerLostError
from secure_bloom.running.ordered_pool import AT_ONCE
from secure_bloom.running.time_limit import time_limit
from secure_bloom.running.worker_processes import in_processes

#: Far longer than anything here takes: a test that would hang fails.
_PATIENCE = 60.0


def _open(kind: str, folder: str = "") -> Callable[[Any], Any]:
    works: dict[str, Callable[[Any], Any]] = {
        "square": lambda n: (n * n, os.getpid()),
        "fail": _fail,
        "die": functools.partial(_die, Path(folder)),
        "stay": functools.partial(_stay, Path(folder)),
        "wait": functools.partial(_wait, Path(folder)),
        "print": lambda text: print(text),
    }
    return works[kind]


def _fail(n: int) -> int:
    raise PolicyError(f"number {n}", hint="none") from ValueError("inner")


def _die(folder: Path, n: int) -> int:
    """Item 5 kills its process, the first time."""
    (folder / str(n)).touch()
    if n == 5 and not (folder / "killed").exists():
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def _wait(folder: Path, n: int) -> int:
    (folder / f"{n}.begun").touch()
    while not (folder / "go").exists():
        time.sleep(0.005)
    (folder / f"{n}.done").touch()
    return n


def _not_here(n: int) -> Any:
    """What only the worker may do."""
    raise AssertionError(n)


def _no_work() -> Callable[[Any], Any]:
    raise PolicyError("no key here")


def _results(work: Any, items: Any, processes: int = 2) -> dict[int, Any]:
    return dict(
        in_processes(
            work, items, processes, at_once=AT_ONCE, lost=lambda item, error: (item, error)
        )
    )


def test_all_items_are_done_in_other_processes() -> None:
    found = _results(functools.partial(_open, "square"), range(200))
    assert {index: square for index, (square, _) in found.items()} == {i: i * i for i in range(200)}
    pids = {pid for _, pid in found.values()}
    assert len(pids) <= 2
    assert os.getpid() not in pids


def test_no_items_no_results() -> None:
    assert _results(functools.partial(_open, "square"), []) == {}


def test_an_error_of_the_work_is_raised_with_its_hint() -> None:
    with pytest.raises(PolicyError, match="number 7") as caught:
        _results(functools.partial(_open, "fail"), [7])
    assert caught.value.hint == "none"
    assert "_fail" in "".join(caught.value.__notes__)


@pytest.mark.parametrize(
    "opening",
    [lambda: _not_here, _no_work, functools.partial(_open, "no such work")],
    ids=["a lambda", "an error", "an unforeseen error"],
)
def test_what_cannot_be_opened_elsewhere_is_left_to_the_caller(opening: Any) -> None:
    assert _results(opening, [1, 2, 3]) == {}


def test_without_an_interpreter_all_is_left_to_the_caller(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    assert _results(functools.partial(_open, "square"), [1, 2, 3]) == {}


def test_a_killed_worker_costs_what_it_had_under_way(tmp_path: Path) -> None:
    found = _results(functools.partial(_open, "die", str(tmp_path)), range(100), 1)
    lost = {
        i: error for i, result in found.items() if isinstance(result, tuple) for error in result[1:]
    }
    assert sorted(found) == list(range(100))
    assert 5 in lost
    assert len(lost) <= AT_ONCE
    for error in lost.values():
        assert isinstance(error, WorkerLostError)
        assert "SIGKILL" in str(error)


def _begun(folder: Path) -> Iterator[str]:
    return (path.stem for path in folder.glob("*.begun"))


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_when_the_caller_ends_workers_finish_what_is_under_way_and_no_more(tmp_path: Path) -> None:
    results = in_processes(
        functools.partial(_open, "wait", str(tmp_path)),
        range(100),
        1,
        at_once=AT_ONCE,
        lost=lambda *it: it,
    )
    waiting = threading.Thread(target=lambda: [next(results, None)])
    waiting.start()
    _until(lambda: len(list(_begun(tmp_path))) == AT_ONCE)
    (tmp_path / "go").touch()
    waiting.join(_PATIENCE)
    results.close()
    begun = set(_begun(tmp_path))
    assert begun == {path.stem for path in tmp_path.glob("*.done")}
    assert len(begun) < 100


def test_what_work_prints_goes_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    assert _results(functools.partial(_open, "print"), ["a text"]) == {0: None}
    assert capfd.readouterr() == ("", "")


def test_a_time_limit_kills_workers_with_what_they_have_under_way(tmp_path: Path) -> None:
    work = functools.partial(_open, "stay", str(tmp_path))
    threading.Thread(target=_expire_once_begun, args=(tmp_path,)).start()
    with pytest.raises(TimeLimitError), time_limit(_PATIENCE):
        _results(work, range(2))
    pids = [int(path.name) for path in tmp_path.iterdir()]
    assert pids
    assert not [pid for pid in pids if Path("/proc", str(pid)).exists()]


def _stay(folder: Path, _n: int) -> None:
    """Stay in one call of compiled code."""
    (folder / str(os.getpid())).touch()
    sum(range(10**13))


def _expire_once_begun(folder: Path) -> None:
    while not list(folder.iterdir()):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGALRM)
