"""The log of a streaming sink: committed files alone, wherever in the table one looks."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError
from secure_bloom.lakes import list_tables


def batch(table: Path, name: str, *files: str, action: str = "add", version: str = "v1") -> None:
    """One batch of the log, as Spark writes it; files that are not there are made."""
    entries = []
    for file in files:
        path = table / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            pq.write_table(pa.table({"id": [len(list(table.rglob("*.parquet")))]}), path)
        uri = f"file://{quote(str(path))}"
        entries.append({"path": uri, "size": path.stat().st_size, "isDir": False, "action": action})
    log = table / "_spark_metadata"
    log.mkdir(exist_ok=True)
    (log / name).write_text("\n".join([version, *map(json.dumps, entries)]))


@pytest.fixture
def sink(tmp_path: Path) -> Path:
    """A table of three batches, with a file that no batch committed."""
    table = tmp_path / "sink"
    batch(table, "0", "day=a%2Fb/x.parquet")
    batch(table, "1", "day=2/y.parquet")
    batch(table, "2", "day=2/z.parquet")
    pq.write_table(pa.table({"id": [100]}), table / "day=2/uncommitted.parquet")
    return table


COMMITTED = ["day=2/y.parquet", "day=2/z.parquet", "day=a%2Fb/x.parquet"]


def files(table: Path, *paths: str) -> list[str]:
    found = list_tables([f"{table}/{path}" for path in paths] or [str(table)])
    return [path.removeprefix(f"{table}/") for path in found.paths]


def test_committed_files_alone_are_looked_at(sink: Path) -> None:
    assert files(sink) == COMMITTED
    assert sb.read_table(sink).to_pylist() == [
        {"id": 1, "day": "2"},
        {"id": 2, "day": "2"},
        {"id": 0, "day": "a/b"},
    ]
    assert len(sb.inspect(sink).files) == 3
    assert len(sb.probe(sink, "id", 1).files) == 3
    assert len(sb.audit(sink, policy=sb.KeyPolicy(columns={})).paths) == 3


def test_the_log_counts_within_the_table_too(sink: Path) -> None:
    assert files(sink, "day=2") == COMMITTED[:2]
    assert files(sink, "day=2/*.parquet") == COMMITTED[:2]
    assert files(sink, "day=2/z.parquet") == COMMITTED[1:2]
    with pytest.raises(PolicyError, match="no file of the table's version"):
        files(sink, "day=2/uncommitted.parquet")


def test_a_link_leads_to_the_same_files(sink: Path) -> None:
    link = sink.parent / "link"
    link.symlink_to(sink)
    assert files(link) == COMMITTED


def test_a_compacted_batch_stands_for_those_before(sink: Path) -> None:
    batch(sink, "2.compact", "day=2/y.parquet")
    batch(sink, "3", "new.parquet")
    assert files(sink) == ["day=2/y.parquet", "new.parquet"]
    for name in ("0", "1", "2"):
        (sink / "_spark_metadata" / name).unlink()
    assert files(sink) == ["day=2/y.parquet", "new.parquet"]


def test_a_file_that_was_deleted_is_left_out(sink: Path) -> None:
    batch(sink, "3", "day=2/y.parquet", action="delete")
    assert files(sink) == COMMITTED[1:]


def test_a_gap_in_the_log_is_damage(sink: Path) -> None:
    (sink / "_spark_metadata/1").unlink()
    with pytest.raises(FormatError, match="lacks a batch"):
        files(sink)


def test_a_log_that_is_not_known_is_refused(sink: Path) -> None:
    batch(sink, "3", version="v2")
    with pytest.raises(UnsupportedFeatureError, match="not of version v1"):
        files(sink)
    batch(sink, "3", "x.parquet", action="replace")
    with pytest.raises(UnsupportedFeatureError, match="unknown action"):
        files(sink)


def test_a_table_that_was_moved_is_refused(sink: Path) -> None:
    moved = sink.rename(sink.parent / "moved")
    with pytest.raises(UnsupportedFeatureError, match="names files elsewhere") as caught:
        files(moved)
    assert caught.value.path == str(moved)


def test_it_has_no_versions_and_takes_no_filters(sink: Path) -> None:
    with pytest.raises(PolicyError, match="only Delta, Iceberg and Paimon tables have"):
        sb.read_table(sink, version=0)
    with pytest.raises(UnsupportedFeatureError, match="Structured Streaming"):
        sb.add_bloom_filters(sink, columns=["id"])
