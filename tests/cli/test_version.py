"""`--version`, and with `-v` which code runs the loops."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import secure_bloom as sb
from secure_bloom.kernels import extension


def run(*words: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "secure_bloom", *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("words", [["--version"], ["-V"]])
def test_the_version_is_one_line(words: list[str]) -> None:
    assert run(*words) == [f"secure-bloom, version {sb.__version__}"]


@pytest.mark.parametrize("words", [["--version", "-v"], ["-v", "--version"]])
def test_with_v_it_says_which_code_runs(words: list[str]) -> None:
    assert run(*words)[1:] == [f"loops: {extension.description}"]


def test_the_extension_can_be_turned_off() -> None:
    assert run("--version", "-v", SECURE_BLOOM_NATIVE="0")[1:] == [
        "loops: numpy (SECURE_BLOOM_NATIVE=0)"
    ]
