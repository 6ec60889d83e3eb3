"""Trials of some files tell what a read of the table tells of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.encryption.access import Access
from secure_bloom.reading.lookup_trials import LookupTrials, TrialTable
from secure_bloom.reading.rows.file_reader import FileReader
from testing.tables import KEYRING, Mode, customers, write

ROWS = 8000


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    for part in range(2):
        rows = customers(ROWS, seed=part)
        write(folder / f"{part}.parquet", rows, Mode.ENCRYPTED, row_group_size=1600)
    return folder


def trials_of(lake: Path) -> tuple[LookupTrials, list[str]]:
    paths = [str(path) for path in sorted(lake.iterdir())]
    schema = sb.read_table(lake, keys=KEYRING, limit=0).schema
    table = TrialTable(schema=schema, partitions={path: {} for path in paths})
    return LookupTrials(table, Access(keys=KEYRING).resolver()), paths


@pytest.mark.parametrize("where", [("email", "=", "user77@example.com"), ("email", "=", "user5x")])
def test_reads_of_all_row_groups_are_those_of_the_table(lake: Path, where: tuple) -> None:
    trials, paths = trials_of(lake)
    whole = sb.explain(lake, where=[where], keys=KEYRING)
    found = trials.explain(
        where[0].split("."), pa.scalar(where[2]), {path: range(5) for path in paths}
    )
    assert [(it.bytes_footer, it.bytes_judged_by, it.bytes_pages) for it in found] == [
        (it.bytes_footer, it.bytes_judged_by, it.bytes_pages) for it in whole.files
    ]
    assert [group.skipped_by for it in found for group in it.row_groups] == [
        group.skipped_by for it in whole.files for group in it.row_groups
    ]


def test_row_groups_that_are_not_given_are_not_read(lake: Path) -> None:
    trials, paths = trials_of(lake)
    found = trials.explain(["email"], pa.scalar("user5x"), {paths[1]: [1, 3]})
    assert [group.row_group for it in found for group in it.row_groups] == [1, 3]
    every = trials.explain(["email"], pa.scalar("user5x"), {paths[1]: range(5)})
    assert 0 < found[0].bytes_read < every[0].bytes_read


def test_values_are_those_of_the_row_group_without_nulls(lake: Path) -> None:
    trials, paths = trials_of(lake)
    table = sb.read_table(paths[0], columns=["email"], keys=KEYRING)
    wanted = table.column(0).slice(1600, 1600).drop_null().to_pylist()
    found = trials.values(paths[0], 1, ("email",))
    assert isinstance(found, pa.ChunkedArray)
    assert found.to_pylist() == wanted


def test_of_a_row_group_of_a_few_bytes_a_sample_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": pa.repeat(pa.scalar(7, pa.int64()), 2_000_000)}), path)
    assert path.stat().st_size < 100_000
    table = TrialTable(schema=pa.schema({"a": pa.int64()}), partitions={str(path): {}})
    trials = LookupTrials(table, Access().resolver())
    assert len(trials.values(str(path), 0, ["a"])) == 1024 * 1024
    monkeypatch.setenv("SECURE_BLOOM_MEMORY", "6MiB")
    assert 20_000 < len(trials.values(str(path), 0, ["a"])) <= 6 * 2**20 // 256


def test_a_common_value_of_a_large_row_group_is_not_decoded_to_the_last_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lookup says what it reads as `explain` does; of each row group it decodes one part."""
    path, rows = tmp_path / "x.parquet", 20_000
    texts = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), ["x" * 1000])
    pq.write_table(pa.table({"a": texts}), path, store_schema=False, row_group_size=rows // 2)
    monkeypatch.setenv("SECURE_BLOOM_MEMORY", "8MiB")
    where, decoded = ("a", "=", "x" * 1000), 0
    (whole,) = sb.explain(path, where=[where]).files
    kept = FileReader._kept

    def counted(self: FileReader, columns: Any, first: int, count: int) -> pa.Table:
        nonlocal decoded
        decoded += count
        return kept(self, columns, first, count)

    monkeypatch.setattr(FileReader, "_kept", counted)
    table = TrialTable(schema=pa.schema({"a": pa.string()}), partitions={str(path): {}})
    trials = LookupTrials(table, Access().resolver())
    (found,) = trials.explain(["a"], pa.scalar(where[2]), {str(path): [0, 1]})
    assert 0 < decoded < rows // 4
    assert found.bytes_pages == whole.bytes_pages
    assert [it.pages_are_read for it in found.row_groups] == [True, True]
    assert all(it.rows_found for it in found.row_groups)


def test_a_sample_has_values_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    lists = pa.array([[n, n + 1] for n in range(0, 100_000, 2)])
    pq.write_table(pa.table({"a": pa.array(range(50_000)), "b": lists}), path)
    schema = pq.read_schema(path)
    table = TrialTable(schema=schema, partitions={str(path): {}})
    trials = LookupTrials(table, Access().resolver())
    monkeypatch.setenv("SECURE_BLOOM_MEMORY", "2MiB")
    for column, rows in (("a", 50_000), ("b", 100_000)):
        found = trials.values(str(path), 0, [column]).to_numpy()
        assert 4_000 < len(found) <= 2**21 // 256 + 64
        assert found[0] == 0
        assert found[-1] > 0.99 * rows
