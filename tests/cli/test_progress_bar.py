"""Progress off a terminal is a log."""

from __future__ import annotations

import logging
import re

import pytest

import secure_bloom.cli.progress_bar as module
from secure_bloom.cli.progress_bar import progress_bar


def test_a_long_run_logs_counts_with_times(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_INTERVAL", 0.0)
    monkeypatch.setattr(logging.getLogger("secure_bloom.progress"), "handlers", [])
    with progress_bar("adding filters", quiet=True) as progress:
        progress(1200, 20_000)
    line = capsys.readouterr().err
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    assert re.fullmatch(rf"{time} INFO adding filters: 1,200 of 20,000\n", line), line


def test_a_short_run_logs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("adding filters", quiet=False) as progress:
        progress(1, 2)
    assert capsys.readouterr().err == ""
