"""`add` on a Delta table: what users and the table's other readers see afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.adding.request import filter_request
from secure_bloom.adding.rewrite import Rewriter, WriteMode
from secure_bloom.encryption.access import Access
from secure_bloom.encryption.policy_tables import ColumnRule
from testing import delta_logs as logs
from testing.delta_tables import (
    DAYS,
    actions,
    batch,
    data_files,
    deltalake,
    latest,
    named,
    rows,
    unfiltered,
    write_table,
)
from testing.table_readers import by_duckdb
from testing.tables import KEYRING, crypto_factory, customers


def test_one_commit_gives_filters_to_every_live_file_and_changes_no_row(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t")
    before = [rows(table, version) for version in range(3)]
    old = data_files(table)
    report = sb.add_bloom_filters(table, columns=["email", "id"])
    assert [file.status for file in report.files] == ["added"] * 9
    assert latest(table) == 3
    assert [rows(table, version) for version in range(3)] == before
    assert rows(table) == before[-1]
    assert unfiltered(table, "email") == []
    assert old < data_files(table)  # for time travel, until VACUUM
    assert not [name for name in data_files(table) if name.rpartition("/")[2].startswith(".")]


def test_the_commit_says_what_was_done_and_carries_what_the_log_knew(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t")
    report = sb.add_bloom_filters(table, columns={"email": 0.001}, where="day = '2026-11-20'")
    (info,) = named(table, 3, "commitInfo")
    added, removed = named(table, 3, "add"), named(table, 3, "remove")
    assert info["operation"] == "ADD BLOOM FILTERS"
    assert info["operationParameters"]["predicate"] == "day = '2026-11-20'"
    assert info["operationMetrics"]["numAddedFiles"] == str(len(added)) == "3"
    old = {it["path"]: it for version in range(3) for it in named(table, version, "add")}
    for new, gone in zip(added, removed, strict=True):
        before = old[gone["path"]]
        assert not new["dataChange"] | gone["dataChange"]
        assert new["stats"] == before["stats"]
        assert new["partitionValues"] == before["partitionValues"] == {"day": "2026-11-20"}
        assert new["size"] == (Path(table) / new["path"]).stat().st_size
    (told,) = report.commits
    assert [(it.removed, it.added) for it in told.files] == [
        (gone["path"], new["path"]) for new, gone in zip(added, removed, strict=True)
    ]


def test_a_second_run_commits_nothing(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t")
    sb.add_bloom_filters(table, columns="email")
    files = data_files(table)
    report = sb.add_bloom_filters(table, columns="email")
    assert {file.status for file in report.files} == {"unchanged"}
    assert report.commits == ()
    assert latest(table) == 3
    assert data_files(table) == files


def test_only_files_without_the_filters_are_rewritten(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", partitioned=False)
    sb.add_bloom_filters(table, columns="email")
    deltalake.write_deltalake(table, batch(18), mode="append")
    report = sb.add_bloom_filters(table, columns="email")
    assert sorted(file.status for file in report.files) == ["added", *["unchanged"] * 3]
    assert len(named(table, 5, "add")) == 1


def test_since_looks_at_newer_files_alone(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", partitioned=False)
    report = sb.add_bloom_filters(table, columns="email", since=1)
    assert len(report.files) == 1
    assert len(unfiltered(table, "email")) == 2


def test_a_dry_run_shows_the_commit_and_writes_nothing(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t")
    files = data_files(table)
    report = sb.add_bloom_filters(table, columns="email", dry_run=True)
    (commit,) = report.commits
    assert (commit.version, commit.metrics["numAddedFiles"]) == (3, "9")
    assert (latest(table), data_files(table)) == (2, files)


def test_a_run_may_commit_after_every_few_files(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", partitioned=False)
    before = rows(table)
    report = sb.add_bloom_filters(table, columns="email", commit_every=2)
    assert [len(commit.files) for commit in report.commits] == [2, 1]
    assert [commit.version for commit in report.commits] == [3, 4]
    assert rows(table) == before
    assert unfiltered(table, "email") == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"in_place": True}, "never changed in place"),
        ({"output": "elsewhere"}, "not written to another folder"),
        ({"where": "id = 1"}, "'id' is not a partition column"),
        ({"since": 9}, "the latest version of the table is 2"),
        ({"commit_every": 0}, "must be at least 1"),
        ({"columns": "day"}, "day is a partition column"),
        ({"columns": "emial"}, "emial"),
    ],
)
def test_what_cannot_be_done_is_told_before_anything_is_written(
    tmp_path: Path, options: dict[str, object], told: str
) -> None:
    table = write_table(tmp_path / "t")
    files = data_files(table)
    with pytest.raises(sb.SecureBloomError, match=told):
        sb.add_bloom_filters(table, **{"columns": "email", **options})  # type: ignore[arg-type]
    assert (latest(table), data_files(table)) == (2, files)


@pytest.mark.parametrize("option", ["since", "commit_every"])
def test_files_without_a_log_have_none_of_its_options(tmp_path: Path, option: str) -> None:
    given = {"since": 1, "commit_every": 1}
    with pytest.raises(sb.PolicyError, match=f"{option} is for the folder of a Delta table"):
        sb.add_bloom_filters(tmp_path, columns="a", **{option: given[option]})  # type: ignore[arg-type]


def test_a_damaged_file_fails_and_the_others_are_committed(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", partitioned=False)
    (bad,) = (it["path"] for it in named(table, 0, "add"))
    path = Path(table, bad)
    path.write_bytes(path.read_bytes()[:-8] + bytes(8))
    report = sb.add_bloom_filters(table, columns="email")
    assert [file.path for file in report.failed] == [str(path)]
    assert len(named(table, 3, "add")) == 2
    assert bad not in {it["path"] for it in named(table, 3, "remove")}


def test_the_history_names_no_value_and_no_key(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", partitioned=False)
    sb.add_bloom_filters(table, columns="email", replace_filters=True)
    (info,) = named(table, 3, "commitInfo")
    assert info["operationParameters"] == {"columns": '{"email": 0.01}', "replaceFilters": "true"}


def test_a_task_that_runs_twice_writes_its_file_once(tmp_path: Path) -> None:
    """As Spark's do: the second attempt finds the file of the first one, and reports the same."""
    request = filter_request("email", None)
    rewriter = Rewriter(
        request=request, resolver=Access().checked_resolver(), mode=WriteMode(only_changes=True)
    )
    source = tmp_path / "x.parquet"
    pq.write_table(batch(0), source)
    target = tmp_path / "y.parquet"
    first, second = (rewriter.rewrite(str(source), target=str(target)) for _ in range(2))
    assert first.status == second.status == "added"
    assert target.stat().st_size == first.bytes_after == second.bytes_after
    target.write_text("another file")
    assert rewriter.rewrite(str(source), target=str(target)).status == "failed"
    assert target.read_text() == "another file"


def _encrypted(path: Path, *, internal: bool) -> Path:
    configuration = pe.EncryptionConfiguration(
        footer_key="k_footer", column_keys={"k_pii": ["email"]}, internal_key_material=internal
    )
    properties = crypto_factory().file_encryption_properties(
        pe.KmsConnectionConfig(), configuration, str(path)
    )
    pq.write_table(customers(40), path, encryption_properties=properties)
    return path


def _table_of(folder: Path, *files: Path, columns: list[dict[str, object]]) -> str:
    adds = [logs.add(path.name, path.stat().st_size) for path in files]
    logs.commit(folder, 0, *logs.start(*columns), *adds)
    return str(folder)


@pytest.mark.parametrize("internal", [True, False], ids=["inside", "beside"])
def test_files_of_an_encrypted_table_get_encrypted_filters(tmp_path: Path, internal: bool) -> None:
    """Wherever their key material stands: it follows the file to its new name."""
    folder = tmp_path / "t"
    folder.mkdir()
    file = _encrypted(folder / "x.parquet", internal=internal)
    kinds = {"email": "string", "iban": "string", "id": "long", "city": "string", "score": "double"}
    table = _table_of(folder, file, columns=[logs.column(*it) for it in kinds.items()])
    report = sb.add_bloom_filters(table, columns=["email"], keys=KEYRING)
    assert not report.failed, report.failed
    assert [(it.action, it.encrypted, it.key) for it in report.files[0].filters] == [
        ("added", True, "k_pii")
    ]
    (new,) = named(table, 1, "add")
    apart = tmp_path / "apart"
    apart.mkdir()
    for name in (new["path"], f"_KEY_MATERIAL_FOR_{new['path']}.json"):
        if (folder / name).exists():
            shutil.copy(folder / name, apart)
    assert len(list(apart.iterdir())) == (1 if internal else 2)
    found = sb.read_table(apart, where="email = 'user7@example.com'", keys=KEYRING)
    assert found.num_rows == 1
    assert (folder / new["path"]).stat().st_size == new["size"]


def test_files_of_a_mapped_table_are_asked_by_logical_names(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    physical = batch(0).select(["id", "email"]).rename_columns(["col-a1", "col-b2"])
    pq.write_table(physical, folder / "x.parquet")
    columns = [
        logs.column(
            name,
            kind,
            **{"delta.columnMapping.physicalName": to, "delta.columnMapping.id": number},
        )
        for number, (name, kind, to) in enumerate(
            [("id", "long", "col-a1"), ("e-mail", "string", "col-b2")], 1
        )
    ]
    metadata = logs.metadata(*columns)
    metadata["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
    size = (folder / "x.parquet").stat().st_size
    logs.commit(folder, 0, logs.protocol("columnMapping"), metadata, logs.add("x.parquet", size))
    (before,) = by_duckdb(str(folder), [0])
    report = sb.add_bloom_filters(folder, columns=["id", "e-mail"])
    assert {it.column for it in report.files[0].filters} == {"id", "e-mail"}
    assert by_duckdb(str(folder), [0, 1]) == [before, before]
    with pytest.raises(sb.PolicyError, match="col-a1"):
        sb.add_bloom_filters(folder, columns=["col-a1"])


@pytest.mark.parametrize("mapping", [{}, {"delta_columnMapping_mode": "name"}])
def test_a_column_that_no_file_has_yet_stops_no_other(
    tmp_path: Path, mapping: dict[str, str]
) -> None:
    """The log knows it: files that came before it lack it, as those of a day may."""
    physical = "delta.columnMapping.physicalName"
    columns = [
        logs.column(name, kind, **({physical: f"col-{name}"} if mapping else {}))
        for name, kind in (("id", "long"), ("new", "string"))
    ]
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table({"col-id" if mapping else "id": range(9)}), file)
    features = ("columnMapping",) if mapping else ()
    start = logs.start(*columns, features=features, **mapping)
    logs.commit(tmp_path, 0, *start, logs.add(file.name, file.stat().st_size))
    (report,) = sb.add_bloom_filters(tmp_path, columns=["id", "new"]).files
    done = {it.column: (it.action, it.reason) for it in report.filters}
    assert done == {"id": ("added", None), "new": ("skipped", "the file has no such column")}
    assert sb.add_bloom_filters(tmp_path, columns="new").commits == ()


def test_the_files_of_a_shallow_clone_get_their_new_places_in_the_clone(tmp_path: Path) -> None:
    original = write_table(tmp_path / "original", 1, partitioned=False)
    (old,) = named(original, 0, "add")
    clone = tmp_path / "clone"
    first = [
        action for action in actions(original, 0) if "protocol" in action or "metaData" in action
    ]
    named_in_full = {**old, "path": f"file://{original}/{old['path']}"}
    logs.commit(clone, 0, *first, {"add": named_in_full})
    files = data_files(original)
    sb.add_bloom_filters(clone, columns="email")
    (new,) = named(clone, 1, "add")
    assert data_files(clone) == {new["path"]}
    assert data_files(original) == files
    assert named(clone, 1, "remove")[0]["path"] == named_in_full["path"]
    assert [row["id"] for row in rows(clone)] == list(range(6))


def test_a_table_among_other_paths_is_refused_by_verbs_that_write(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", 1)
    files = data_files(table)
    policy = sb.KeyPolicy(footer_key="k_footer", uniform=True)
    paths = [table, table]
    verbs: list[Callable[[], object]] = [
        lambda: sb.rotate_keys(paths, policy=policy, keys=KEYRING),
        lambda: sb.reencrypt(paths, policy=policy, keys=KEYRING),
        lambda: sb.decrypt(paths, output=tmp_path / "clear", keys=KEYRING),
        lambda: sb.add_bloom_filters(paths, columns="email"),
    ]
    for verb in verbs:
        with pytest.raises(sb.UnsupportedFeatureError, match="a Delta table: its own log"):
            verb()
    assert (latest(table), data_files(table)) == (0, files)


def test_a_file_whose_name_is_as_long_as_may_be_gets_its_filters(tmp_path: Path) -> None:
    """No file of key material can stand beside it: its name would be longer still."""
    name = "x" * 247 + ".parquet"
    pq.write_table(batch(0), tmp_path / name)
    columns = [logs.column("id"), logs.column("email", "string"), logs.column("day", "string")]
    size = (tmp_path / name).stat().st_size
    logs.commit(tmp_path, 0, *logs.start(*columns), logs.add(name, size))
    report = sb.add_bloom_filters(tmp_path, columns="email")
    assert (report.failed, len(report.commits)) == ((), 1)
    assert len(rows(tmp_path)) == 6


NO_DAY = "day = '1999-01-01'"


def test_a_condition_that_no_file_matches_is_a_note_with_the_partitions(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t")
    days = ", ".join(f"'{day}'" for day in sorted(filter(None, DAYS)))
    said = f"no live file has {NO_DAY}: day is {days}, null"
    for dry_run in (True, False):
        report = sb.add_bloom_filters(table, columns="email", where=NO_DAY, dry_run=dry_run)
        assert (report.files, report.notes) == ((), (said,))
    policy = sb.KeyPolicy(
        footer_key="k_footer", columns={"email": ColumnRule(path="email", key="k_pii")}
    )
    given = {"policy": policy, "keys": KEYRING, "where": NO_DAY}
    assert sb.reencrypt(table, **given).notes == (said,)
    assert sb.rotate_keys(table, **given).notes == (said,)
    hidden = sb.KeyPolicy(
        footer_key="k_footer", columns={"day": ColumnRule(path="day", key="k_pii")}
    )
    found = sb.add_bloom_filters(table, columns="email", policy=hidden, keys=KEYRING, where=NO_DAY)
    assert found.notes == ("no live file matches the condition on day",)
