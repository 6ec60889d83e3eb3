"""Help, completion and manual pages come from the verbs themselves."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import assert_error
from tests.command_line import run


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


def test_every_verb_has_a_manual_page(tmp_path: Path) -> None:
    assert run("help", "--man", tmp_path).returncode == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert {"secure-bloom.1", "secure-bloom-add.1", "secure-bloom-keys-used.1"} <= names
    page = (tmp_path / "secure-bloom-add.1").read_text()
    assert page.startswith('.TH "SECURE-BLOOM-ADD" "1"')
    assert "\\-\\-in\\-place" in page
    assert "\n.nf\nsecure\\-bloom add " in page
    # A line that begins with a dot is a command; these two keep the lines of an example.
    commands = {line for line in page.splitlines() if line.startswith(".") and line[1:2].islower()}
    assert commands == {".nf", ".fi"}
