"""Lines for a terminal."""

from __future__ import annotations

import pytest

from secure_bloom.cli.terminal import tell


def test_nothing_that_a_file_says_drives_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    tell("evil \x1b[2J\u202e name")
    line = capsys.readouterr().out.rstrip("\n")
    assert line.isprintable()
    assert "evil" in line


def test_errors_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    tell("wrong", err=True)
    seen = capsys.readouterr()
    assert (seen.out, seen.err) == ("", "wrong\n")
