"""A small table is looked at whole, a large one in part, in every run the same part."""

from __future__ import annotations

from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.advising import sample as sampling
from secure_bloom.advising.sample import TableSample, sample_table
from secure_bloom.encryption.access import Access
from testing import delta_logs as logs
from testing.table_readers import deletion_vector
from tests.lakes.test_table_listing import mapped


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    rows = pa.table({"id": np.arange(400)})
    for number in range(40):
        pq.write_table(rows, folder / f"{number:02d}.parquet", row_group_size=100)
    pq.write_table(rows.slice(0, 0), folder / "empty.parquet")
    return folder


def sampled(table: Path) -> TableSample:
    return sample_table([str(table)], Access().resolver())


def test_all_footers_are_counted_and_some_files_chosen(table: Path) -> None:
    found = sampled(table)
    assert (found.file_count, found.rows) == (41, 16_000)
    assert found.row_group_count >= 160
    assert found.size == sum(path.stat().st_size for path in table.iterdir())
    assert len(found.row_groups) == sampling.MOST_FILES
    assert not found.is_cut
    assert found.chosen_count < found.row_group_count
    assert found.bytes_footers > 0


def test_the_choice_is_the_same_in_every_run(table: Path) -> None:
    assert sampled(table).row_groups == sampled(table).row_groups


def test_of_large_files_some_row_groups_are_chosen(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "MOST_BYTES", 20_000)
    found = sampled(table)
    assert found.is_cut
    assert set(map(len, found.row_groups.values())) == {1}
    assert found.chosen_rows == 100 * sampling.MOST_FILES


def test_of_very_many_rows_some_row_groups_are_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of a few MB may have a billion equal rows, and a lookup reads all that are chosen."""
    rows = pa.table({"id": np.zeros(1000, np.int64)})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=100)
    assert sampled(tmp_path).chosen_count == 10
    monkeypatch.setattr(sampling, "_MOST_ROWS", 250)
    assert sampled(tmp_path).chosen_count == 2
    monkeypatch.setattr(sampling, "_MOST_ROWS", 1)
    assert sampled(tmp_path).chosen_count == 1


def test_a_small_table_is_looked_at_whole(table: Path) -> None:
    found = sampled(table / "03.parquet")
    assert found.chosen_count == found.row_group_count
    assert list(found.row_groups.values()) == [(0, 1, 2, 3)]


def test_of_a_delta_table_the_live_files_are_looked_at(tmp_path: Path) -> None:
    rows = pa.table({"id": range(100), "day": ["a"] * 50 + ["b"] * 50})
    for _ in range(2):
        deltalake.write_deltalake(tmp_path, rows, partition_by=["day"], mode="overwrite")
    sample = sampled(tmp_path)
    assert [file.path for file in sample.files] == sorted(
        deltalake.DeltaTable(tmp_path).file_uris()
    )
    assert sample.rows == 100
    assert [field.name for field in sample.table.partition_fields] == ["day"]
    assert {column.column for column in sb.advise(tmp_path).columns} == {"id", "day"}


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_of_a_mapped_table_go_by_the_names_that_people_use(
    tmp_path: Path, mode: str
) -> None:
    mapped(tmp_path / "t", mode)
    advice = sb.advise(tmp_path / "t")
    assert {"id", "items.list.element.price"} <= {column.column for column in advice.columns}
    assert not any("col-" in column.column for column in advice.columns)


def test_a_mapped_table_is_advised_as_the_same_rows_in_bare_files(tmp_path: Path) -> None:
    """The log gives the column another name, and deletes two rows."""
    ids = np.random.default_rng(1).permutation(40_000)
    rows = pa.table({"col-1": [f"user{i}@example.com" for i in ids]})
    (tmp_path / "t").mkdir()
    pq.write_table(rows, tmp_path / "t" / "x.parquet", row_group_size=5000)
    pq.write_table(rows.rename_columns(["id"]), tmp_path / "bare.parquet", row_group_size=5000)
    names = {"delta.columnMapping.physicalName": "col-1", "delta.columnMapping.id": 1}
    metadata = logs.metadata(logs.column("id", "string", **names))
    metadata["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
    size = (tmp_path / "t" / "x.parquet").stat().st_size
    add = logs.add("x.parquet", size, deletionVector=deletion_vector([3, 4]))
    features = logs.protocol("columnMapping", "deletionVectors")
    logs.commit(tmp_path / "t", 0, features, metadata, add)
    of_table, bare = sb.advise(tmp_path / "t"), sb.advise(tmp_path / "bare.parquet")
    (ours,), (theirs,) = of_table.columns, bare.columns
    assert (ours.column, ours.verdict) == (theirs.column, theirs.verdict) == ("id", "gains")
    assert ours.trial is not None
    assert theirs.trial is not None
    assert ours.trial.bytes_added == pytest.approx(theirs.trial.bytes_added, rel=0.01)
    assert (of_table.rows, bare.rows) == (39_998, 40_000)
