"""Checkpoints: in parts, of version 2 with sidecar files, and damaged ones."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import FormatError, PolicyError
from secure_bloom.lakes import snapshot
from secure_bloom.lakes.delta.checkpoint import log_actions, stats_text
from secure_bloom.running.memory_budget import DecodedBytes, MemoryBudgetError
from testing import delta_logs as logs
from testing.delta_logs import add, checkpoint, commit, lines, live, log_of, remove, start


def test_a_checkpoint_in_parts_counts_when_all_are_there(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    commit(tmp_path, 0, *start(), add("a"))
    commit(tmp_path, 1, add("b"))
    part = "{:020}.checkpoint.{:010}.{:010}.parquet"
    checkpoint(log / part.format(1, 1, 2), *start(), add("a"))
    assert live(tmp_path) == ["a", "b"]
    checkpoint(log / part.format(1, 2, 2), add("only-in-the-checkpoint"))
    assert live(tmp_path) == ["a", "only-in-the-checkpoint"]
    (log / f"{0:020}.json").unlink()
    with pytest.raises(PolicyError, match="has no version 0"):
        snapshot(tmp_path, version=0)


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_a_checkpoint_of_version_2_names_sidecar_files(tmp_path: Path, suffix: str) -> None:
    log = log_of(tmp_path)
    checkpoint(log / "_sidecars/one.parquet", add("a"), add("b"))
    checkpoint(log / "_sidecars/two.parquet", add("c"))
    actions = [
        *start(features=["v2Checkpoint"]),
        {"sidecar": {"path": "one.parquet", "sizeInBytes": 1}},
        {"sidecar": {"path": "two.parquet", "sizeInBytes": 1}},
    ]
    name = log / f"{3:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{suffix}"
    if suffix == "json":
        name.write_text(lines([{"checkpointMetadata": {"version": 3}}, *actions]))
    else:
        checkpoint(name, *actions)
    commit(tmp_path, 4, remove("b"), add("d"))
    assert live(tmp_path) == ["a", "c", "d"]
    assert live(tmp_path, version=3) == ["a", "b", "c"]


def test_of_equal_paths_in_a_checkpoint_the_last_is_read(tmp_path: Path) -> None:
    chance = random.Random(5)
    kinds = [add, add, add, remove]
    actions = [chance.choice(kinds)(chance.choice("abcdef"), size=number) for number in range(398)]
    path = log_of(tmp_path / "x") / f"{0:020}.checkpoint.parquet"
    removed = pa.field("remove", pa.struct([("path", pa.string()), ("dataChange", pa.bool_())]))
    rows = pa.Table.from_pylist([*start(), *actions], pa.schema([*logs.CHECKPOINT, removed]))
    pq.write_table(rows, path)
    commit(tmp_path / "y", 0, *start(), *actions)
    found, wanted = snapshot(tmp_path / "x"), snapshot(tmp_path / "y")
    assert found is not None
    assert wanted is not None
    assert [(it.path[-1], it.size) for it in found.files] == [
        (it.path[-1], it.size) for it in wanted.files
    ]
    read = list(log_actions(str(path), DecodedBytes("the log")))
    assert sum("add" in it for it in read) <= len("abcdef")
    assert sum("remove" in it for it in read) == sum("remove" in it for it in actions)


@pytest.mark.parametrize("action", [add, remove])
def test_a_checkpoint_that_repeats_its_actions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: Callable[[str], dict[str, object]]
) -> None:
    monkeypatch.setattr("secure_bloom.lakes.delta.checkpoint._REPEATED", 0)
    removed = pa.field("remove", pa.struct([("path", pa.string()), ("dataChange", pa.bool_())]))
    schema = pa.schema([*logs.CHECKPOINT, removed])
    path = log_of(tmp_path) / f"{0:020}.checkpoint.parquet"
    # As many row groups as batches, and in each of them both paths.
    rows = pa.Table.from_pylist([*start(), *[action("a"), action("b")] * 20], schema)
    pq.write_table(rows, path, row_group_size=4)
    with pytest.raises(FormatError, match=r"repeats its actions: \d of \d+"):
        snapshot(tmp_path)


def test_a_damaged_checkpoint_is_an_error(tmp_path: Path) -> None:
    (log_of(tmp_path) / f"{0:020}.checkpoint.parquet").write_bytes(b"PAR1 no more PAR1")
    with pytest.raises(FormatError, match="checkpoint"):
        snapshot(tmp_path)


def test_a_sparse_file_of_the_log_is_not_read(tmp_path: Path) -> None:
    commit(tmp_path, 0, *start(), add("a"))
    with (log_of(tmp_path) / f"{1:020}.json").open("wb") as sparse:
        sparse.truncate(100 << 30)
    with pytest.raises(MemoryBudgetError, match=r"1\.json: the file, which is read as a whole"):
        snapshot(tmp_path)


def test_a_checkpoint_that_promises_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log_of(tmp_path) / f"{0:020}.checkpoint.parquet"
    checkpoint(path, *start(), add("a", stats="x" * 5_000_000))
    assert path.stat().st_size < 400_000
    assert live(tmp_path) == ["a"]
    monkeypatch.setenv("SECURE_BLOOM_MEMORY", "4MiB")
    with pytest.raises(MemoryBudgetError, match="a page takes"):
        snapshot(tmp_path)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (7, 7),
        ("é", "é"),
        (True, True),
        (1.5, 1.5),
        (float("nan"), None),
        (Decimal("12.50"), 12.5),
        (Decimal(10**30), 10**30),
        (Decimal("0.1234567890123456789"), None),
        (date(2026, 1, 31), "2026-01-31"),
        (datetime(2026, 1, 31, 1, 2, 3, 45, tzinfo=UTC), "2026-01-31T01:02:03.000045Z"),
        (datetime(2026, 1, 31), "2026-01-31T00:00:00.000000"),
        (b"\x00", None),
    ],
)
def test_a_bound_is_said_exactly_or_not_at_all(value: object, told: object) -> None:
    found = json.loads(stats_text({"numRecords": 3, "minValues": {"x": value}}))
    assert found == {"numRecords": 3, "minValues": {} if told is None else {"x": told}}


def test_a_commit_of_ours_keeps_statistics_that_only_a_checkpoint_has(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "x.parquet")
    parsed = {"numRecords": 2, "minValues": {"id": 1}, "maxValues": {"id": 2}}
    add = logs.add("x.parquet", (tmp_path / "x.parquet").stat().st_size)
    add["add"]["stats_parsed"] = parsed
    actions = pa.Table.from_pylist([*logs.start(), add], _without_texts())
    log = logs.log_of(tmp_path)
    pq.write_table(actions, log / f"{0:020}.checkpoint.parquet")
    (log / f"{0:020}.json").write_text(logs.lines([*logs.start(), add]))
    sb.add_bloom_filters(tmp_path, columns="id")
    found = snapshot(tmp_path)
    assert found is not None
    assert json.loads(found.files[0].add["stats"]) == parsed


def _without_texts() -> pa.Schema:
    bounds = pa.struct({"id": pa.int64()})
    parsed = pa.struct({"numRecords": pa.int64(), "minValues": bounds, "maxValues": bounds})
    fields = [field for field in logs.CHECKPOINT.field("add").type if "stats" not in field.name]
    add = pa.struct([*fields, pa.field("stats_parsed", parsed)])
    index = logs.CHECKPOINT.get_field_index("add")
    return logs.CHECKPOINT.set(index, pa.field("add", add))
