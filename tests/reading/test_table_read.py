"""A read tells of its table, and of the rows that were taken."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.reading import Question, ReadRequest, Table
from secure_bloom.reading.table import table_files


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"n": [1, 2, 3]}), tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


def test_a_read_is_told_of_when_rows_were_taken(path: Path) -> None:
    read = Table(ReadRequest(path)).ask(Question("n > 1", columns=["n"], limit=1))
    assert [batch.to_pydict() for batch in read.batches()] == [{"n": [2]}]
    assert read.report().rows == 1
    assert read.paths == [str(path)]
    assert read.schema.names == ["n"]


@pytest.mark.parametrize("tiny", [True, False])
def test_tiny_files_are_read_without_threads(
    path: Path, monkeypatch: pytest.MonkeyPatch, tiny: bool
) -> None:
    started, start = [], threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    if not tiny:
        monkeypatch.setattr(table_files, "TINY", path.stat().st_size - 1)
    assert sb.read_table(path, where="n > 1").to_pydict() == {"n": [2, 3]}
    assert bool(started) is not tiny
