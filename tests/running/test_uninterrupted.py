"""What must not be left half-done ends before Ctrl-C or a time limit is raised."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextvars import ContextVar

import pytest

import secure_bloom as sb
from secure_bloom.errors import TimeLimitError
from secure_bloom.running.uninterrupted import uninterrupted


def test_it_ends_although_ctrl_c_is_pressed_again_and_again() -> None:
    done: list[str] = []

    def work() -> None:
        for _ in range(5):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.03)
        done.append("all")

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)
    assert done == ["all"]


def test_it_ends_before_a_time_limit_is_told_of() -> None:
    done: list[str] = []

    def work() -> None:
        time.sleep(0.3)
        done.append("all")

    with pytest.raises(TimeLimitError), sb.time_limit(0.05):
        uninterrupted(work)
    assert done == ["all"]


def test_its_own_error_is_raised_and_it_runs_in_the_context_of_the_call() -> None:
    right: ContextVar[str] = ContextVar("right", default="none")
    right.set("of the call")
    seen: list[object] = []

    def work() -> None:
        seen.extend((right.get(), threading.current_thread() is threading.main_thread()))
        raise ValueError("of the work")

    with pytest.raises(ValueError, match="of the work"):
        uninterrupted(work)
    assert seen == ["of the call", False]
