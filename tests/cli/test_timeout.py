"""``--timeout`` ends a verb that reads, whatever it is doing, with an error and exit code 2."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from secure_bloom.cli.timeout import requested_limit
from testing.command_line import COMMAND, run
from tests.cli.conftest import assert_error

#: A client that never answers: a second lock of a mutex waits for ever, no signal ends it, and
#: PyDLL keeps Python's lock meanwhile.
STUCK = """
import ctypes
class Kms:
    def __init__(self, **_):
        mutex = ctypes.create_string_buffer(128)
        lock = ctypes.PyDLL(None).pthread_mutex_lock
        lock(mutex), lock(mutex)

    def wrap_key(self, *_): ...
    def unwrap_key(self, *_): ...
"""
VERBS = {
    "read": ("--where", "id = 1", "--output", "found.csv"),
    "probe": ("email", "a@example.com"),
    "inspect": (),
    "advise": (),
    "audit": (),
}


def test_a_verb_that_is_stuck_in_compiled_code_ends_in_time(lake: Path) -> None:
    (lake / "stuck.py").write_text(STUCK)
    policy = lake / "stuck.toml"
    text = (lake / "policy.toml").read_text()
    policy.write_text(text.replace('client = "keyring"', 'client = "stuck:Kms"'))
    variables = {**os.environ, "PYTHONPATH": str(lake)}
    began = time.monotonic()
    started = {
        verb: subprocess.Popen(
            [*COMMAND, verb, "out", *more, "--policy", policy, "--timeout", "2", "--json"],
            stdout=-1,
            stderr=-1,
            text=True,
            env=variables,
            cwd=lake,
        )
        for verb, more in VERBS.items()
    }
    for verb, process in started.items():
        out, err = process.communicate(timeout=60)
        done = subprocess.CompletedProcess(verb, process.returncode, out, err)
        assert_error(done)
        assert err.count("secure-bloom: error: the time limit of 2 s is over") == 1, verb
        assert json.loads(out)["error"] == "the time limit of 2 s is over", verb
    assert time.monotonic() - began > 2
    assert (
        sorted(path.name for path in lake.iterdir() if path.name.startswith(("found", "."))) == []
    )


def test_a_limit_that_is_not_reached_changes_nothing(lake: Path) -> None:
    words = ["read", lake / "out", "--policy", lake / "policy.toml", "--format", "csv"]
    with_limit = run(*words, "--timeout", "100", PYTHONUNBUFFERED="1")
    assert with_limit.returncode == 0
    assert with_limit.stdout == run(*words).stdout
    absent = ["probe", lake / "out", "city", "nowhere", "--policy", lake / "policy.toml"]
    codes = {run(*absent, *more, PYTHONUNBUFFERED="1").returncode for more in ([], ["--timeout=9"])}
    assert codes == {3}


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon"])
def test_a_limit_that_is_none_is_an_error_of_its_own(lake: Path, text: str) -> None:
    assert_error(run("inspect", lake / "out", "--timeout", text))


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        ("read x --timeout 5", 5.0),
        ("--timeout=0.5 read x", 0.5),
        ("read x", None),
        ("probe x email -- --timeout 5", None),
        ("read x --timeout", None),
        ("read x --timeout soon", None),
    ],
)
def test_the_limit_is_found_before_the_verb_is_imported(words: str, limit: float | None) -> None:
    assert requested_limit(words.split()) == limit
