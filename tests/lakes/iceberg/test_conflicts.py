"""Others write while a run adds filters: no row is lost or comes back, and nothing is left over."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
)
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import RemovePartitionSpecsUpdate, RemoveSchemasUpdate
from pyiceberg.utils.config import Config

import secure_bloom as sb
from secure_bloom.errors import (
    AccessDeniedError,
    FileChangedError,
    FormatError,
    MissingPathError,
    PolicyError,
    UnfinishedWriteError,
    UnsupportedFeatureError,
)
from secure_bloom.lakes.iceberg.commit_table import CommitTable
from testing.iceberg_rest import rest_catalog
from testing.store_proxy import store_proxy
from testing.waiting import eventually
from tests.lakes.iceberg.tables import (
    BY_CITY,
    NAME,
    all_rows,
    committed_meanwhile,
    data_files,
    delete_by_vector,
    delete_equal,
    delete_positions,
    entries,
    local,
    people,
    rows,
)


def ids(table: Table) -> list[int]:
    return [row["id"] for row in all_rows(table)]


def unnamed(table: Table) -> set[str]:
    """The names of new data files that no snapshot has."""
    named: set[str] = set()
    for snapshot in table.refresh().snapshots():
        files = table.inspect.files(snapshot.snapshot_id).column("file_path").to_pylist()
        named |= {local(path).name for path in files}
    return {path.name for path in local(table.location()).rglob("*.sb-*")} - named


def _deletes_rows(table: Table) -> None:
    table.refresh().delete("id >= 150")


def _deletes_by_position(table: Table) -> None:
    for number, path in enumerate(data_files(table)):
        delete_positions(table, path, [0], f"p{number}")


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (_deletes_rows, list(range(150))),
        (_deletes_by_position, [i for i in range(300) if i % 100]),
    ],
)
def test_deletes_between_two_commits_of_a_run(
    catalog: SqlCatalog,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Table], None],
    left: list[int],
) -> None:
    """The first commit looks at the catalog again; the next ones must see what came meanwhile."""
    table = people(catalog)
    with committed_meanwhile(monkeypatch, lambda: change(table)):
        report = sb.add_bloom_filters(NAME, columns=["email"], commit_every=1, jobs=1)
    assert ids(table) == left
    assert not report.failed
    assert unnamed(table) == set()


def test_a_conflict_is_looked_for_after_the_base_alone(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table may have thousands of snapshots; each has a file that lists its manifests."""
    table = people(catalog, files=8)
    before = {it.manifest_list for it in table.snapshots()[:-1]}
    read, manifests = [], Snapshot.manifests

    def noted(self: Snapshot, io: Any) -> Any:
        read.append(self.manifest_list)
        return manifests(self, io)

    with committed_meanwhile(monkeypatch, lambda: table.append(rows(900))):
        monkeypatch.setattr(Snapshot, "manifests", noted)
        sb.add_bloom_filters(NAME, columns=["email"], commit_every=4, jobs=1)
    assert not before & set(read)
    assert len(ids(table)) == 900


def test_a_deletion_vector_that_came_meanwhile(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people(catalog)
    first = data_files(table)[0]
    with committed_meanwhile(monkeypatch, lambda: delete_by_vector(table, first, [3], "dv")):
        sb.add_bloom_filters(NAME, columns=["email"])
    assert first in data_files(table)
    # pyiceberg reads vectors of version 3 alone: the rows are those of our own reader.
    assert sb.read_table(NAME).num_rows == 299
    assert unnamed(table) == set()


def _loses_its_spec(table: Table) -> None:
    with table.update_spec() as spec:
        spec.remove_field("city")
    table.append(rows(900))
    update = RemovePartitionSpecsUpdate(spec_ids=[0])
    table.catalog.commit_table(table, (), (update,))


def _loses_its_schema(table: Table) -> None:
    with table.update_spec() as spec:
        spec.remove_field("city")
    _drops_a_column(table)


def _drops_a_column(table: Table) -> None:
    with table.update_schema() as schema:
        schema.delete_column("city")
    table.catalog.commit_table(table.refresh(), (), (RemoveSchemasUpdate(schema_ids=[0]),))


@pytest.mark.parametrize("change", [_loses_its_spec, _loses_its_schema])
def test_a_spec_or_schema_of_data_files_that_is_gone(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, change: Callable[[Table], None]
) -> None:
    table = people(catalog, spec=BY_CITY)
    with (
        committed_meanwhile(monkeypatch, lambda: change(table)),
        pytest.raises(UnsupportedFeatureError, match="partition spec"),
    ):
        sb.add_bloom_filters(NAME, columns=["email"])
    assert not list(local(table.location()).rglob("*.sb-*"))


def test_a_snapshot_names_a_schema_that_the_table_still_has(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people(catalog)
    with committed_meanwhile(monkeypatch, lambda: _drops_a_column(table)):
        sb.add_bloom_filters(NAME, columns=["email"])
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    assert snapshot.schema_id in table.schemas()
    assert ids(table) == list(range(300))


@pytest.mark.parametrize("arrives", [True, False])
def test_an_outcome_that_nobody_knows(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    table = people(catalog)
    asked = CommitTable.commit

    def commit(self: CommitTable, *given: Any) -> None:
        if arrives:
            asked(self, *given)
        raise CommitStateUnknownException("the connection broke")

    with monkeypatch.context() as patch:
        patch.setattr(CommitTable, "commit", commit)
        if arrives:
            assert len(sb.add_bloom_filters(NAME, columns=["email"]).commits[0].files) == 3
        else:
            with pytest.raises(UnfinishedWriteError, match="did not say"):
                sb.add_bloom_filters(NAME, columns=["email"])
            # The request may still arrive, so its files stay.
            assert len(unnamed(table)) == 3
    assert ids(table) == list(range(300))
    report = sb.add_bloom_filters(NAME, columns=["email"])
    assert len(report.commits) == (0 if arrives else 1)
    assert ids(table) == list(range(300))


REFUSALS = [
    CommitFailedException("branch main has changed"),
    BadRequestError("cannot commit"),
    ForbiddenError("not allowed"),
    AuthorizationExpiredError("the token has expired"),
    RuntimeError("unforeseen"),
]


@pytest.mark.parametrize("error", REFUSALS, ids=lambda it: type(it).__name__)
@pytest.mark.parametrize("is_expired", [False, True])
def test_a_refusal_that_is_the_answer_to_our_own_commit(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, error: Exception, is_expired: bool
) -> None:
    """The first answer was lost, and a layer below the catalog has asked a second time."""
    table = people(catalog)
    asked = CommitTable.commit

    def commit(self: CommitTable, *given: Any) -> None:
        asked(self, *given)
        if is_expired:
            # Another writer adds rows, and expires our snapshot, before anybody looks for it.
            mine = table.refresh().current_snapshot()
            assert mine is not None
            table.append(rows(300))
            table.maintenance.expire_snapshots().by_id(mine.snapshot_id).commit()
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(CommitTable, "commit", commit)
        report = sb.add_bloom_filters(NAME, columns=["email"])
    assert [file.status for file in report.files] == ["added"] * 3
    assert len(report.commits[0].files) == 3
    assert ids(table) == list(range(400 if is_expired else 300))
    assert not sb.add_bloom_filters(NAME, columns=["email"]).failed


@pytest.mark.parametrize("error", REFUSALS[:4], ids=lambda it: type(it).__name__)
def test_a_refusal_after_which_the_catalog_cannot_be_read_keeps_the_files(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    table = people(catalog)
    asked = CommitTable.commit

    def commit(self: CommitTable, *given: Any) -> None:
        asked(self, *given)
        patch.setattr("secure_bloom.lakes.iceberg.commit_table.load_table", broken)
        raise error

    def broken(*_: object) -> None:
        raise sb.PolicyError("the catalog does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(CommitTable, "commit", commit)
        with pytest.raises(UnfinishedWriteError, match="did not say"):
            sb.add_bloom_filters(NAME, columns=["email"])
    assert ids(table) == list(range(300))


def test_a_run_that_is_interrupted_during_its_commit(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the answer is awaited: the catalog has the snapshot, so its files must stay."""
    table = people(catalog)
    asked = CommitTable.commit

    def commit(self: CommitTable, *given: Any) -> None:
        asked(self, *given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CommitTable, "commit", commit)
        with pytest.raises(KeyboardInterrupt):
            sb.add_bloom_filters(NAME, columns=["email"])
    assert ids(table) == list(range(300))
    assert sb.add_bloom_filters(NAME, columns=["email"]).commits == ()


def test_ctrl_c_while_the_catalog_takes_the_commit_leaves_no_file_that_nothing_names(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people(catalog)
    asked = CommitTable.commit

    def commit(self: CommitTable, *given: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        asked(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(CommitTable, "commit", commit)
        with pytest.raises(KeyboardInterrupt):
            sb.add_bloom_filters(NAME, columns=["email"])
    new = {path.name for path in local(table.location()).rglob("*.sb-*.parquet")}
    assert new == {local(path).name for path in data_files(table.refresh())}
    assert ids(table) == list(range(300))


@pytest.mark.parametrize("is_over", [True, False])
def test_a_database_that_another_writer_has_locked(
    catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_over: bool
) -> None:
    """Nothing was committed, and that is certain: the run tries again."""
    properties = {"commit.retry.num-retries": "1", "commit.retry.min-wait-ms": "1"}
    table = people(catalog, **properties)
    # Sooner than after the five seconds of Python's default.
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/catalog.db?timeout=0")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    asked = CommitTable.commit
    with closing(
        sqlite3.connect(tmp_path / "catalog.db", isolation_level=None, check_same_thread=False)
    ) as other:

        def commit(self: CommitTable, *given: Any) -> None:
            other.execute("BEGIN IMMEDIATE")
            try:
                asked(self, *given)
            finally:
                other.execute("ROLLBACK")
                if is_over:
                    monkeypatch.setattr(CommitTable, "commit", asked)

        monkeypatch.setattr(CommitTable, "commit", commit)
        if is_over:
            assert len(sb.add_bloom_filters(NAME, columns=["email"]).commits[0].files) == 3
        else:
            with pytest.raises(FileChangedError, match="other writers were faster"):
                sb.add_bloom_filters(NAME, columns=["email"])
    assert ids(table) == list(range(300))
    assert unnamed(table) == set()


def test_a_rest_catalog_says_that_another_writer_was_faster(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit goes through pyiceberg's client of REST catalogs; status 409 means a conflict."""
    table = people(catalog)
    first = data_files(table)[0]
    with rest_catalog(catalog) as address:
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", address)
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
        with committed_meanwhile(monkeypatch, lambda: delete_positions(table, first, [0], "late")):
            report = sb.add_bloom_filters(NAME, columns=["email"])
        assert len(report.commits[0].files) == 2
        assert sb.read_table(NAME).num_rows == 299
        with pytest.raises(MissingPathError):
            sb.add_bloom_filters("iceberg://lake/db.nobody", columns=["email"])
    assert len(ids(table)) == 299
    assert unnamed(table) == set()


@pytest.mark.parametrize(
    ("status", "from_then_on", "error"),
    [
        (409, False, None),
        (409, True, UnfinishedWriteError),
        (429, True, UnfinishedWriteError),
        (400, True, None),
        (403, True, None),
    ],
)
def test_a_refusal_while_our_own_first_request_is_under_way(
    catalog: SqlCatalog,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    from_then_on: bool,
    error: type[Exception] | None,
) -> None:
    """A layer below the catalog has asked twice: the table takes the commit after the answer."""
    table = people(catalog, **{"commit.retry.num-retries": "1", "commit.retry.min-wait-ms": "1"})
    with rest_catalog(catalog) as address, store_proxy(address.rpartition(":")[2]) as proxy:
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
        proxy.tell(
            fail={
                "status": status,
                "late": 0.4,
                "from_then_on": from_then_on,
                "only": "POST /v1/namespaces/db/tables",
            }
        )
        with pytest.raises(error) if error else nullcontext():
            report = sb.add_bloom_filters(NAME, columns=["email"], jobs=1)
            assert [file.status for file in report.files] == ["added"] * 3
        proxy.tell(fail=None)
        assert eventually(lambda: len(table.refresh().snapshots()) == 4)
    assert ids(table) == list(range(300))
    assert unnamed(table) == set()


@pytest.mark.parametrize("status", [400, 403])
def test_a_commit_that_appears_when_nobody_looks_for_it_any_more(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """Nobody knows how long a request is under way: no refusal of its repeat is believed."""
    table = people(catalog)
    with rest_catalog(catalog) as address, store_proxy(address.rpartition(":")[2]) as proxy:
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
        monkeypatch.setattr("secure_bloom.lakes.iceberg.commit._SETTLING_SECONDS", 0)
        proxy.tell(
            fail={
                "status": status,
                "late": 1,
                "from_then_on": True,
                "only": "POST /v1/namespaces/db/tables",
            }
        )
        with pytest.raises(UnfinishedWriteError, match="did not say"):
            sb.add_bloom_filters(NAME, columns=["email"], jobs=1)
        proxy.tell(fail=None)
        assert eventually(lambda: all(".sb-" in path for path in data_files(table.refresh())))
    assert ids(table) == list(range(300))


@pytest.mark.parametrize("is_database", [False, True])
def test_a_commit_that_is_denied(
    catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_database: bool
) -> None:
    """Nothing repeats a statement to a database, so its denial is certain."""
    table = people(catalog)
    before = set(local(table.location()).rglob("*"))
    asked = CommitTable.commit

    def commit(self: CommitTable, *given: Any) -> None:
        if not is_database:
            raise ForbiddenError("not allowed")
        with patch.context() as read_only:
            uri = f"sqlite:///file:{tmp_path}/catalog.db?mode=ro&uri=true"
            read_only.setenv("PYICEBERG_CATALOG__LAKE__URI", uri)
            read_only.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
            self.reload()
        asked(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(CommitTable, "commit", commit)
        patch.setattr("secure_bloom.lakes.iceberg.commit._SETTLING_SECONDS", 0)
        with pytest.raises(AccessDeniedError if is_database else UnfinishedWriteError) as caught:
            sb.add_bloom_filters(NAME, columns=["email"])
    assert "denies access" in str(caught.value)
    new = set(local(table.location()).rglob("*")) - before
    assert len([path for path in new if ".sb-" in path.name]) == (0 if is_database else 3)


def test_others_that_are_faster_each_time(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {"commit.retry.num-retries": "2", "commit.retry.min-wait-ms": "1"}
    table = people(catalog, **properties)
    asked, tries = CommitTable.commit, []

    def commit(self: CommitTable, *given: Any) -> None:
        tries.append(1)
        table.refresh().append(rows(300 + len(tries), 1))
        asked(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(CommitTable, "commit", commit)
        with pytest.raises(FileChangedError, match="other writers were faster"):
            sb.add_bloom_filters(NAME, columns=["email"])
    assert len(tries) == 3
    assert len(ids(table)) == 303
    assert not list(local(table.location()).rglob("*.sb-*"))


def test_writers_that_work_at_the_same_time(catalog: SqlCatalog) -> None:
    """Real threads, whenever the machine lets them: a writer appends, two of us add filters."""
    table = people(
        catalog, files=1, **{"commit.retry.num-retries": "50", "commit.retry.min-wait-ms": "5"}
    )
    failed: list[Exception] = []

    def append_more() -> None:
        for number in range(1, 6):
            catalog.load_table("db.people").append(rows(100 * number, 2))

    def add_often() -> None:
        for _ in range(3):
            try:
                sb.add_bloom_filters(NAME, columns=["email"], jobs=1)
            except Exception as error:
                failed.append(error)

    threads = [threading.Thread(target=work) for work in (append_more, add_often, add_often)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    sb.add_bloom_filters(NAME, columns=["email"])
    assert len(ids(table)) == len(set(ids(table))) == 110
    assert unnamed(table) == set()
    assert len(data_files(table)) == 6


_KILLED = """
import os, signal, sys
import secure_bloom as sb
from secure_bloom.lakes.iceberg.commit_table import CommitTable
asked = CommitTable.commit
def commit(self, *given):
    if sys.argv[1] == "after":
        asked(self, *given)
    os.kill(os.getpid(), signal.SIGKILL)
CommitTable.commit = commit
sb.add_bloom_filters("iceberg://lake/db.people", columns=["email"], jobs=1)
"""


@pytest.mark.parametrize("when", ["before", pytest.param("after", marks=pytest.mark.slow)])
def test_a_kill_and_the_next_run(catalog: SqlCatalog, when: str) -> None:
    table = people(catalog)
    snapshots = len(table.snapshots())
    done = subprocess.run([sys.executable, "-c", _KILLED, when], env=dict(os.environ), check=False)
    assert done.returncode == -signal.SIGKILL
    assert ids(table) == list(range(300))
    assert len(table.refresh().snapshots()) == snapshots + (when == "after")
    report = sb.add_bloom_filters(NAME, columns=["email"])
    assert not report.failed
    assert len(report.commits) == (1 if when == "before" else 0)
    assert ids(table) == list(range(300))
    assert sb.probe(NAME, "email", ["nobody"]).verdicts == {sb.Verdict.ABSENT}


_RUN = """
import secure_bloom as sb
print("ready", flush=True)
sb.add_bloom_filters("iceberg://lake/db.people", columns=["email"], replace_filters=True, jobs=1)
"""


@pytest.mark.slow
def test_kills_at_random_moments(catalog: SqlCatalog) -> None:
    table, chance = people(catalog), random.Random(0)
    delete_equal(table, [7], "eq")
    expected = [i for i in range(300) if i != 7]
    snapshots, longest, killed = 0, 0.0, 0
    for number in range(40):
        with subprocess.Popen([sys.executable, "-c", _RUN], stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            run.stdout.readline()
            started = time.monotonic()
            if number < 2:
                run.wait()
                longest = max(longest, time.monotonic() - started)
            else:
                time.sleep(chance.uniform(0.3, 1) * longest)
                run.kill()
        killed += run.returncode == -signal.SIGKILL
        # pyiceberg reads no equality deletes.
        assert sb.read_table(NAME).sort_by("id")["id"].to_pylist() == expected
        snapshots = len(table.refresh().snapshots())
    assert killed > 10
    assert snapshots > 6
    assert not sb.add_bloom_filters(NAME, columns=["email"]).failed
    assert sb.read_table(NAME).sort_by("id")["id"].to_pylist() == expected


@pytest.mark.parametrize("layout", [{}, {"write.object-storage.enabled": "true"}])
@pytest.mark.parametrize("fails", [False, True])
def test_data_files_of_one_name_in_several_folders(
    catalog: SqlCatalog, layout: dict[str, str], fails: bool
) -> None:
    """As a table has them whose files were added where they are."""
    table = people(catalog, **layout)
    with table.transaction() as change, change.update_snapshot().overwrite() as snapshot:
        for number, entry in enumerate(entries(table)):
            old = entry.data_file
            moved = DataFile(*(old[position] for position in range(len(old))))
            moved.spec_id = old.spec_id
            path = local(table.location()) / f"data/day={number}/part-0.parquet"
            path.parent.mkdir(parents=True)
            local(old.file_path).rename(path)
            moved[1] = f"file://{path}"
            snapshot.delete_data_file(old)
            snapshot.append_data_file(moved)
            if fails and number == 1:
                path.write_bytes(b"PAR1 broken PAR1")
    report = sb.add_bloom_filters(NAME, columns=["email"])
    assert [it.status for it in report.files].count("added") == (2 if fails else 3)
    added = {it.added for it in report.commits[0].files}
    assert len(added) == (2 if fails else 3)
    assert all(local(path).exists() for path in added)
    if not fails:
        assert ids(table) == list(range(300))


@pytest.mark.parametrize("is_late", [False, True])
def test_a_data_file_that_two_entries_name(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """Its rows count twice; one new file in place of both entries would lose half of them."""
    table = people(catalog)

    def twice() -> None:
        table.refresh().add_files(data_files(table)[:1], check_duplicate_files=False)

    if not is_late:
        twice()
    meanwhile = committed_meanwhile(monkeypatch, twice) if is_late else nullcontext()
    with meanwhile, pytest.raises(FormatError, match="two entries of the table"):
        sb.add_bloom_filters(NAME, columns=["email"])
    assert len(ids(table)) == 400
    assert unnamed(table) == set()


@pytest.mark.parametrize("folder", ["data", "metadata"])
def test_a_link_in_place_of_a_folder_of_the_table(catalog: SqlCatalog, folder: str) -> None:
    """Nothing is written, and nothing removed, in the folder of another table."""
    table = people(catalog)
    top = local(table.location())
    other = top.parent / "victim"
    (top / folder).rename(other)
    (top / folder).symlink_to(other)
    before = {path.name for path in other.iterdir()}
    if folder == "metadata":
        with pytest.raises(PolicyError, match="is a link"):
            sb.add_bloom_filters(NAME, columns=["email"])
    else:
        report = sb.add_bloom_filters(NAME, columns=["email"])
        assert {it.status for it in report.files} == {"failed"}
    assert {path.name for path in other.iterdir()} == before
    assert ids(table) == list(range(300))
