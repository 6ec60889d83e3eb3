"""After `add`, every reader of Delta finds the same rows, at every version before and after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing import delta_logs as logs
from testing.delta_tables import (
    batch,
    data_files,
    deltalake,
    latest,
    named,
    rows,
    unfiltered,
    write_table,
)
from testing.table_readers import READERS, Rows, by_duckdb, deletion_vector

FEED = {"delta.enableChangeDataFeed": "true"}


def by_lake(folder: Path) -> str:
    return write_table(folder, configuration=FEED)


def by_polars(folder: Path) -> str:
    polars = pytest.importorskip("polars")
    for version in range(3):
        polars.from_arrow(batch(6 * version)).write_delta(str(folder), mode="append")
    return str(folder)


def by_hand(folder: Path) -> str:
    """Rows deleted by vectors, a partition path that means nothing, a checkpoint before the end."""
    names = ["a.parquet", "odd%20folder/b.parquet", "c.parquet"]
    (folder / "odd folder").mkdir(parents=True)
    adds = []
    for number, name in enumerate(names):
        path = folder / name.replace("%20", " ")
        pq.write_table(batch(6 * number).drop_columns("day"), path, row_group_size=4)
        values = {"day": None if number == 2 else "2026-11-20"}
        fields = {"partitionValues": values, "stats": '{"numRecords":6}'}
        adds.append(logs.add(name, path.stat().st_size, **fields))
    columns = [logs.column("id"), logs.column("email", "string"), logs.column("day", "string")]
    first = logs.start(*columns, features=["deletionVectors"], partitions=["day"])
    logs.commit(folder, 0, *first, *adds[:2])
    deleted = {**adds[0]["add"], "deletionVector": deletion_vector([0, 5])}
    logs.commit(folder, 1, {"add": deleted}, logs.remove(names[0]))
    logs.commit(folder, 2, adds[2])
    return str(folder)


TABLES: dict[str, Callable[[Path], str]] = {
    "deltalake": by_lake,
    "Polars": by_polars,
    "by hand": by_hand,
}


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return TABLES[request.param](tmp_path / "t")


def seen(table: str, version: int) -> dict[str, Rows]:
    # DataFusion refuses deletion vectors.
    has_vectors = "deletionVectors" in (
        deltalake.DeltaTable(table).protocol().reader_features or ()
    )
    return {
        name: read(table, version)
        for name, read in READERS.items()
        if name != "DataFusion" or not has_vectors
    }


def test_every_reader_finds_the_same_rows_at_every_version(table: str) -> None:
    last = latest(table)
    before = [seen(table, version) for version in range(last + 1)]
    sb.add_bloom_filters(table, columns=["email", "id"], commit_every=2)
    assert latest(table) > last
    assert [seen(table, version) for version in range(last + 1)] == before
    for version in range(last + 1, latest(table) + 1):
        assert seen(table, version) == before[-1]
    assert unfiltered(table, "email") == []


# The others in every run are asked about tables of all writers.
@pytest.mark.parametrize(
    "table",
    [pytest.param(it, marks=[pytest.mark.slow] * (it != "deltalake")) for it in TABLES],
    indirect=True,
)
def test_duckdb_finds_the_same_rows_at_every_version(table: str) -> None:
    last = latest(table)
    before = by_duckdb(table, range(last + 1))
    assert before[-1] == rows(table)
    sb.add_bloom_filters(table, columns=["email", "id"])
    assert by_duckdb(table, range(last + 2)) == [*before, before[-1]]


def test_deleted_rows_stay_deleted(tmp_path: Path) -> None:
    table = by_hand(tmp_path / "t")
    ids = [row["id"] for row in READERS["deltalake"](table, 2)]
    assert ids == [1, 2, 3, 4, *range(6, 18)]
    sb.add_bloom_filters(table, columns="id")
    vectors = [it.get("deletionVector") for it in named(table, 3, "add")]
    assert vectors.count(None) == 2
    assert {key for it in named(table, 3, "remove") for key in it} >= {"deletionVector"}
    assert [row["id"] for row in READERS["deltalake"](table, 3)] == ids


def test_vacuum_removes_the_old_files_and_no_new_one(tmp_path: Path) -> None:
    table = by_lake(tmp_path / "t")
    before, old = rows(table), data_files(table)
    sb.add_bloom_filters(table, columns="email")
    new = data_files(table) - old
    deltalake.DeltaTable(table).vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert data_files(table) == new
    assert rows(table) == before


def test_the_change_data_feed_shows_no_change(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", partitioned=False, configuration=FEED)

    def changes(first: int) -> list[dict[str, object]]:
        feed = deltalake.DeltaTable(table).load_cdf(starting_version=first)
        found = pa.table(feed.read_all()).to_pylist()
        return sorted(found, key=lambda row: (row["id"], row["_commit_version"]))

    before = changes(0)
    sb.add_bloom_filters(table, columns="email")
    assert len(before) == 18
    assert changes(0) == before
    assert changes(3) == []


def test_optimize_and_merge_go_on_from_a_commit_of_ours(tmp_path: Path) -> None:
    table = by_lake(tmp_path / "t")
    before = rows(table)
    sb.add_bloom_filters(table, columns="email")
    deltalake.DeltaTable(table).optimize.compact()
    assert rows(table) == before
    sb.add_bloom_filters(table, columns="email")
    changed = batch(0, 2).append_column("n", pa.array([1, 1]))
    merge = deltalake.DeltaTable(table).merge(
        changed.drop_columns("n"), "t.id = s.id", source_alias="s", target_alias="t"
    )
    merge.when_matched_update({"email": "'changed'"}).execute()
    sb.add_bloom_filters(table, columns="email")
    assert [row["email"] for row in rows(table)[:3]] == ["changed", "changed", before[2]["email"]]
    assert rows(table)[2:] == before[2:]
    assert unfiltered(table, "email") == []


def test_a_writer_that_planned_before_our_commit_notices_it(tmp_path: Path) -> None:
    """deltalake deletes rows of a file that our commit has taken out: one of both must lose."""
    table = by_lake(tmp_path / "t")
    before = rows(table)
    stale = deltalake.DeltaTable(table)
    sb.add_bloom_filters(table, columns="email")
    try:
        stale.delete("id = 3")
    except deltalake.exceptions.CommitFailedError:
        assert rows(table) == before
    else:
        assert rows(table) == [row for row in before if row["id"] != 3]
