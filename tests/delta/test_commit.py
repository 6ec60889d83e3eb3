"""Commits beside other writers: each version is one writer's, and no row is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import secure_bloom as sb
from secure_bloom.delta import commit as commit_module
from secure_bloom.delta.actions import Operation, Replacement
from secure_bloom.delta.commit import commit, log_file, open_table
from secure_bloom.errors import FileChangedError, PolicyError, UnfinishedWriteError
from testing import delta_logs as logs

OPERATION = Operation(name="ADD BLOOM FILTERS", parameters={})
VECTOR = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    logs.commit(tmp_path, 0, *logs.start(), logs.add("a"), logs.add("b", tags={"t": "1"}))
    return str(tmp_path)


def both(folder: str) -> list[Replacement]:
    return [
        Replacement(old=file.add, path=f"{file.add['path']}.new", size=2)
        for file in open_table(folder).files
    ]


def live(folder: str) -> list[str]:
    return [str(file.add["path"]) for file in open_table(folder).files]


def test_the_next_version_is_ours(folder: str) -> None:
    done = commit(open_table(folder), both(folder), OPERATION)
    assert done.version == 1
    assert live(folder) == ["a.new", "b.new"]


def test_after_another_writer_the_version_behind_it_is_ours(folder: str) -> None:
    table, replacements = open_table(folder), both(folder)
    logs.commit(Path(folder), 1, logs.add("c"))
    done = commit(table, replacements, OPERATION)
    assert (done.version, live(folder)) == (2, ["a.new", "b.new", "c"])


@pytest.mark.parametrize(
    "action", [logs.remove("a"), logs.add("a", deletionVector=VECTOR)], ids=["removed", "deleted"]
)
def test_a_file_that_another_writer_changed_is_left_alone(
    folder: str, action: dict[str, object]
) -> None:
    table, replacements = open_table(folder), both(folder)
    logs.commit(Path(folder), 1, logs.protocol("deletionVectors"), logs.remove("a"), action)
    done = commit(table, replacements, OPERATION)
    assert [it.path for it in done.replaced] == ["b.new"]
    assert "a.new" not in live(folder)


def test_statistics_that_another_writer_added_meanwhile_are_carried(folder: str) -> None:
    table, replacements = open_table(folder), both(folder)
    logs.commit(Path(folder), 1, logs.add("b", stats='{"numRecords":4}', dataChange=False))
    commit(table, replacements, OPERATION)
    assert [file.add.get("stats") for file in open_table(folder).files] == [
        None,
        '{"numRecords":4}',
    ]


def test_where_nothing_is_live_any_more_nothing_is_committed(folder: str) -> None:
    table, replacements = open_table(folder), both(folder)
    logs.commit(Path(folder), 1, logs.remove("a"), logs.remove("b"))
    done = commit(table, replacements, OPERATION)
    assert (done.version, done.replaced) == (None, ())
    assert not Path(log_file(folder, 2)).exists()


def test_a_feature_that_came_meanwhile_stops_the_commit(folder: str) -> None:
    table, replacements = open_table(folder), both(folder)
    action = logs.protocol(reader=1)
    action["protocol"]["writerFeatures"] = ["rowTracking"]
    logs.commit(Path(folder), 1, action)
    with pytest.raises(sb.UnsupportedFeatureError, match="rowTracking"):
        commit(table, replacements, OPERATION)


FUTURE = 4_000_000_000_000


@pytest.fixture
def stamped() -> list[dict[str, Any]]:
    """The first actions of a table with in-commit timestamps."""
    protocol = logs.protocol(reader=1)
    protocol["protocol"]["writerFeatures"] = ["inCommitTimestamp"]
    metadata = logs.metadata(delta_enableInCommitTimestamps="true")
    return [protocol, metadata, logs.add("a")]


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_in_commit_timestamps_grow_whatever_the_clock_says(
    tmp_path: Path, stamped: list[dict[str, Any]], has_checkpoint: bool
) -> None:
    info = {"commitInfo": {"inCommitTimestamp": FUTURE, "operation": "WRITE"}}
    logs.commit(tmp_path, 0, info, *stamped)
    if has_checkpoint:
        # It has no commitInfo, so the commit is looked at all the same.
        logs.checkpoint(logs.log_of(tmp_path) / f"{0:020}.checkpoint.parquet", *stamped)
    folder = str(tmp_path)
    commit(open_table(folder), both(folder), OPERATION)
    first = json.loads(Path(log_file(folder, 1)).read_text().splitlines()[0])
    assert first["commitInfo"]["inCommitTimestamp"] == FUTURE + 1
    assert open_table(folder).in_commit_timestamp == FUTURE + 1


def test_a_missing_in_commit_timestamp_is_an_error_before_anything_is_written(
    tmp_path: Path, stamped: list[dict[str, Any]]
) -> None:
    logs.commit(tmp_path, 0, *stamped)
    with pytest.raises(sb.FormatError, match="its version 0 has none"):
        open_table(str(tmp_path))


Create = Callable[..., None]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Create], None]:
    """Let the one write of a commit end otherwise."""

    def install(create: Create) -> None:
        monkeypatch.setattr(commit_module, "create_file", create)

    return install


def test_a_commit_whose_answer_was_lost_counts_as_done(
    folder: str, failing: Callable[[Create], None]
) -> None:
    for error in (PolicyError("the store cannot be reached"), FileChangedError("it is there")):

        def create(path: str, content: bytes, *, like: str, error: Exception = error) -> None:
            Path(path).write_bytes(content)
            raise error

        failing(create)
        replacements = both(folder)
        version = open_table(folder).version
        assert commit(open_table(folder), replacements, OPERATION).version == version + 1


def test_a_commit_that_was_not_written_is_an_error(
    folder: str, failing: Callable[[Create], None]
) -> None:
    def create(path: str, content: bytes, *, like: str) -> None:
        raise PolicyError("the disk is full")

    failing(create)
    with pytest.raises(PolicyError, match="full"):
        commit(open_table(folder), both(folder), OPERATION)


def test_where_nobody_can_tell_the_error_says_so(
    folder: str, failing: Callable[[Create], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise PolicyError("the store cannot be reached")

    table, replacements = open_table(folder), both(folder)
    failing(broken)
    monkeypatch.setattr(commit_module, "open_input", broken)
    with pytest.raises(UnfinishedWriteError, match="it is unknown whether"):
        commit(table, replacements, OPERATION)


def test_a_writer_that_is_always_first_is_an_error_in_the_end(
    folder: str, failing: Callable[[Create], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_module, "_LONGEST_PAUSE", 0)
    monkeypatch.setattr(commit_module, "_FIRST_PAUSE", 0)

    def create(path: str, content: bytes, *, like: str) -> None:
        raise FileChangedError("it is there")

    failing(create)
    with pytest.raises(FileChangedError, match="other writers were first"):
        commit(open_table(folder), both(folder), OPERATION)


def test_no_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(sb.MissingPathError):
        open_table(str(tmp_path))
