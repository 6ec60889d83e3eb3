"""A Delta table at a version: held to deltalake's answers, and to logs that are made by hand."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.lakes import snapshot
from testing.delta_logs import (
    add,
    checkpoint,
    column,
    commit,
    live,
    log_of,
    metadata,
    protocol,
    remove,
    start,
)

VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}


def test_live_files_are_those_of_deltalake_at_every_version(tmp_path: Path) -> None:
    for i in range(6):
        rows = pa.table({"id": [i, i + 1], "p": ["a b/c", None] if i % 2 else ["x=%y", ""]})
        deltalake.write_deltalake(tmp_path, rows, partition_by=["p"], mode="append")
        if i == 3:
            deltalake.DeltaTable(tmp_path).create_checkpoint()
    deltalake.DeltaTable(tmp_path).delete("id = 3")
    deltalake.DeltaTable(tmp_path).optimize.compact()
    latest = deltalake.DeltaTable(tmp_path).version()
    for version in range(latest + 1):
        wanted = deltalake.DeltaTable(tmp_path, version=version)
        found = snapshot(tmp_path, version=version)
        assert found is not None
        assert sorted(f.path for f in found.files) == sorted(wanted.file_uris())
        assert all(Path(f.path).stat().st_size == f.size for f in found.files)
    assert found.version == latest
    assert {f.partition_values["p"] for f in found.files} == {"a b/c", "x=%y", None}


def test_a_folder_without_a_log_is_no_table(tmp_path: Path) -> None:
    assert snapshot(tmp_path) is None
    assert snapshot(tmp_path / "nothing") is None


def test_the_action_comes_as_the_log_has_it(tmp_path: Path) -> None:
    extra = {"stats": '{"numRecords":3}', "tags": {"a": "b", "c": None}, "x": {"y": [1]}}
    action = add("a%20b.parquet", 7, deletionVector=VECTOR, baseRowId=5, **extra)
    commit(tmp_path, 0, *start(features=["deletionVectors"]), action)
    found = snapshot(str(tmp_path))
    assert found is not None
    file = found.files[0]
    assert file.path == f"{tmp_path}/a b.parquet"
    assert file.add == action["add"]
    assert file.deletion_vector is not None
    assert file.deletion_vector.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"
    assert found.protocol.reader_features == {"deletionVectors"}


def test_an_action_of_a_checkpoint_is_the_same_as_in_a_commit(tmp_path: Path) -> None:
    action = add("x", 7, deletionVector=VECTOR, stats="{}", partitionValues={"p": None})
    first = start(column("p"), features=["deletionVectors"], partitions=["p"])
    commit(tmp_path / "json", 0, *first, action)
    name = f"{0:020}.checkpoint.parquet"
    checkpoint(log_of(tmp_path / "parquet") / name, *first, action)
    one, other = snapshot(tmp_path / "json"), snapshot(tmp_path / "parquet")
    assert one is not None
    assert other is not None
    assert one.files[0].add == other.files[0].add
    assert (one.protocol, one.metadata) == (other.protocol, other.metadata)


def test_a_new_deletion_vector_replaces_the_file_without(tmp_path: Path) -> None:
    commit(tmp_path, 0, *start(features=["deletionVectors"]), add("a"))
    # The order within a commit says nothing.
    commit(tmp_path, 1, add("a", deletionVector=VECTOR), remove("a"))
    found = snapshot(tmp_path)
    assert found is not None
    assert [file.deletion_vector is not None for file in found.files] == [True]


def test_of_two_deletion_vectors_of_a_path_the_newest_counts(tmp_path: Path) -> None:
    """PROTOCOL.md, "Action Reconciliation": the paths of a version's files are unique."""
    newer = VECTOR | {"offset": 44}
    commit(tmp_path, 0, *start(features=["deletionVectors"]), add("a"))
    commit(tmp_path, 1, add("a", deletionVector=VECTOR))
    commit(tmp_path, 2, add("a", deletionVector=newer))
    found = snapshot(tmp_path)
    assert found is not None
    assert [file.add["deletionVector"] for file in found.files] == [newer]
    # What is removed is the file with another vector, which is not live any more.
    commit(tmp_path, 3, remove("a", deletionVector=VECTOR))
    assert live(tmp_path) == ["a"]
    commit(tmp_path, 4, remove("a", deletionVector=newer))
    assert live(tmp_path) == []


def test_a_file_is_removed_however_the_log_spells_its_path(tmp_path: Path) -> None:
    commit(tmp_path, 0, *start(), add("p=a%20b/x"), add("y"))
    commit(tmp_path, 1, remove(f"file://{tmp_path}/p=a%20b/x"))
    assert live(tmp_path) == ["y"]


def test_column_mapping_gives_logical_names(tmp_path: Path) -> None:
    physical = {"delta.columnMapping.physicalName": "col-1f", "delta.columnMapping.id": 1}
    first = start(
        column("day", "date", **physical),
        features=["columnMapping"],
        partitions=["day"],
        delta_columnMapping_mode="name",
    )
    commit(tmp_path, 0, *first, add("x", partitionValues={"col-1f": "2026-01-31"}))
    found = snapshot(tmp_path)
    assert found is not None
    assert found.files[0].partition_values == {"day": "2026-01-31"}
    assert found.metadata.physical_names == {"day": "col-1f"}


def test_a_damaged_file_of_the_log_is_named(tmp_path: Path) -> None:
    commit(tmp_path, 0, *start())
    damaged = log_of(tmp_path) / f"{1:020}.json"
    damaged.write_text('{"add": {"path": "a')
    with pytest.raises(sb.FormatError, match="line 1 of the log is not JSON") as caught:
        snapshot(tmp_path)
    assert caught.value.path == str(damaged)


@pytest.mark.parametrize(
    ("actions", "told"),
    [
        ([protocol("newFeature"), metadata()], "newFeature"),
        ([protocol("catalogManaged"), metadata()], "catalogManaged"),
        ([protocol(reader=4), metadata()], "readers of version 4"),
    ],
)
def test_what_a_reader_must_know_stops_it_by_name(
    tmp_path: Path, actions: list[Any], told: str
) -> None:
    commit(tmp_path, 0, *actions)
    with pytest.raises(UnsupportedFeatureError, match=told) as caught:
        snapshot(tmp_path)
    assert caught.value.path == str(tmp_path)


def test_a_mode_of_column_mapping_that_is_none_is_told(tmp_path: Path) -> None:
    first = start(features=["columnMapping"], delta_columnMapping_mode="place")
    commit(tmp_path, 0, *first)
    with pytest.raises(sb.FormatError, match=r"columnMapping\.mode is 'place'"):
        snapshot(tmp_path)


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
