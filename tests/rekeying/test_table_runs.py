"""Delta tables under other keys: what users, the log and the old versions have afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.adding.report import file_notes
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import unlock
from secure_bloom.runs.target import GONE, GONE_TOGETHER, NOTHING_WRITTEN
from secure_bloom.storage import commit_files, open_input
from secure_bloom.storage.dispatch import create_file
from testing import delta_logs as logs
from testing.delta_tables import batch, data_files, deltalake, latest, named, rows, write_table
from testing.table_readers import READERS, deletion_vector
from testing.tables import KEYRING


def policy(email: str = "k_pii", **options: Any) -> sb.KeyPolicy:
    return sb.KeyPolicy(
        footer_key="k_footer",
        columns={"email": ColumnRule(path="email", key=email)},
        encryption=EncryptionOptions(**options),
    )


@pytest.fixture
def table(tmp_path: Path) -> str:
    return write_table(tmp_path / "t", 2)


def read(table: str | Path, version: int | None = None) -> list[dict[str, Any]]:
    found = sb.read_table(table, keys=KEYRING, version=version).to_pylist()
    return sorted(found, key=lambda row: int(row["id"]))


def keys_of(table: str, version: int | None = None) -> set[str]:
    used = sb.keys_used(table, keys=KEYRING, version=version)
    return {name for name, _ in used.files_by_key}


def test_one_commit_encrypts_every_live_file_and_changes_no_row(table: str) -> None:
    before, old = rows(table), data_files(table)
    report = sb.reencrypt(table, policy=policy(), keys=KEYRING)
    assert {file.status for file in report.files} == {"reencrypted"}
    assert (latest(table), rows(table, 1), read(table)) == (2, before, before)
    assert keys_of(table) == {"k_footer", "k_pii"}
    assert (keys_of(table, 1), old < data_files(table)) == (set(), True)
    (info,) = named(table, 2, "commitInfo")
    assert (info["operation"], info["operationParameters"]) == ("REENCRYPT", {})
    assert len(named(table, 2, "add")) == len(named(table, 2, "remove")) == 6
    for new in named(table, 2, "add"):
        path = Path(table, new["path"].replace("%25", "%"))
        assert path.stat().st_size == new["size"]
        assert not new["dataChange"]
    assert any("VACUUM" in note for note in report.notes)
    assert any(note.startswith("deltalake, Polars, ") for note in report.notes)
    with pytest.raises(Exception, match=r"(?i)encrypt|parquet"):
        deltalake.DeltaTable(table).to_pyarrow_table()


def test_no_command_is_named_for_files_of_an_older_version(table: str) -> None:
    sb.reencrypt(table, policy=policy(), keys=KEYRING)
    with pytest.raises(sb.PolicyError) as caught:
        sb.read_table(table, policy=policy(), keys=KEYRING, version=1)
    hint = str(caught.value.hint)
    assert hint.startswith(
        "files of an older version stay as they were written: to read it as it is"
    )
    assert "reencrypt" not in hint


def test_bounds_of_encrypted_columns_leave_the_log_and_others_stay(table: str) -> None:
    report = sb.reencrypt(table, policy=policy(), keys=KEYRING)
    for action in (*named(table, 2, "add"), *named(table, 2, "remove")):
        stats = json.loads(action["stats"])
        assert set(stats["minValues"]) == set(stats["maxValues"]) == {"id"}
        assert "user" not in action["stats"]
        assert set(stats["nullCount"]) == {"id", "email"}
    assert any("dataSkippingStatsColumns" in note for note in report.notes)
    told = sb.audit(table, policy=policy(), keys=KEYRING)
    shown = [finding for finding in told.findings if finding.id == "table-log-in-clear"]
    # Commits that stay until the log is cleaned up.
    assert all("older versions" in finding.what for finding in shown)


def test_bounds_leave_the_log_of_files_that_are_encrypted_already(table: str) -> None:
    """As a table of an engine that encrypts files, and knows nothing of what its log shows."""
    sb.reencrypt(table, policy=policy(), keys=KEYRING)
    size = named(table, 2, "add")[0]["size"]
    path = named(table, 2, "add")[0]["path"]
    values = named(table, 2, "add")[0]["partitionValues"]
    stats = json.dumps({"numRecords": 2, "minValues": {"email": "user1@example.com"}})
    shown = logs.add(path, size, stats=stats, partitionValues=values, dataChange=False)
    logs.commit(Path(table), 3, shown)
    files = data_files(table)
    report = sb.reencrypt(table, policy=policy(), keys=KEYRING)
    assert {file.status for file in report.files} == {"unchanged"}
    (commit,) = report.commits
    assert (commit.files, commit.metrics["numUpdatedStatistics"]) == ((), "1")
    assert data_files(table) == files
    (new,) = named(table, 4, "add")
    assert (new["path"], new["size"], named(table, 4, "remove")) == (path, size, [])
    assert json.loads(new["stats"]) == {"numRecords": 2, "minValues": {}}
    assert sb.reencrypt(table, policy=policy(), keys=KEYRING).commits == ()


def test_an_entry_that_is_written_anew_replaces_the_old_one_for_every_reader(table: str) -> None:
    before, (first, *_) = rows(table), named(table, 0, "add")
    logs.commit(
        Path(table), 2, {"add": {**first, "stats": '{"numRecords":2}', "dataChange": False}}
    )
    assert {name: read_by(table, 2) for name, read_by in READERS.items()} == dict.fromkeys(
        READERS, before
    )


def test_another_writer_that_removes_such_a_file_keeps_the_old_one(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the file of older versions too: it must never be taken for one of ours."""
    sb.reencrypt(table, policy=policy(), keys=KEYRING)
    path, size = (named(table, 2, "add")[0][name] for name in ("path", "size"))
    values = named(table, 2, "add")[0]["partitionValues"]
    stats = json.dumps({"minValues": {"email": "user1@example.com"}})
    logs.commit(Path(table), 3, logs.add(path, size, stats=stats, partitionValues=values))

    def create(name: str, content: bytes, *, like: str) -> None:
        if not Path(table, "_delta_log", f"{4:020d}.json").exists():
            logs.commit(Path(table), 4, logs.remove(path))
        create_file(name, content, like=like)

    monkeypatch.setattr(commit_files, "create_file", create)
    files = data_files(table)
    assert sb.reencrypt(table, policy=policy(), keys=KEYRING).commits == ()
    assert data_files(table) == files


@pytest.mark.parametrize("material", [False, True], ids=["inside", "beside"])
def test_keys_of_a_table_are_rotated_by_a_commit(table: str, material: bool) -> None:
    before = rows(table)
    sb.reencrypt(table, policy=policy(internal_storage=not material), keys=KEYRING)
    stats = {it["path"].partition(".sb-")[0]: it["stats"] for it in named(table, 2, "add")}
    beside = {name for name in data_files(table) if "_KEY_MATERIAL" in name}
    assert len(beside) == (6 if material else 0)
    moves = {"k_pii": "k_finance"}
    shown = sb.rotate_keys(table, policy=policy(), keys=KEYRING, moves=moves, dry_run=True)
    assert [commit.version for commit in shown.commits] == [3]
    assert latest(table) == 2
    # What has not happened is not said as if it had.
    assert shown.notes
    assert all(note.startswith("after the run ") for note in shown.notes)
    report = sb.rotate_keys(table, policy=policy(), keys=KEYRING, moves=moves)
    assert {file.status for file in report.files} == {"rotated"}
    assert (latest(table), read(table), read(table, 2)) == (3, before, before)
    assert keys_of(table) == {"k_footer", "k_finance"}
    assert keys_of(table, 2) == {"k_footer", "k_pii"}
    assert {it["path"].partition(".sb-")[0]: it["stats"] for it in named(table, 3, "add")} == stats
    assert named(table, 3, "commitInfo")[0]["operation"] == "ROTATE KEYS"
    assert any("under their old keys" in note for note in report.notes)
    again = sb.rotate_keys(table, policy=policy("k_finance"), keys=KEYRING)
    assert {file.status for file in again.files} == {"unchanged"}
    assert (again.commits, again.notes, latest(table)) == ((), (), 3)


def test_filters_that_a_table_has_are_encrypted_with_it(table: str) -> None:
    sb.add_bloom_filters(table, columns="email")
    sb.reencrypt(table, policy=policy(), keys=KEYRING)
    verdicts = sb.probe(table, "email", ["user3@example.com", "nobody"], keys=KEYRING).to_dict()
    groups = [group for file in verdicts["files"] for group in file["row_groups"]]
    assert all(group["filter"] for group in groups)
    assert sum(group["verdicts"]["user3@example.com"] == "maybe" for group in groups) == 1


def test_a_damaged_file_fails_and_leaves_nothing_of_its_new_one(tmp_path: Path) -> None:
    """Its key material would have been first."""
    table = write_table(tmp_path / "t", 2, partitioned=False)
    (bad,) = (it["path"] for it in named(table, 0, "add"))
    content = bytearray(Path(table, bad).read_bytes())
    pages = len(content) - 8 - int.from_bytes(content[-8:-4], "little") - 4
    content[4 : 4 + pages] = bytes(pages)
    Path(table, bad).write_bytes(content)
    report = sb.reencrypt(table, policy=policy(internal_storage=False), keys=KEYRING)
    assert [Path(file.path).name for file in report.failed] == [bad]
    (new,) = (it["path"] for it in named(table, 2, "add"))
    assert {name for name in data_files(table) if ".sb-" in name} == {
        new,
        f"_KEY_MATERIAL_FOR_{new}.json",
    }


def test_a_file_that_another_writer_takes_away_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write_table(tmp_path / "t", 2, partitioned=False)
    gone = named(table, 0, "add")[0]["path"]

    def create(name: str, content: bytes, *, like: str) -> None:
        if latest(table) == 1:
            logs.commit(Path(table), 2, logs.remove(gone))
        create_file(name, content, like=like)

    monkeypatch.setattr(commit_files, "create_file", create)
    report = sb.reencrypt(table, policy=policy(internal_storage=False), keys=KEYRING)
    (left,) = (file for file in report.files if file.status == "unchanged")
    assert Path(left.path).name == gone
    assert "took it out" in left.notes[0]
    assert (len(named(table, 3, "add")), len(read(table))) == (1, 6)
    assert sum(".sb-" in name for name in data_files(table)) == 2


@pytest.mark.parametrize("verb", ["add", "reencrypt"])
def test_a_run_that_loses_every_file_says_so_in_one_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    table = write_table(tmp_path / "t", 3, partitioned=False)
    live = [it["path"] for version in range(3) for it in named(table, version, "add")]

    def create(name: str, content: bytes, *, like: str) -> None:
        if latest(table) == 2:
            logs.commit(Path(table), 3, *map(logs.remove, live))
        create_file(name, content, like=like)

    monkeypatch.setattr(commit_files, "create_file", create)
    report: sb.AddReport | sb.RekeyReport
    if verb == "add":
        report = sb.add_bloom_filters(table, columns=["email"])
    else:
        report = sb.reencrypt(table, policy=policy(), keys=KEYRING)
    assert {file.status for file in report.files} == {"unchanged"}
    assert report.commits == ()
    assert [it for it in report.notes if "meanwhile" in it] == [NOTHING_WRITTEN]


def test_files_that_were_taken_away_have_one_note(table: str) -> None:
    files = sb.add_bloom_filters(table, columns=["email"]).files
    taken = [it.taken_meanwhile() for it in files[:3]]
    (note,) = file_notes([*taken, *files[3:]])
    assert note == f"{files[0].path} and 2 other files: {GONE_TOGETHER}"
    assert list(file_notes(taken[:1])) == [f"{files[0].path}: {GONE}"]


def test_partitions_and_newer_files_can_be_chosen(table: str) -> None:
    where = "day = '2026-11-20'"
    report = sb.reencrypt(table, policy=policy(), keys=KEYRING, where=where, since=0)
    assert len(report.files) == 1
    report = sb.reencrypt(table, policy=policy(), keys=KEYRING, commit_every=3)
    assert [len(commit.files) for commit in report.commits] == [2, 3]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"output": "elsewhere"}, "not written to another folder"),
        ({"commit_every": 0}, "must be at least 1"),
        ({"policy": sb.KeyPolicy(footer_key="k_footer", columns={
            "day": ColumnRule(path="day", key="k_pii")})}, "day is a partition column"),
        ({"policy": sb.KeyPolicy(footer_key="k_footer", columns={
            "emial": ColumnRule(path="emial", key="k_pii")})}, "emial"),
        ({"policy": sb.KeyPolicy()}, "encrypts nothing"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told_before_anything_is_written(
    table: str, options: dict[str, Any], told: str
) -> None:
    files = data_files(table)
    with pytest.raises(sb.SecureBloomError, match=told):
        sb.reencrypt(table, **{"policy": policy(), "keys": KEYRING, **options})
    assert (latest(table), data_files(table)) == (1, files)


def test_statistics_that_are_no_json_stop_a_run_before_it_writes(tmp_path: Path) -> None:
    """Nobody can tell whether they show a secret column, and their text is not told."""
    pq.write_table(batch(0), tmp_path / "x.parquet")
    size = (tmp_path / "x.parquet").stat().st_size
    columns = [logs.column("id"), logs.column("email", "string"), logs.column("day", "string")]
    logs.commit(tmp_path, 0, *logs.start(*columns), logs.add("x.parquet", size, stats="{user3@"))
    with pytest.raises(sb.FormatError, match="statistics of a file") as caught:
        sb.reencrypt(tmp_path, policy=policy(), keys=KEYRING)
    assert caught.value.path == str(tmp_path / "x.parquet")
    assert "user3" not in str(caught.value)
    assert data_files(tmp_path) == {"x.parquet"}


def test_files_without_a_log_have_none_of_its_options(tmp_path: Path) -> None:
    with pytest.raises(sb.PolicyError, match="since is for the folder of a Delta table"):
        sb.reencrypt(tmp_path, policy=policy(), keys=KEYRING, since=1)
    with pytest.raises(sb.PolicyError, match="commit_every is for the folder of a Delta table"):
        sb.rotate_keys(tmp_path, policy=policy(), keys=KEYRING, commit_every=1)


def clustered(folder: Path, column: str) -> str:
    pq.write_table(batch(0), folder / "x.parquet")
    domain = {"domain": "delta.clustering", "removed": False}
    domain["configuration"] = json.dumps({"clusteringColumns": [[column]]})
    columns = [logs.column("id"), logs.column("email", "string"), logs.column("day", "string")]
    protocol = logs.protocol(reader=1)
    protocol["protocol"]["writerFeatures"] = ["clustering", "domainMetadata"]
    size = (folder / "x.parquet").stat().st_size
    started = (protocol, logs.metadata(*columns), {"domainMetadata": domain})
    logs.commit(folder, 0, *started, logs.add("x.parquet", size))
    return str(folder)


def test_a_table_is_not_clustered_by_a_secret_column(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    table = clustered(tmp_path / "a", "email")
    with pytest.raises(sb.UnsupportedFeatureError, match="clustered by email"):
        sb.reencrypt(table, policy=policy(), keys=KEYRING)
    (tmp_path / "b").mkdir()
    assert sb.reencrypt(clustered(tmp_path / "b", "id"), policy=policy(), keys=KEYRING).commits


def test_deletion_vectors_and_mapped_columns_go_along(tmp_path: Path) -> None:
    physical = batch(0).select(["id", "email"]).rename_columns(["col-a1", "col-b2"])
    pq.write_table(physical, tmp_path / "x.parquet")
    columns = [
        logs.column(name, kind, **{"delta.columnMapping.physicalName": to,
                                   "delta.columnMapping.id": number})
        for number, (name, kind, to) in enumerate(
            [("id", "long", "col-a1"), ("email", "string", "col-b2")], 1)
    ]  # fmt: skip
    metadata = logs.metadata(*columns)
    metadata["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
    bounds = {"col-a1": 0, "col-b2": "user0@example.com"}
    stats = json.dumps({"numRecords": 6, "minValues": bounds})
    vector = deletion_vector([2])
    size = (tmp_path / "x.parquet").stat().st_size
    logs.commit(
        tmp_path,
        0,
        logs.protocol("columnMapping", "deletionVectors"),
        metadata,
        logs.add("x.parquet", size, stats=stats, deletionVector=vector, tags={"T": "1"}),
    )
    report = sb.reencrypt(tmp_path, policy=policy(), keys=KEYRING)
    assert [it.column for it in report.files[0].columns] == ["id", "email"]
    (new,) = named(tmp_path, 1, "add")
    assert (new["deletionVector"], new["tags"]) == (vector, {"T": "1"})
    assert json.loads(new["stats"])["minValues"] == {"col-a1": 0}
    assert [row["id"] for row in read(tmp_path)] == [0, 1, 3, 4, 5]
    # The file itself goes by its own names, whatever the table calls its columns.
    with open_input(str(tmp_path / new["path"])) as file:
        footer = unlock(read_tail(file), KeyResolver(KEYRING).for_file())
    crypto = footer.column_chunks[0][1].crypto_metadata
    assert crypto is not None
    assert crypto.ENCRYPTION_WITH_COLUMN_KEY is not None
    assert list(crypto.ENCRYPTION_WITH_COLUMN_KEY.path_in_schema) == ["col-b2"]
    sb.rotate_keys(tmp_path, policy=policy("k_finance"), keys=KEYRING)
    assert [row["id"] for row in read(tmp_path)] == [0, 1, 3, 4, 5]
    with pytest.raises(sb.UnsupportedFeatureError, match="deletion vector"):
        sb.decrypt(tmp_path, output=tmp_path.parent / "clear", keys=KEYRING)


def test_optimize_merge_and_vacuum_work_after_a_run_that_encrypts_nothing_they_read(
    tmp_path: Path,
) -> None:
    """deltalake opens no encrypted file: filters and a later write in clear are what it meets."""
    table = write_table(tmp_path / "t", 2, partitioned=False)
    sb.reencrypt(table, policy=policy(), keys=KEYRING)
    deltalake.write_deltalake(table, batch(12), mode="append")
    assert len(read(table)) == 18
    options = {"retention_hours": 0, "enforce_retention_duration": False, "dry_run": False}
    deltalake.DeltaTable(table).vacuum(**options)
    assert len(read(table)) == 18
    live = {it["path"] for version in (2, 3) for it in named(table, version, "add")}
    assert data_files(table) == live
