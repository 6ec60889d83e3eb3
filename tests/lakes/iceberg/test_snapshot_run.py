"""Filters come into an Iceberg table by one snapshot `replace`; pyiceberg reads the same rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, ManifestWriter
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.snapshots import Operation
from pyiceberg.types import NestedField, StringType, StructType

import secure_bloom as sb
from secure_bloom.errors import FileChangedError, PolicyError, UnsupportedFeatureError
from secure_bloom.lakes.iceberg import replacing_snapshot
from tests.lakes.iceberg.tables import (
    BY_CITY,
    NAME,
    all_rows,
    committed_meanwhile,
    data_files,
    delete_equal,
    delete_positions,
    entries,
    local,
    people,
    rows,
)


def files_with_filters() -> list[str]:
    """The live data files of the table that have a filter of ``email``."""
    return sorted(
        file.path
        for file in sb.inspect(NAME).files
        if any(it.column == "email" and it.bloom for it in file.row_groups[0].columns)
    )


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("spec", [PartitionSpec(), BY_CITY], ids=["none", "city"])
def test_one_snapshot_has_the_same_rows_in_new_files(
    catalog: SqlCatalog, version: int, spec: PartitionSpec
) -> None:
    table = people(catalog, version=version, spec=spec)
    before, old, head = all_rows(table), data_files(table), table.current_snapshot()
    assert head is not None
    assert head.summary is not None
    report = sb.add_bloom_filters(NAME, columns=["email"])
    new, snapshot = data_files(table), table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert len(report.commits) == 1
    assert snapshot.snapshot_id == report.commits[0].version
    assert snapshot.parent_snapshot_id == head.snapshot_id
    assert snapshot.summary.operation is Operation.REPLACE
    assert not {*old} & {*new}
    assert len(old) == len(new)
    assert files_with_filters() == [str(local(path)) for path in new]
    assert all_rows(table) == before
    assert all_rows(table, head.snapshot_id) == before
    sizes = sum(local(path).stat().st_size for path in new)
    assert snapshot.summary["total-files-size"] == str(sizes)
    for total in ("total-records", "total-data-files", "total-delete-files"):
        assert snapshot.summary[total] == head.summary[total]
    again = sb.add_bloom_filters(NAME, columns=["email"])
    assert again.commits == ()
    assert data_files(table) == new


def test_an_entry_keeps_all_but_path_size_and_file_sequence_number(catalog: SqlCatalog) -> None:
    table = people(catalog, spec=BY_CITY)
    before = sorted(entries(table), key=lambda it: it.data_file.file_path)
    sb.add_bloom_filters(NAME, columns=["email"])
    after = sorted(entries(table), key=lambda it: it.data_file.file_path)
    unlike = {1, 5}

    def kept(entry: Any) -> list[object]:
        data = entry.data_file
        values = [data[i] for i in range(len(data)) if i not in unlike]
        return [dict(it) if isinstance(it, Mapping) else it for it in values]

    by_rows = {str(kept(it)): it for it in after}
    for entry in before:
        new = by_rows[str(kept(entry))]
        assert new.sequence_number == entry.sequence_number
        assert new.file_sequence_number == table.metadata.last_sequence_number
        assert new.data_file.spec_id == entry.data_file.spec_id


def test_manifests_of_many_appends_become_one(catalog: SqlCatalog) -> None:
    table = people(catalog, files=5)
    before = all_rows(table)
    sb.add_bloom_filters(NAME, columns=["email"], where="id < 400")
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    found = [
        (it.added_files_count, it.existing_files_count, it.deleted_files_count)
        for it in snapshot.manifests(table.io)
    ]
    # The new files, the manifest that has none of the old ones, and the others together.
    assert sorted(found) == [(0, 0, 4), (1, 0, 0), (4, 0, 0)]
    assert all_rows(table) == before
    table.append(rows(500))
    assert len(all_rows(table)) == 600


def test_entries_of_new_files_are_made_one_by_one(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them at once would take gigabytes; nor does one manifest have all."""
    table = people(catalog, files=5)
    before, waiting, most = all_rows(table), 0, 0
    moved, add_entry = replacing_snapshot._moved, ManifestWriter.add_entry

    def counted(*given: Any) -> Any:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        return moved(*given)

    def added(writer: ManifestWriter, entry: ManifestEntry) -> ManifestWriter:
        nonlocal waiting
        waiting -= entry.status == ManifestEntryStatus.ADDED
        return add_entry(writer, entry)

    monkeypatch.setattr(replacing_snapshot, "_moved", counted)
    monkeypatch.setattr(ManifestWriter, "add_entry", added)
    size_of_two = 5_000
    monkeypatch.setattr(replacing_snapshot, "_FULL_BYTES", size_of_two)
    sb.add_bloom_filters(NAME, columns=["email"])
    assert (waiting, most) == (0, 1)
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    counts = [it.added_files_count for it in snapshot.manifests(table.io) if it.added_files_count]
    assert sum(counts) == 5
    assert len(counts) > 1
    assert all_rows(table) == before


def test_equality_deletes_go_on_to_apply(catalog: SqlCatalog) -> None:
    table = people(catalog)
    delete_equal(table, [7, 150], "eq")
    table.append(rows(7, 1))  # comes after the delete, so it stays
    numbers = {it.data_file.file_path: it.sequence_number for it in entries(table)}
    sb.add_bloom_filters(NAME, columns=["email"])
    deletes = [it for it in entries(table) if it.data_file.equality_ids]
    data = [it for it in entries(table) if not it.data_file.equality_ids]
    assert len(deletes) == 1
    assert len(data) == 4
    # pyiceberg reads no equality deletes, so the numbers are compared.
    assert sorted(it.sequence_number for it in data) == [1, 2, 3, 5]
    assert deletes[0].sequence_number == 4 == numbers[deletes[0].data_file.file_path]


def test_position_deletes_are_carried_to_the_new_file(catalog: SqlCatalog) -> None:
    table = people(catalog)
    first, second, _ = data_files(table)
    delete_positions(table, first, [3, 4], "one")
    delete_positions(table, {first: [5], second: [1, 2]}, [], "two")
    before, head = all_rows(table), table.current_snapshot()
    assert len(before) == 295
    report = sb.add_bloom_filters(NAME, columns=["email"], commit_every=1)
    assert {file.status for file in report.files} == {"added"}
    assert all_rows(table) == before
    assert sb.read_table(NAME).sort_by("id").to_pylist() == before
    assert head is not None
    assert all_rows(table, head.snapshot_id) == before
    deletes = [it for it in entries(table) if it.data_file.content]
    # The old delete files name no live data file any more.
    assert sorted(it.data_file.record_count for it in deletes) == [2, 3]
    assert all(".sb-" in it.data_file.file_path for it in deletes)
    assert sb.add_bloom_filters(NAME, columns=["email"]).commits == ()
    table.append(rows(300))
    assert len(all_rows(table)) == 395


def test_a_delete_file_stays_while_it_names_a_live_file(catalog: SqlCatalog) -> None:
    table = people(catalog)
    first, second, _ = sorted(data_files(table), key=lambda it: first_id(local(it)))
    delete_positions(table, {first: [5], second: [1, 2]}, [], "both")
    before = all_rows(table)

    def delete_files() -> list[str]:
        return [it.data_file.file_path for it in entries(table) if it.data_file.content]

    (both,) = delete_files()
    for where, is_there in (("id < 100", True), (None, False)):
        sb.add_bloom_filters(NAME, columns=["email"], where=where)
        assert all_rows(table) == before
        assert len(delete_files()) == 2
        assert (both in delete_files()) == is_there


def first_id(path: Path) -> int:
    found: int = pq.read_table(path)["id"][0].as_py()
    return found


def test_deletes_that_are_rolled_back_meanwhile_keep_the_old_file(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new file has the positions of delete files that are gone."""
    table = people(catalog)
    head = table.current_snapshot()
    assert head is not None
    delete_positions(table, data_files(table)[0], [3, 4], "pos")

    def rolled_back() -> None:
        table.refresh().manage_snapshots().rollback_to_snapshot(head.snapshot_id).commit()

    with committed_meanwhile(monkeypatch, rolled_back):
        report = sb.add_bloom_filters(NAME, columns=["email"])
    assert len(all_rows(table)) == 300
    assert len(report.commits[0].files) == 2
    assert not list(local(table.location()).rglob("*.deletes.parquet"))


def test_a_late_delete_keeps_the_old_file(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people(catalog)
    first = data_files(table)[0]
    with committed_meanwhile(monkeypatch, lambda: delete_positions(table, first, [0], "late")):
        report = sb.add_bloom_filters(NAME, columns=["email"])
    assert len(all_rows(table)) == 299
    assert first in data_files(table)
    assert len(report.commits[0].files) == 2
    (gone,) = [file for file in report.files if file.notes]
    assert "another writer" in gone.notes[0]
    # Nothing is left that no snapshot names.
    named = {local(path) for path in data_files(table)} | {
        local(it.removed) for it in report.commits[0].files
    }
    found = set((local(table.location()) / "data").glob("*.parquet"))
    assert {path.name for path in found - named} == {"late.parquet"}


def test_an_append_meanwhile_stays(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = people(catalog)
    with committed_meanwhile(monkeypatch, lambda: table.append(rows(900))):
        report = sb.add_bloom_filters(NAME, columns=["email"])
    assert len(all_rows(table)) == 400
    assert len(report.commits[0].files) == 3
    attempts = set((local(table.location()) / "metadata").glob("snap-*.avro"))
    assert len(attempts) == 5  # three appends, another one, ours: no attempt that failed


def test_a_file_that_was_rewritten_meanwhile_stays_so(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people(catalog)
    with committed_meanwhile(monkeypatch, lambda: table.delete("id = 5")):
        report = sb.add_bloom_filters(NAME, columns=["email"])
    assert [row["id"] for row in all_rows(table)] == [i for i in range(300) if i != 5]
    assert len(report.commits[0].files) == 2


def test_a_table_that_is_dropped_meanwhile(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people(catalog)

    def replaced() -> None:
        catalog.drop_table("db.people")
        people(catalog, files=1)

    with (
        committed_meanwhile(monkeypatch, replaced),
        pytest.raises(FileChangedError, match="was dropped"),
    ):
        sb.add_bloom_filters(NAME, columns=["email"])
    assert len(all_rows(catalog.load_table("db.people"))) == 100
    assert not list(local(table.location()).rglob("*.sb-*"))


def test_where_since_and_commit_every(catalog: SqlCatalog) -> None:
    table = people(catalog, spec=BY_CITY)
    since = table.current_snapshot()
    assert since is not None
    dry = sb.add_bloom_filters(NAME, columns=["email"], where="city = 'city1'", dry_run=True)
    assert len(dry.commits[0].files) == 3
    assert dry.commits[0].version is None
    assert len(table.refresh().snapshots()) == 3
    table.append(rows(1000))
    report = sb.add_bloom_filters(NAME, columns=["email"], since=since.snapshot_id)
    assert len(report.commits[0].files) == 3
    report = sb.add_bloom_filters(NAME, columns=["email"], where="id >= 200 and id < 300")
    assert len(report.commits[0].files) == 3
    report = sb.add_bloom_filters(NAME, columns=["email"], commit_every=4)
    # Twelve files in three steps; six of them have filters, and need no commit.
    assert sum(len(commit.files) for commit in report.commits) == 6
    assert 2 <= len(report.commits) <= 3
    assert len(all_rows(table)) == 400


def test_a_branch_moves_alone(catalog: SqlCatalog) -> None:
    table = people(catalog)
    head = table.current_snapshot()
    assert head is not None
    table.manage_snapshots().create_branch(
        head.snapshot_id, "audit", max_ref_age_ms=5000, min_snapshots_to_keep=3
    ).create_tag(head.snapshot_id, "v1").commit()
    report = sb.add_bloom_filters(NAME, columns=["email"], branch="audit")
    refs = table.refresh().metadata.refs
    assert refs["audit"].snapshot_id == report.commits[0].version
    assert refs["audit"].min_snapshots_to_keep == 3
    assert refs["audit"].max_ref_age_ms == 5000
    assert refs["main"].snapshot_id == refs["v1"].snapshot_id == head.snapshot_id
    with pytest.raises(PolicyError, match="is a tag"):
        sb.add_bloom_filters(NAME, columns=["email"], branch="v1")
    with pytest.raises(PolicyError, match="no branch x"):
        sb.add_bloom_filters(NAME, columns=["email"], branch="x")


def test_columns_go_by_the_names_of_the_table(catalog: SqlCatalog) -> None:
    table = people(catalog)
    with table.update_schema() as update:
        update.rename_column("email", "mail")
    report = sb.add_bloom_filters(NAME, columns=["mail"])
    assert {it.column for file in report.files for it in file.filters} == {"mail"}
    assert [v for f in sb.probe(NAME, "mail", "nobody").files for v in f.row_groups]
    with pytest.raises(PolicyError, match="no column email"):
        sb.add_bloom_filters(NAME, columns=["email"])


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"format-version": 3, "next-row-id": 100}, "format version 3"),
        ({"properties": {"encryption.key-id": "k"}}, "Iceberg's own keys"),
        ({"properties": {"write.py-location-provider.impl": "planted.Class"}}, "names a class"),
    ],
)
def test_tables_that_are_refused(catalog: SqlCatalog, changes: dict[str, Any], match: str) -> None:
    table = people(catalog, files=1)
    metadata = local(table.metadata_location)
    metadata.write_text(json.dumps({**json.loads(metadata.read_text()), **changes}))
    with pytest.raises(UnsupportedFeatureError, match=match):
        sb.add_bloom_filters(NAME, columns=["email"])
    assert len(table.refresh().snapshots()) == 1


def test_requests_that_make_no_sense(catalog: SqlCatalog) -> None:
    table = people(catalog, files=1)
    for given, match in (
        ({"in_place": True}, "in_place"),
        ({"output": "elsewhere"}, "output"),
        ({"commit_every": 0}, "commit_every"),
        ({"since": 1}, "no snapshot 1"),
        ({"where": "town = 'x'"}, "no column town"),
    ):
        with pytest.raises(PolicyError, match=match):
            sb.add_bloom_filters(NAME, columns=["email"], **given)
    for name in ("iceberg://lake/db.nobody", "iceberg://lake/no.table", "iceberg://sea/db.people"):
        with pytest.raises(PolicyError):
            sb.add_bloom_filters(name, columns=["email"])
    assert len(table.refresh().snapshots()) == 1


def test_a_table_without_rows(catalog: SqlCatalog) -> None:
    people(catalog, files=0)
    assert sb.add_bloom_filters(NAME, columns=["email"]).files == ()


def test_probe_knows_a_column_that_no_file_has_yet(catalog: SqlCatalog) -> None:
    table = people(catalog)
    with table.update_schema() as update:
        update.add_column("phone", StringType())
        update.add_column("home", StructType(NestedField(100, "zip", StringType(), required=False)))
    for column in ("phone", "home.zip"):
        report = sb.probe(NAME, column, ["555"])
        assert report.verdicts == {sb.Verdict.NO_FILTER}
        assert not report.failed
    with pytest.raises(sb.PolicyError, match="no column fone"):
        sb.probe(NAME, "fone", ["555"])
