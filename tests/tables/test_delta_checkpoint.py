"""Checkpoints: in parts, of version 2 with sidecar files, and damaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import FormatError, PolicyError
from secure_bloom.storage.memory_budget import MemoryBudgetError
from secure_bloom.tables import snapshot
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
    with pytest.raises(MemoryBudgetError, match="a row group of the checkpoint takes"):
        snapshot(tmp_path)
