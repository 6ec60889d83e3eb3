"""Calls that are repeated, bounded and given up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from secure_bloom.encryption.kms import calls
from secure_bloom.encryption.kms.calls import Calls, TransientFailureError, is_this_machine
from secure_bloom.errors import KeyUnavailableError, KmsUnavailableError


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(calls, "time", clock)
    return clock


def failing(*failures: TransientFailureError) -> Callable[[], str]:
    left = list(failures)

    def call() -> str:
        if left:
            raise left.pop(0)
        return "answer"

    return call


def throttled(pause: float | None = None) -> TransientFailureError:
    return TransientFailureError("HTTP 429", pause=pause)


def test_pauses_grow_and_are_never_the_same(clock: Clock) -> None:
    for _ in range(2):
        assert Calls("KMS").run(failing(*(throttled() for _ in range(8)))) == "answer"
    first, second = clock.pauses[:8], clock.pauses[8:]
    assert first != second
    assert first[-1] > 10 * first[0]
    assert max(clock.pauses) <= 5


def test_the_pause_that_the_kms_wants_is_the_least(clock: Clock) -> None:
    Calls("KMS").run(failing(throttled(7)))
    assert 7 < clock.pauses[0] < 8


def test_it_gives_up_and_then_fails_at_once_for_a_while(clock: Clock) -> None:
    waiting = Calls("KMS at home", retry_seconds=30)
    with pytest.raises(KmsUnavailableError, match="KMS at home is not available: HTTP 429"):
        waiting.run(failing(*(throttled() for _ in range(1000))))
    assert 20 < sum(clock.pauses) <= 30
    asked: list[int] = []
    with pytest.raises(KmsUnavailableError):
        waiting.run(lambda: asked.append(1))
    assert asked == []
    clock.now += 11
    assert waiting.run(failing()) == "answer"
    assert waiting.run(failing()) == "answer"


def test_a_kms_that_never_answered_is_not_waited_for_long(clock: Clock) -> None:
    silent = [TransientFailureError("refused", answered=False) for _ in range(2000)]
    with pytest.raises(KmsUnavailableError):
        Calls("KMS").run(failing(*silent))
    assert sum(clock.pauses) <= 3
    known = Calls("KMS")
    known.run(failing())
    clock.pauses.clear()
    with pytest.raises(KmsUnavailableError):
        known.run(failing(*silent))
    assert sum(clock.pauses) > 20


def test_other_errors_are_not_repeated(clock: Clock) -> None:
    def refuse() -> None:
        raise KeyUnavailableError("no")

    with pytest.raises(KeyUnavailableError):
        Calls("KMS").run(refuse)
    assert clock.pauses == []


def test_calls_at_a_time_are_bounded() -> None:
    lock, now, most = threading.Lock(), 0, 0
    bounded = Calls("KMS", at_once=3)

    def call() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.005)
        with lock:
            now -= 1

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(lambda _: bounded.run(call), range(60)))
    assert most == 3


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("10.0.0.1", False),
        ("127.0.0.1.example.com", False),
        ("localhost.example.com", False),
        ("", False),
    ],
)
def test_what_this_machine_is(host: str, here: bool) -> None:
    assert is_this_machine(host) is here
