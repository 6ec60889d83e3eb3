"""Iceberg tables under other keys: what users, manifests and old snapshots have afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import ManifestEntry
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.transforms import BucketTransform, IdentityTransform, VoidTransform
from pyiceberg.types import StringType

import secure_bloom as sb
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from testing.tables import KEYRING
from tests.lakes.iceberg.tables import (
    BY_CITY,
    NAME,
    SCHEMA,
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

EMAIL, CITY = 2, 3


def policy(email: str = "k_pii", column: str = "email", **options: Any) -> sb.KeyPolicy:
    return sb.KeyPolicy(
        footer_key="k_footer",
        columns={column: ColumnRule(path=column, key=email)},
        encryption=EncryptionOptions(**options),
    )


def read(snapshot: int | None = None) -> list[dict[str, Any]]:
    return sb.read_table(NAME, keys=KEYRING, snapshot=snapshot).sort_by("id").to_pylist()


def keys_of(snapshot: int | None = None) -> set[str]:
    used = sb.keys_used(NAME, keys=KEYRING, snapshot=snapshot)
    return {name for name, _ in used.files_by_key}


def head(table: Table) -> int:
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def bounds(table: Table) -> set[int]:
    """The columns with bounds in any entry that the current snapshot leads to, deleted or not."""
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return {
        column
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
        for bound in (entry.data_file.lower_bounds, entry.data_file.upper_bounds)
        for column in bound or {}
        if column < 1000
    }


def in_metadata(table: Table, text: bytes) -> bool:
    """Whether a text is in a manifest, or manifest list, of the current snapshot."""
    import fastavro

    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    paths = [snapshot.manifest_list, *(it.manifest_path for it in snapshot.manifests(table.io))]
    records = []
    for path in paths:
        with local(path).open("rb") as stream:
            records += list(fastavro.reader(stream))
    return text in repr(records).encode()


def new_files(table: Table) -> set[str]:
    return {path.name for path in local(table.location()).rglob("*.sb-*")}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("spec", [PartitionSpec(), BY_CITY], ids=["none", "city"])
def test_one_snapshot_encrypts_every_live_file_and_changes_no_row(
    catalog: SqlCatalog, version: int, spec: PartitionSpec
) -> None:
    table = people(catalog, version=version, spec=spec)
    before, old, first = all_rows(table), data_files(table), head(table)
    totals = dict(table.current_snapshot().summary.additional_properties)  # type: ignore[union-attr]
    report = sb.reencrypt(NAME, policy=policy(), keys=KEYRING)
    assert {file.status for file in report.files} == {"reencrypted"}
    assert (read(), read(first), all_rows(table, first)) == (before, before, before)
    assert (keys_of(), keys_of(first)) == ({"k_footer", "k_pii"}, set())
    (commit,) = report.commits
    assert (commit.operation, len(commit.files), commit.version) == (
        "replace",
        len(old),
        head(table),
    )
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary.operation is Operation.REPLACE
    assert snapshot.parent_snapshot_id == first
    assert snapshot.summary["secure-bloom.operation"] == "reencrypt"
    for total in ("total-records", "total-data-files", "total-delete-files"):
        assert snapshot.summary[total] == totals[total]
    sizes = [local(path).stat().st_size for path in data_files(table)]
    assert snapshot.summary["total-files-size"] == str(sum(sizes))
    assert all(local(path).exists() for path in old)
    assert any("expires their snapshots" in note for note in report.notes)
    again = sb.reencrypt(NAME, policy=policy(), keys=KEYRING)
    assert {file.status for file in again.files} == {"unchanged"}
    assert (again.commits, again.notes) == ((), ())


def test_the_notes_name_the_engines_that_cannot_read_the_new_files(catalog: SqlCatalog) -> None:
    table = people(catalog, files=1)
    planned = sb.reencrypt(NAME, policy=policy(), keys=KEYRING, dry_run=True)
    done = sb.reencrypt(NAME, policy=policy(), keys=KEYRING)
    told = "pyiceberg, Iceberg's Java library (Spark) and DuckDB cannot read the new files"
    assert [told in note for note in planned.notes].count(True) == 1
    assert [note.startswith(told) for note in done.notes].count(True) == 1
    with pytest.raises(OSError, match="encrypted metadata"):
        table.refresh().scan().to_arrow()
    rotated = sb.rotate_keys(NAME, policy=policy(), keys=KEYRING, moves={"k_pii": "k_footer"})
    decrypted = sb.decrypt(NAME, keys=KEYRING)
    assert rotated.commits
    assert not any("cannot read" in note for note in (*rotated.notes, *decrypted.notes))
    assert table.refresh().scan().to_arrow().num_rows


def test_new_entries_have_what_is_true_of_the_new_files(catalog: SqlCatalog) -> None:
    table = people(catalog, spec=BY_CITY)
    old = {first_id(it): it for it in entries(table)}
    sb.reencrypt(NAME, policy=policy(), keys=KEYRING)
    new = {first_id(it): it for it in entries(table)}
    assert new.keys() == old.keys()
    for number, entry in new.items():
        file, before = entry.data_file, old[number].data_file
        assert file.file_size_in_bytes == local(file.file_path).stat().st_size
        # Of pages that have moved.
        assert file.split_offsets is None
        assert not file.column_sizes
        assert file.key_metadata is None
        assert entry.sequence_number == old[number].sequence_number
        assert entry.file_sequence_number == table.metadata.last_sequence_number
        assert dict(file.null_value_counts) == dict(before.null_value_counts)
        assert dict(file.value_counts) == dict(before.value_counts)
        assert (file.partition, file.spec_id) == (before.partition, before.spec_id)


def first_id(entry: ManifestEntry) -> tuple[Any, ...]:
    return entry.data_file.lower_bounds[1], entry.data_file.partition


def test_bounds_of_encrypted_columns_leave_the_manifests_and_others_stay(
    catalog: SqlCatalog,
) -> None:
    table = people(catalog)
    # Entries of deleted files have bounds too: of an overwrite, and of our own snapshot.
    table.overwrite(rows(200), overwrite_filter="id >= 200")
    sb.add_bloom_filters(NAME, columns=["email"])
    assert bounds(table) == {1, EMAIL, CITY}
    report = sb.reencrypt(NAME, policy=policy(), keys=KEYRING)
    assert bounds(table) == {1, CITY}
    assert not in_metadata(table, b"user")
    assert any("write.metadata.metrics.column" in note for note in report.notes)
    assert len(read()) == 300
    # A scan still leaves out files by the bounds of other columns.
    assert len(list(table.scan(row_filter="id < 100").plan_files())) == 1


def test_bounds_leave_the_manifests_of_files_that_are_encrypted_already(
    catalog: SqlCatalog,
) -> None:
    """As a writer has them that encrypts files, and does not mind what its manifests show."""
    table = people(catalog)
    shown = {first_id(it)[0]: it.data_file.lower_bounds for it in entries(table)}
    sb.reencrypt(NAME, policy=policy(), keys=KEYRING)
    with table.refresh().transaction() as change, change.update_snapshot().overwrite() as snapshot:
        for entry in entries(table)[:1]:
            file = entry.data_file
            snapshot.delete_data_file(file)
            again = type(file)(*(file[position] for position in range(len(file))))
            again.spec_id = file.spec_id
            again[10] = shown[file.lower_bounds[1]]
            snapshot.append_data_file(again)
    assert EMAIL in bounds(table)
    files, size = data_files(table), len(new_files(table))
    dry = sb.reencrypt(NAME, policy=policy(), keys=KEYRING, dry_run=True)
    report = sb.reencrypt(NAME, policy=policy(), keys=KEYRING)
    assert {file.status for file in report.files} == {"unchanged"}
    (commit,) = report.commits
    assert (commit.files, commit.metrics["secure-bloom.updated-metrics"]) == ((), "1")
    assert dry.commits[0].metrics == commit.metrics
    assert bounds(table) == {1, CITY}
    assert (data_files(table), len(new_files(table))) == (files, size)
    assert len(read()) == 300
    assert sb.reencrypt(NAME, policy=policy(), keys=KEYRING).commits == ()


@pytest.mark.parametrize("material", [False, True], ids=["inside", "beside"])
def test_keys_of_a_table_are_rotated_by_a_commit(catalog: SqlCatalog, material: bool) -> None:
    table = people(catalog)
    before = all_rows(table)
    sb.reencrypt(NAME, policy=policy(internal_storage=not material), keys=KEYRING)
    first, old = head(table), {first_id(it): it.data_file for it in entries(table)}
    assert sum("_KEY_MATERIAL" in name for name in new_files(table)) == (3 if material else 0)
    moves = {"k_pii": "k_finance"}
    shown = sb.rotate_keys(NAME, policy=policy(), keys=KEYRING, moves=moves, dry_run=True)
    assert [(it.version, len(it.files)) for it in shown.commits] == [(None, 3)]
    assert head(table) == first
    report = sb.rotate_keys(NAME, policy=policy(), keys=KEYRING, moves=moves)
    assert {file.status for file in report.files} == {"rotated"}
    assert (read(), read(first)) == (before, before)
    assert (keys_of(), keys_of(first)) == ({"k_footer", "k_finance"}, {"k_footer", "k_pii"})
    for entry in entries(table):
        # Pages lie where they lay: what is said of them is carried.
        new, was = entry.data_file, old[first_id(entry)]
        assert new.file_path != was.file_path
        assert new.file_size_in_bytes == local(new.file_path).stat().st_size
        assert new.split_offsets == was.split_offsets
    assert bounds(table) == {1, CITY}
    if material:
        for path in map(local, data_files(table)):
            assert (path.parent / f"_KEY_MATERIAL_FOR_{path.name}.json").exists()
    again = sb.rotate_keys(NAME, policy=policy("k_finance"), keys=KEYRING)
    assert {file.status for file in again.files} == {"unchanged"}
    assert (again.commits, again.notes) == ((), ())


def test_a_table_is_decrypted_by_a_commit(catalog: SqlCatalog) -> None:
    table = people(catalog)
    before = all_rows(table)
    sb.reencrypt(NAME, policy=policy(), keys=KEYRING)
    first = head(table)
    dry = sb.decrypt(NAME, policy=policy(), keys=KEYRING, dry_run=True)
    assert (len(dry.commits[0].files), head(table)) == (3, first)
    report = sb.decrypt(NAME, policy=policy(), keys=KEYRING, commit_every=2)
    assert [len(it.files) for it in report.commits] == [2, 1]
    assert all_rows(table) == before == read(first)
    assert keys_of() == set()
    again = sb.decrypt(NAME, policy=policy(), keys=KEYRING)
    assert {file.status for file in again.files} == {"unchanged"}
    assert again.commits == ()
    with pytest.raises(PolicyError, match="output is for files"):
        sb.decrypt(NAME, keys=KEYRING, output=local(table.location()).parent / "clear")


VERBS: list[Callable[[], sb.RekeyReport]] = [
    lambda: sb.reencrypt(NAME, policy=policy("k_finance"), keys=KEYRING),
    lambda: sb.rotate_keys(NAME, policy=policy("k_finance"), keys=KEYRING),
    lambda: sb.decrypt(NAME, policy=policy(), keys=KEYRING),
]


@pytest.mark.parametrize("verb", VERBS, ids=["reencrypt", "rotate", "decrypt"])
def test_deletes_go_on_to_apply(catalog: SqlCatalog, verb: Callable[[], sb.RekeyReport]) -> None:
    table = people(catalog)
    sb.reencrypt(NAME, policy=policy(), keys=KEYRING)
    paths = data_files(table)
    delete_equal(table, [7, 150], "eq")
    delete_positions(table, {paths[0]: [10, 11], paths[1]: [12]}, [], "pos")
    delete_positions(table, paths[0], [20], "more")
    table.refresh().append(rows(7, 1))  # comes after the deletes, so it stays
    sb.reencrypt(NAME, policy=policy(), keys=KEYRING)
    before, first = read(), head(table)
    assert len(before) == 295
    numbers = sorted(it.sequence_number or 0 for it in entries(table) if not it.data_file.content)
    report = verb()
    assert len(report.commits[0].files) == 4
    assert (read(), read(first)) == (before, before)
    data = [it for it in entries(table) if not it.data_file.content]
    assert sorted(it.sequence_number or 0 for it in data) == numbers


def test_values_in_delete_files_are_refused_by_name(catalog: SqlCatalog) -> None:
    table = people(catalog)
    emails = pa.table({"email": ["user7@example.org"]})
    delete_equal(table, emails, "eq")
    files, first = new_files(table), head(table)
    with pytest.raises(UnsupportedFeatureError, match="values of email in clear") as caught:
        sb.reencrypt(NAME, policy=policy(), keys=KEYRING)
    assert "user7" not in str(caught.value)
    assert str(caught.value.path).endswith("eq.parquet")
    assert (new_files(table), head(table)) == (files, first)
    # Of a column without a key it may stay.
    assert sb.reencrypt(NAME, policy=policy(column="city"), keys=KEYRING).commits
    assert len(read()) == 299


def test_a_column_beside_the_keys_of_a_delete_is_one_of_its_values(catalog: SqlCatalog) -> None:
    """A writer may keep whole rows in an equality delete file; its manifest names the keys."""
    table = people(catalog)
    delete_equal(table, rows(7, 1), "whole", equality_ids=[1])
    with pytest.raises(UnsupportedFeatureError, match="values of email in clear"):
        sb.reencrypt(NAME, policy=policy(), keys=KEYRING)


@pytest.mark.parametrize("transform", [IdentityTransform(), BucketTransform(4)], ids=str)
def test_a_partition_of_a_column_with_a_key_is_refused_by_name(
    catalog: SqlCatalog, transform: Any
) -> None:
    table = people(catalog, files=1)
    with table.update_spec() as update:
        update.add_field("city", transform, "part")
    if isinstance(transform, IdentityTransform):
        table.append(rows(100))
    with pytest.raises(UnsupportedFeatureError, match="partitioned by city"):
        sb.reencrypt(NAME, policy=policy(column="city"), keys=KEYRING)
    assert new_files(table) == set()
    # Rows of the old spec still show the values, when the table has no such partition any more.
    with table.update_spec() as update:
        update.remove_field("part")
    if isinstance(transform, IdentityTransform):
        with pytest.raises(UnsupportedFeatureError, match="partitioned by city"):
            sb.reencrypt(NAME, policy=policy(column="city"), keys=KEYRING)
        table.overwrite(rows(0))
    assert sb.reencrypt(NAME, policy=policy(column="city"), keys=KEYRING).commits
    assert str(VoidTransform()) == "void"


def test_columns_go_by_the_names_of_the_table(catalog: SqlCatalog) -> None:
    table = people(catalog)
    with table.update_schema() as update:
        update.rename_column("email", "mail")
    with pytest.raises(PolicyError, match="no column email"):
        sb.reencrypt(NAME, policy=policy(), keys=KEYRING)
    with pytest.raises(PolicyError, match="no column emial"):
        sb.reencrypt(NAME, policy=policy(column="emial"), keys=KEYRING)
    wanted = policy(column="mail")
    report = sb.reencrypt(NAME, policy=wanted, keys=KEYRING)
    keys = {it.column: it.key for it in report.files[0].columns}
    assert keys == {"id": None, "mail": "k_pii", "city": None}
    assert bounds(table) == {1, CITY}
    assert len(read()) == 300
    assert sb.rotate_keys(NAME, policy=policy("k_finance", "mail"), keys=KEYRING).commits


def test_a_column_that_was_dropped_and_made_again_is_encrypted_in_old_files_too(
    catalog: SqlCatalog,
) -> None:
    table = people(catalog, files=1)
    with table.update_schema() as update:
        update.delete_column("email")
    with table.update_schema() as update:
        update.add_column("email", StringType())
    number = table.schema().find_field("email").field_id
    table.append(rows(100).select(["id", "email", "city"]))
    report = sb.reencrypt(NAME, policy=policy(), keys=KEYRING)
    for file in report.files:
        (key,) = {it.key for it in file.columns if it.column.startswith("email")}
        assert key == "k_pii"
    assert not bounds(table) & {EMAIL, number}
    assert not in_metadata(table, b"user")
    assert [row["email"] for row in read()][99:101] == [None, "user100@example.org"]
    rotated = sb.rotate_keys(NAME, policy=policy("k_finance"), keys=KEYRING)
    assert {file.status for file in rotated.files} == {"rotated"}
    assert keys_of() == {"k_footer", "k_finance"}
    assert sb.reencrypt(NAME, policy=policy("k_finance"), keys=KEYRING).commits == ()


def test_files_are_chosen_and_the_others_keep_their_bounds(catalog: SqlCatalog) -> None:
    table = people(catalog)
    first = head(table)
    table.append(rows(300))
    report = sb.reencrypt(NAME, policy=policy(), keys=KEYRING, since=first)
    assert len(report.files) == 1
    report = sb.reencrypt(NAME, policy=policy(), keys=KEYRING, where="id < 100")
    assert [len(it.files) for it in report.commits] == [1]
    assert EMAIL in bounds(table)
    report = sb.reencrypt(NAME, policy=policy(), keys=KEYRING, commit_every=1)
    assert sum(len(it.files) for it in report.commits) == 2
    assert bounds(table) == {1, CITY}
    assert len(read()) == 400


def test_a_branch_moves_alone(catalog: SqlCatalog) -> None:
    table = people(catalog)
    first = head(table)
    table.manage_snapshots().create_branch(first, "audit").commit()
    report = sb.reencrypt(NAME, policy=policy(), keys=KEYRING, branch="audit")
    refs = table.refresh().metadata.refs
    assert (refs["audit"].snapshot_id, refs["main"].snapshot_id) == (
        report.commits[0].version,
        first,
    )


def test_others_that_write_meanwhile(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that came or went are as the others left them, and no new file is left over."""
    table = people(catalog)

    def change() -> None:
        table.append(rows(900))
        table.delete("id = 5")

    material = policy(internal_storage=False)
    with committed_meanwhile(monkeypatch, change):
        report = sb.reencrypt(NAME, policy=material, keys=KEYRING)
    assert len(report.commits[0].files) == 2
    (gone,) = [file for file in report.files if file.status == "unchanged"]
    assert "took it out" in gone.notes[0]
    assert [row["id"] for row in read()] == [i for i in [*range(300), *range(900, 1000)] if i != 5]
    assert len(new_files(table)) == 4  # two data files and their key material


def test_a_damaged_file_fails_and_leaves_nothing_of_its_new_one(catalog: SqlCatalog) -> None:
    table = people(catalog)
    bad = local(data_files(table)[0])
    content = bytearray(bad.read_bytes())
    pages = len(content) - 8 - int.from_bytes(content[-8:-4], "little") - 4
    content[4 : 4 + pages] = bytes(pages)
    bad.write_bytes(content)
    report = sb.reencrypt(NAME, policy=policy(internal_storage=False), keys=KEYRING)
    assert [Path(file.path) for file in report.failed] == [bad]
    assert len(report.commits[0].files) == 2
    assert len(new_files(table)) == 4
    # A file that stays in clear keeps its entry.
    assert EMAIL in bounds(table)


def test_options_of_files_are_refused(catalog: SqlCatalog) -> None:
    people(catalog, files=1)
    with pytest.raises(PolicyError, match="output is for files"):
        sb.reencrypt(NAME, policy=policy(), keys=KEYRING, output="elsewhere")
    with pytest.raises(PolicyError, match="commit_every"):
        sb.rotate_keys(NAME, policy=policy(), keys=KEYRING, commit_every=0)
    with pytest.raises(PolicyError, match="encrypts nothing"):
        sb.reencrypt(NAME, policy=sb.KeyPolicy(), keys=KEYRING)


@pytest.mark.parametrize("name", ["write.data.path", "write.metadata.path"])
def test_an_audit_looks_for_old_files_in_each_folder_of_the_table(
    catalog: SqlCatalog, tmp_path: Path, name: str
) -> None:
    """Older snapshots hold the column in clear, wherever the table's properties put files."""
    policy = tmp_path / "policy.toml"
    policy.write_text('[footer]\nkey = "k"\n[columns.email]\nkey = "k"\n')
    table = people(catalog, files=2, **{name: (tmp_path / "elsewhere").as_uri()})
    old = {str(local(path)) for path in data_files(table)}
    sb.add_bloom_filters(NAME, columns=["email"])
    report = sb.audit(NAME, policy=policy, without_keys=True)
    shown = {it.path for it in report.findings if it.id == "column-in-clear"}
    assert shown == old | {str(local(path)) for path in data_files(table)}
    (fix,) = {it.fix for it in report.findings if it.path in old}
    assert "expire_snapshots" in fix


@pytest.mark.parametrize("below", ["", "db", "db/people", "db/people/data"])
def test_a_folder_with_a_table_of_the_catalog_is_judged_by_the_table(
    catalog: SqlCatalog, tmp_path: Path, below: str
) -> None:
    """Each file counts once: as a live one, or as one that the table does not name."""
    policy = tmp_path / "policy.toml"
    policy.write_text('[footer]\nkey = "k"\n[columns.email]\nkey = "k"\n')
    table = people(catalog, files=1)
    (old,) = (str(local(path)) for path in data_files(table))
    table.delete("id < 50")
    given = [str(tmp_path / "warehouse" / below).rstrip("/"), NAME]
    for paths in (given, given[::-1]):
        report = sb.audit(paths, policy=policy, without_keys=True)
        found = {it.id for it in report.findings}
        assert found == {"column-in-clear", "footer-not-encrypted", "table-log-in-clear"}
        in_clear = [it for it in report.findings if it.id == "column-in-clear"]
        shown = {it.path: it for it in in_clear}
        assert len(shown) == len(in_clear)
        assert list(report.paths) == [str(local(path)) for path in data_files(table)]
        assert shown.keys() == {old, *report.paths}
        assert "the current version of the table does not name" in shown[old].what
        assert "expire_snapshots" in shown[old].fix
        used = sb.keys_used(paths)
        assert used.files == sb.keys_used(NAME).files
        assert not used.incomplete
        assert sb.read_table(paths).num_rows == sb.read_table(NAME).num_rows
    with pytest.raises(PolicyError, match="no file of the table's version lies there"):
        sb.read_table([NAME, old])


def test_only_the_given_table_of_the_catalog_counts_as_looked_at(
    catalog: SqlCatalog, tmp_path: Path
) -> None:
    people(catalog, files=1)
    catalog.create_table("db.others", SCHEMA).append(rows(0))
    report = sb.audit([str(tmp_path / "warehouse"), NAME], policy=sb.KeyPolicy())
    (refused,) = [it for it in report.findings if it.id == "unchecked-feature"]
    assert Path(refused.path or "").name == "others"
    with pytest.raises(UnsupportedFeatureError, match="own log"):
        sb.keys_used([str(tmp_path / "warehouse"), NAME])
