"""Summary files are left alone, and the user is told when one describes changed files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.command_line import run
from testing.tables import KEYRING, Mode, customers, write


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Two days of customers with `_metadata` and `_common_metadata`, as pyarrow writes them."""
    root = tmp_path / "dataset"
    table = customers(60).append_column("day", pa.array([i % 2 for i in range(60)]))
    collected: list[Any] = []
    pq.write_to_dataset(table, root, partition_cols=["day"], metadata_collector=collected)
    schema = table.drop_columns("day").schema
    pq.write_metadata(schema, root / "_common_metadata")
    pq.write_metadata(schema, root / "_metadata", metadata_collector=collected)
    return root


def _summaries(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.glob("_*")}


def test_the_user_is_told_and_the_summary_is_as_it_was(dataset: Path) -> None:
    before = _summaries(dataset)
    report = sb.add_bloom_filters(dataset, columns=["email"])
    assert [file.status for file in report.files] == ["added", "added"]
    (note,) = report.notes
    assert note.startswith(f"{dataset}/_metadata describes files that got filters")
    assert _summaries(dataset) == before
    assert set(before) == {"_metadata", "_common_metadata"}
    assert json.loads(json.dumps(report.to_dict()))["notes"] == [note]


def test_it_is_told_for_a_single_file_too(dataset: Path) -> None:
    file = next(dataset.glob("day=1/*.parquet"))
    assert len(sb.add_bloom_filters(file, columns=["email"], dry_run=True).notes) == 1
    assert len(sb.add_bloom_filters(file, columns=["email"], in_place=True).notes) == 1


def test_nothing_is_said_of_what_is_not_changed(dataset: Path, tmp_path: Path) -> None:
    new = write(dataset / "day=1" / "written-later.parquet", customers(10))
    assert sb.add_bloom_filters(new, columns=["email"]).notes == ()
    new.unlink()
    assert sb.add_bloom_filters(dataset, columns=["email"], output=tmp_path / "copy").notes == ()
    sb.add_bloom_filters(dataset, columns=["email"])
    again = sb.add_bloom_filters(dataset, columns=["email"])
    assert {file.status for file in again.files} == {"unchanged"}
    assert again.notes == ()


def test_the_summary_of_an_output_folder_counts(dataset: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    sb.add_bloom_filters(dataset, columns=["email"], output=copy)
    (copy / "_metadata").write_bytes((dataset / "_metadata").read_bytes())
    options = {"columns": ["email", "iban"], "output": copy}
    note, replaced = sb.add_bloom_filters(dataset, **options).notes
    assert "were replaced" in replaced
    assert note.startswith(f"{copy}/_metadata ")


@pytest.mark.parametrize("content", [b"no Parquet at all", "encrypted"])
def test_a_summary_that_cannot_be_read_may_describe_anything(
    tmp_path: Path, content: bytes | str
) -> None:
    path = write(tmp_path / "x.parquet", customers(10), Mode.ENCRYPTED)
    summary = tmp_path / "_metadata"
    summary.write_bytes(path.read_bytes() if isinstance(content, str) else content)
    before = summary.read_bytes()
    (note,) = sb.add_bloom_filters(tmp_path, columns=["email"], keys=KEYRING).notes
    assert note.startswith(str(summary))
    assert summary.read_bytes() == before


def test_the_command_line_prints_it(dataset: Path) -> None:
    done = run("add", dataset, "--column", "email")
    assert f"note: {dataset}/_metadata describes files that got filters" in done.stdout
