"""Rows of Parquet files that belong to a table's metadata: all of them, within the budget."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.parquet.metadata_rows import metadata_rows
from secure_bloom.running.memory_budget import VARIABLE, DecodedBytes, MemoryBudgetError

TABLE = pa.table(
    {
        "text": ["a" * (n % 50) for n in range(5000)],
        "add": [{"path": f"p{n}", "tags": {"k": str(n)}} if n % 3 else None for n in range(5000)],
        "list": [list(range(n % 4)) for n in range(5000)],
    },
    schema=pa.schema(
        {
            "text": pa.string(),
            "add": pa.struct({"path": pa.string(), "tags": pa.map_(pa.string(), pa.string())}),
            "list": pa.list_(pa.int64()),
        }
    ),
)


def read(path: Path, columns: list[str], **options: object) -> pa.Table:
    decoded = DecodedBytes("a test")
    batches = metadata_rows(str(path), path.read_bytes(), decoded, lambda _: columns, **options)
    return pa.Table.from_batches(list(batches))


@pytest.mark.parametrize("budget", ["1GiB", "4MiB"])
def test_rows_are_those_of_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: str
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE, path, row_group_size=1000)
    monkeypatch.setenv(VARIABLE, budget)
    columns = ["text", "add.path", "add.tags", "list"]
    wanted = pq.ParquetFile(path).read(columns=columns).combine_chunks()
    assert read(path, columns).combine_chunks().equals(wanted)
    assert read(path, ["text"], dictionaries=["text"])["text"].cast(pa.string()) == TABLE["text"]


def test_batches_are_as_small_as_their_texts_want(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": ["x" * 10_000] * 300}), path)
    monkeypatch.setenv(VARIABLE, "1MiB")
    decoded = DecodedBytes("a test")
    batches = metadata_rows(str(path), path.read_bytes(), decoded, lambda _: ["text"])
    with pytest.raises(MemoryBudgetError, match="a test takes"):
        assert all(batch.nbytes <= 2**20 // 32 for batch in batches)


def test_elements_of_lists_count_as_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"list": [[""] * 40_000]}), path)
    monkeypatch.setenv(VARIABLE, "1MiB")
    with pytest.raises(MemoryBudgetError, match="the lists of the metadata"):
        read(path, ["list"])
