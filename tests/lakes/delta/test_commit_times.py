"""The version of a time: by what commits say, or when their files were written."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.lakes import snapshot
from testing.delta_logs import add, commit, log_of, start


def version(table: Path, timestamp: str | datetime) -> int:
    found = snapshot(table, timestamp=timestamp)
    assert found is not None
    return found.version


def test_the_time_of_writing_counts(tmp_path: Path) -> None:
    for number, seconds in enumerate([100, 200, 150]):
        commit(tmp_path, number, *(start() if number == 0 else [add(f"{number}")]))
        os.utime(log_of(tmp_path) / f"{number:020}.json", (seconds, seconds))
    assert version(tmp_path, "1970-01-01T00:01:40Z") == 0
    assert version(tmp_path, "1970-01-01T02:03:19+02:00") == 0
    # The clock of the third writer was behind: its version counts as a moment later.
    assert version(tmp_path, datetime.fromtimestamp(200, UTC)) == 1
    assert version(tmp_path, "1970-01-01 00:03:20.001") == 2
    with pytest.raises(PolicyError, match="no version as old"):
        version(tmp_path, "1970-01-01")


def test_in_commit_timestamps_come_first(tmp_path: Path) -> None:
    for number, at in enumerate([1000, 5000]):
        # A first line longer than what is read first, and a short one.
        info = {"commitInfo": {"inCommitTimestamp": at, "x": "x" * (20_000 * number)}}
        commit(tmp_path, number, info, *(start() if number == 0 else [add("x")]))
    assert version(tmp_path, "1970-01-01T00:00:04Z") == 0
    assert version(tmp_path, "1970-01-01T00:00:05Z") == 1
    found = snapshot(tmp_path)
    assert found is not None
    assert found.in_commit_timestamp == 5000


@pytest.mark.parametrize("timestamp", ["yesterday", 5])
def test_what_is_no_time_is_told(tmp_path: Path, timestamp: str) -> None:
    commit(tmp_path, 0, *start())
    with pytest.raises(PolicyError, match="not a time in ISO 8601"):
        version(tmp_path, timestamp)


def test_a_version_and_a_timestamp_are_too_much(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="one is enough"):
        snapshot(tmp_path, version=1, timestamp="2026-01-01")
