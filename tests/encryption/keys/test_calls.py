"""Calls to a KMS are repeated for a while, then given up for all that come after."""

from __future__ import annotations

import time

import pytest

from secure_bloom.encryption.keys.calls import Calls, TransientFailureError, is_this_machine
from secure_bloom.errors import KmsUnavailableError


def test_a_call_that_fails_for_a_moment_is_repeated() -> None:
    failures = iter(["throttled", "throttled"])

    def call() -> str:
        for reason in failures:
            raise TransientFailureError(reason)
        return "key"

    assert Calls("the KMS").run(call) == "key"


def test_what_goes_on_failing_is_given_up_and_later_calls_are_not_made() -> None:
    made = []

    def call() -> None:
        made.append(None)
        raise TransientFailureError("no connection")

    calls = Calls("the KMS at home", retry_seconds=0)
    with pytest.raises(KmsUnavailableError, match="the KMS at home is not available: no connect"):
        calls.run(call)
    with pytest.raises(KmsUnavailableError, match="no connection"):
        calls.run(call)
    assert len(made) == 1


def test_a_pause_that_the_kms_asks_for_is_kept() -> None:
    failures = iter([TransientFailureError("throttled", pause=0.2)])
    started = time.monotonic()

    def call() -> float:
        for failure in failures:
            raise failure
        return time.monotonic() - started

    assert Calls("the KMS").run(call) >= 0.2


def test_an_error_of_another_kind_is_the_callers() -> None:
    def call() -> None:
        raise LookupError("no such key")

    with pytest.raises(LookupError):
        Calls("the KMS").run(call)


@pytest.mark.parametrize(
    ("host", "is_here"),
    [("localhost", True), ("127.0.0.9", True), ("::1", True), ("10.0.0.1", False), ("kms", False)],
)
def test_what_crosses_no_network(host: str, is_here: bool) -> None:
    assert is_this_machine(host) is is_here
