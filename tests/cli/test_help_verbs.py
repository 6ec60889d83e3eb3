"""Help and completion come from the verbs themselves."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from testing.command_line import run
from tests.cli.conftest import assert_error


def test_no_argument_shows_the_help() -> None:
    done = run()
    assert done.returncode == 0
    assert "add filters, data untouched" in done.stdout
    assert "...\n" not in done.stdout.partition("Commands:")[2]


@pytest.mark.parametrize("words", [("add",), ("keys", "used"), ("hudi", "lookup")])
def test_help_of_a_verb_is_its_own(words: tuple[str, ...]) -> None:
    shown = run("help", *words)
    assert shown.returncode == 0
    assert shown.stdout == run(*words, "--help").stdout


def test_an_unknown_verb_is_told() -> None:
    assert_error(run("help", "keys", "usd"), "there is no verb keys usd")
    done = run("audi", "lake")
    assert_error(done, "there is no verb audi")
    assert "secure-bloom: hint: did you mean audit?\n" in done.stderr


def test_what_is_wrong_with_an_argument_reads_like_other_errors() -> None:
    assert_error(run("completion", "tcsh"), "error: invalid value for '{bash|zsh|fish}': 'tcsh'")
    choices = "missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish\n"
    assert_error(run("completion"), choices)
    assert_error(run("keys", "usd"), "no such command 'usd'. Did you mean 'used'?")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert "_SECURE_BLOOM_COMPLETE" in done.stdout
    if shutil.which(shell):
        check = subprocess.run([shell, "-n"], input=done.stdout, text=True, capture_output=True)
        assert check.returncode == 0, check.stderr
