"""A run on a Paimon table beside other writers: nothing comes back, nothing is lost."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pypaimon_rust")

import secure_bloom as sb
from secure_bloom.lakes.paimon import manifest_commit
from secure_bloom.lakes.paimon.snapshot import latest_snapshot
from secure_bloom.paimon.build import BuildOptions, build_table
from secure_bloom.paimon.column_filter import BuildReport
from secure_bloom.runs.target import GONE
from secure_bloom.storage import commit_files, dispatch
from testing.interleaving import Beside
from testing.paimon_tables import Warehouse, files_below, latest

OPTIONS = {"id": sb.paimon.IndexOptions(items=100, fpp=1e-6)}


@pytest.fixture
def lake(tmp_path: Path) -> Warehouse:
    return Warehouse(path=str(tmp_path))


@pytest.fixture(params=["0 b", "1 kb"])
def folder(lake: Warehouse, request: pytest.FixtureRequest) -> str:
    folder = lake.create(
        "id bigint, name string",
        file_index__in_manifest_threshold=request.param,
        row_tracking__enabled="true",
    )
    lake.insert([(1, "a"), (2, "b")])
    lake.insert([(3, "c"), (4, "d")])
    return folder


def build(
    folder: str, meanwhile: Callable[[], object], commit_every: int | None = None
) -> BuildReport:
    """Build the indexes. Another writer works once, before the first commit."""
    asked = BuildOptions(commit_every=commit_every)
    return build_table(folder, OPTIONS, asked, Beside([meanwhile]))


def statuses(report: BuildReport) -> list[str]:
    return [file.status for file in report.files]


def indexes(folder: str) -> list[str]:
    return [name for name in files_below(folder) if name.endswith(".index")]


def test_rows_of_another_writer_stay(lake: Warehouse, folder: str) -> None:
    report = build(folder, lambda: lake.insert([(5, "e")]))
    assert statuses(report) == ["built", "built"]
    assert [row["id"] for row in lake.rows()] == [1, 2, 3, 4, 5]
    assert latest(folder)["totalRecordCount"] == 5


def test_a_file_that_another_writer_took_away_does_not_come_back(
    lake: Warehouse, folder: str
) -> None:
    report = build(folder, lambda: lake.sql("delete from t where id = 1"))
    assert sorted(file.note or "" for file in report.files) == ["", GONE]
    assert [row["id"] for row in lake.rows()] == [2, 3, 4]
    # The index of the file that is gone is removed.
    assert len(indexes(folder)) in (0, 1)


def test_a_table_that_was_emptied_meanwhile_gets_no_snapshot(lake: Warehouse, folder: str) -> None:
    report = build(folder, lambda: lake.sql("truncate table t"))
    assert [file.note for file in report.files] == [GONE, GONE]
    assert report.commits == ()
    assert lake.rows() == []
    assert indexes(folder) == []


def test_the_index_of_another_run_is_kept(lake: Warehouse, folder: str) -> None:
    report = build(folder, lambda: sb.paimon.build_index(folder, ["name"]))
    assert statuses(report) == ["built", "built"]
    assert {file.kept for file in report.files} == {("name: bloom-filter",)}
    assert [row["id"] for row in lake.rows()] == [1, 2, 3, 4]


def test_a_column_that_was_renamed_meanwhile_gets_its_filters(lake: Warehouse, folder: str) -> None:
    def others() -> None:
        lake.sql("alter table t rename column id to number")
        sb.paimon.build_index(folder, ["name"])

    assert statuses(build(folder, others, commit_every=1)) == ["built", "built"]
    assert len(lake.rows("number < 9")) == 4
    # All files have both filters by now.
    assert statuses(sb.paimon.build_indexes(folder, ["number", "name"])) == ["unchanged"] * 2


def test_a_commit_that_fails_leaves_no_file(
    lake: Warehouse, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_below(folder)

    def fails(path: str, content: bytes, *, like: str) -> None:
        raise sb.PolicyError("the disk is gone")

    monkeypatch.setattr(commit_files, "create_file", fails)
    with pytest.raises(sb.PolicyError, match="the disk is gone"):
        build(folder, lambda: None)
    assert files_below(folder) == before


def test_an_unknown_outcome_removes_nothing(
    lake: Warehouse, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = dispatch.create_file

    def unknown(path: str, content: bytes, *, like: str) -> None:
        create(path, content, like=like)
        raise sb.UnfinishedWriteError("the network is gone")

    monkeypatch.setattr(commit_files, "create_file", unknown)
    with pytest.raises(sb.UnfinishedWriteError):
        build(folder, lambda: None)
    # The snapshot was created, and all that it names is there.
    assert latest(folder)["commitKind"] == "COMPACT"
    assert [row["id"] for row in lake.rows("id < 9")] == [1, 2, 3, 4]


def test_a_snapshot_that_was_created_before_an_error_counts(
    lake: Warehouse, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = dispatch.create_file

    def late(path: str, content: bytes, *, like: str) -> None:
        create(path, content, like=like)
        raise sb.PolicyError("the answer was lost")

    monkeypatch.setattr(commit_files, "create_file", late)
    report = build(folder, lambda: None)
    assert [commit.snapshot for commit in report.commits] == [3]
    assert [row["id"] for row in lake.rows("id < 9")] == [1, 2, 3, 4]


def test_an_index_that_was_replaced_never_has_the_same_entry_again(
    lake: Warehouse, tmp_path: Path
) -> None:
    folder = lake.create("id bigint, name string")
    lake.insert([(1, "a")])
    sb.paimon.build_index(folder, OPTIONS)
    first = latest(folder)
    sb.paimon.build_index(folder, ["name"])
    # The file as it was after the first run, by hand: its embedded index is the same again.
    table = latest_snapshot(folder)
    assert table is not None
    [entry] = table.live.values()
    old = sb.paimon.FileIndex.from_bytes(entry.file["_EMBEDDED_FILE_INDEX"])
    again = sb.paimon.FileIndex(columns=tuple(c for c in old.columns if c.name == "id"))
    index = manifest_commit.NewIndex(entry=entry, name=None, embedded=again.to_bytes())
    assert manifest_commit.commit(folder, table, [index], []).snapshot is None
    assert latest(folder)["id"] == first["id"] + 1


def test_an_interrupt_removes_the_indexes(lake: Warehouse, folder: str) -> None:
    before = files_below(folder)

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(folder, interrupted)
    assert files_below(folder) == before


def test_a_damaged_file_is_reported_and_others_are_done(lake: Warehouse, folder: str) -> None:
    path = sorted(map(str, Path(folder).rglob("data-*.parquet")))[0]
    Path(path).write_bytes(b"PAR1" + bytes(500) + b"PAR1")
    report = build(folder, lambda: None)
    assert statuses(report) == ["failed", "built"]
    assert len(report.commits[0].files) == 1


def test_a_damaged_index_is_an_error_unless_it_is_to_be_replaced(
    lake: Warehouse, tmp_path: Path
) -> None:
    folder = lake.create("id bigint, name string", file_index__in_manifest_threshold="0 b")
    lake.insert([(1, "a")])
    sb.paimon.build_index(folder, ["name"])
    [name] = indexes(folder)
    Path(folder, name).write_bytes(b"no index")
    [report] = sb.paimon.build_indexes(folder, OPTIONS).files
    assert report.status == "failed"
    assert "--replace-damaged" in str(report.hint)
    [report] = sb.paimon.build_indexes(folder, OPTIONS, replace_damaged=True).files
    assert (report.status, report.kept) == ("built", ())
    assert len(lake.rows("id = 1")) == 1


def test_nothing_is_written_through_a_link_below_the_table(lake: Warehouse, tmp_path: Path) -> None:
    folder = lake.create("id bigint, name string", file_index__in_manifest_threshold="0 b")
    lake.insert([(1, "a")])
    bucket, aside = Path(folder, "bucket-0"), tmp_path / "elsewhere"
    bucket.rename(aside)
    bucket.symlink_to(aside)
    before = files_below(str(aside))
    assert statuses(build(folder, lambda: None)) == ["failed"]
    assert files_below(str(aside)) == before


def test_the_hint_of_the_newest_snapshot_is_written_through_no_link(
    lake: Warehouse, tmp_path: Path
) -> None:
    """The hint of another table would name a snapshot that is not there."""
    folder = lake.create("id bigint, name string")
    lake.insert([(1, "a")])
    hint, other = Path(folder, "snapshot", "LATEST"), tmp_path / "elsewhere"
    hint.rename(other)
    hint.symlink_to(other)
    before = other.read_bytes()
    assert statuses(build(folder, lambda: None)) == ["built"]
    assert other.read_bytes() == before
    assert len(lake.rows("id = 1")) == 1


def test_names_of_indexes_are_durable_before_a_snapshot_has_them(
    lake: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut must not take away the name of an index that a snapshot lists."""
    folder = lake.create("id bigint, name string", file_index__in_manifest_threshold="0 b")
    for number in range(5):
        lake.insert([(number, "a")])
    events: list[str] = []
    link, fsync = os.link, os.fsync

    def linking(source: str, name: str, **options: Any) -> None:
        events.append("snapshot" if name.startswith("snapshot-") else Path(name).suffix)
        link(source, name, **options)

    def syncing(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            events.append(f"sync {Path(f'/proc/self/fd/{fd}').readlink().name}")
        fsync(fd)

    monkeypatch.setattr(os, "link", linking)
    monkeypatch.setattr(os, "fsync", syncing)
    sb.paimon.build_index(folder, ["id"], jobs=1)
    last = max(at for at, event in enumerate(events) if event == ".index")
    assert events.count(".index") == 5
    assert events.count("sync bucket-0") == 1
    assert last < events.index("sync bucket-0") < events.index("snapshot")
