"""Which files of a log make up a version."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import FormatError, PolicyError
from secure_bloom.tables import snapshot
from testing.delta_logs import add, commit, lines, live, log_of, remove, start


def test_compacted_commits_stand_for_those_that_they_hold(tmp_path: Path) -> None:
    commit(tmp_path, 0, *start())
    compacted = log_of(tmp_path) / f"{1:020}.{3:020}.compacted.json"
    compacted.write_text(lines([add("b"), remove("a"), add("c")]))
    commit(tmp_path, 4, add("d"))
    assert live(tmp_path) == ["b", "c", "d"]
    with pytest.raises(PolicyError, match="no version 2"):
        snapshot(tmp_path, version=2)


def test_a_gap_in_the_log_is_told(tmp_path: Path) -> None:
    commit(tmp_path, 0, *start())
    commit(tmp_path, 2, add("x"))
    with pytest.raises(PolicyError, match="commit 1 of the table's log is gone"):
        snapshot(tmp_path)


def test_an_empty_log_is_an_error(tmp_path: Path) -> None:
    log_of(tmp_path)
    with pytest.raises(FormatError, match="neither a commit nor a checkpoint"):
        snapshot(tmp_path)
