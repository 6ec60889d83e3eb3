"""A limit of time ends Python, compiled code and processes, and leaves other timers alone."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError, TimeLimitError
from secure_bloom.running.time_limit import supervise, time_limit

_PATIENCE = 60.0


def _spin() -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        pass


def test_work_ends_with_an_error_that_names_the_limit() -> None:
    with (
        pytest.raises(TimeLimitError, match=r"the time limit of 0\.05 s is over"),
        time_limit(0.05),
    ):
        _spin()


def test_code_that_takes_every_exception_for_a_failed_file_does_not_take_this_one() -> None:
    with pytest.raises(TimeLimitError), time_limit(0.05), contextlib.suppress(Exception):
        _spin()


def test_an_error_that_the_limit_caused_is_the_limit() -> None:
    def work() -> None:
        try:
            _spin()
        except BaseException as error:
            raise ValueError from error

    with pytest.raises(TimeLimitError), time_limit(0.05):
        work()


def test_work_in_time_keeps_its_result_and_its_errors() -> None:
    with time_limit(_PATIENCE):
        found = 5
    assert found == 5
    with pytest.raises(KeyError), time_limit(_PATIENCE):
        raise KeyError
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_timer_of_the_caller_goes_on() -> None:
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        with time_limit(2000):
            assert signal.getitimer(signal.ITIMER_REAL)[0] <= 1000
        assert 900 < signal.getitimer(signal.ITIMER_REAL)[0] <= 1000
        assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e12])
def test_what_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(PolicyError, match="wanted more than 0"), time_limit(seconds):
        pass


def test_another_thread_has_no_limit() -> None:
    found: list[Exception] = []

    def work() -> None:
        try:
            with time_limit(1):
                pass
        except PolicyError as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "main thread" in str(found[0])


def _supervised(seconds: float, folder: Path, work: str) -> str:
    """Supervise in a process of its own, whose child would else go on with this test."""
    out = folder / "out"
    process = os.fork()
    if process == 0:
        os.setpgid(0, 0)
        try:
            code = supervise(seconds)
            if code is None:
                exec(work, {"folder": folder})
                os._exit(7)
            out.write_text(str(code))
        except TimeLimitError as error:
            out.write_text(str(error))
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    return out.read_text()


def test_the_exit_code_of_a_child_is_its_own(tmp_path: Path) -> None:
    assert _supervised(_PATIENCE, tmp_path, "") == "7"
    assert _supervised(_PATIENCE, tmp_path, "import os; os.kill(os.getpid(), 9)") == "137"


def test_compiled_code_and_the_processes_of_a_child_are_killed(tmp_path: Path) -> None:
    # sum() of a range holds Python's lock and looks at no signal.
    work = """
import os, subprocess
command = ["sh", "-c", "sleep 600 & echo $!; wait"]
child = subprocess.Popen(command, stdout=-1, process_group=0)
pids = f"{os.getpid()} {child.pid} {int(child.stdout.readline())}"
(folder / "pids").write_text(pids)
sum(range(10**13))
"""
    # The grace comes on top: enough for a shell to start.
    assert "the time limit of 2 s is over" in _supervised(2, tmp_path, work)
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 3
    assert not [pid for pid in pids if _is_running(pid)]


def _is_running(pid: str) -> bool:
    """Whether the process runs; a dead one that nobody waited for does not."""
    stat = Path("/proc", pid, "stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
