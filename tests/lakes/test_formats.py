"""Formats of tables: each is recognized, and lists its live files, by one interface."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.bloom.verdicts import Verdict
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.lakes import TableVersion, formats, list_tables
from secure_bloom.lakes.delta_tables import DeltaTables
from secure_bloom.lakes.formats import DELTA, ICEBERG, STREAMING, named_format
from secure_bloom.lakes.hudi_tables import HudiTables
from secure_bloom.lakes.iceberg_tables import IcebergTables
from secure_bloom.lakes.paimon_tables import PaimonTables
from secure_bloom.lakes.streaming_tables import StreamingTables
from secure_bloom.lakes.table_format import ListedTable, TableFormat
from secure_bloom.lakes.writable_table import TableChange, TableChoice, WritableTable
from secure_bloom.runs.target import Publication, ReplacedFile, TableCommit
from secure_bloom.runs.work import FileReport, FileTask, new_sizes
from secure_bloom.storage.column_mapping import ColumnMapping, NamedField, OlderColumn
from secure_bloom.storage.store_grants import StoreGrant
from testing import delta_logs as logs
from testing.tables import KEYRING, customers, write


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("iceberg://lake/db.t", ICEBERG),
        ("warehouse/t/metadata/00001-a.metadata.json", ICEBERG),
        ("t", None),
        ("t/part-0.parquet", None),
    ],
)
def test_a_path_may_name_a_table_by_itself(path: str, form: TableFormat | None) -> None:
    assert named_format(path) is form


def test_a_delta_table_is_listed_by_its_log(tmp_path: Path) -> None:
    columns = [logs.column("email", "string"), logs.column("day", "date")]
    logs.commit(
        tmp_path,
        0,
        *logs.start(*columns, partitions=["day"]),
        logs.add("a", partitionValues={"day": None}),
    )
    logs.commit(tmp_path, 1, logs.remove("a"), logs.add("b", partitionValues={"day": None}))
    table = DELTA.list_table(str(tmp_path), TableVersion())
    assert [Path(path).name for path in table.files] == ["b"]
    assert (table.partition_columns, table.column_mapping) == (("day",), None)
    old = DELTA.list_table(str(tmp_path), TableVersion(version=0))
    assert [Path(path).name for path in old.files] == ["a"]
    with pytest.raises(PolicyError, match="not snapshots"):
        DELTA.list_table(str(tmp_path), TableVersion(snapshot=7))


def sink(folder: Path, *files: str) -> str:
    entries = [json.dumps({"path": path, "action": "add"}) for path in files]
    (folder / "_spark_metadata").mkdir()
    (folder / "_spark_metadata" / "0").write_text("\n".join(["v1", *entries]))
    return str(folder)


def test_a_streaming_sink_has_files_and_no_versions(tmp_path: Path) -> None:
    folder = sink(tmp_path, f"file://{tmp_path}/part-0.parquet")
    table = STREAMING.list_table(folder, TableVersion())
    assert list(table.files) == [str(tmp_path / "part-0.parquet")]
    with pytest.raises(PolicyError, match="have versions"):
        STREAMING.list_table(folder, TableVersion(version=1))


def test_a_streaming_sink_that_was_moved_is_refused(tmp_path: Path) -> None:
    folder = sink(tmp_path, "file:///elsewhere/part-0.parquet")
    with pytest.raises(UnsupportedFeatureError, match="names files elsewhere"):
        STREAMING.list_table(folder, TableVersion())


class Listed(TableFormat):
    """A format whose tables list their files in ``_files/list``, which a run writes anew."""

    title = "a table with a list"
    log_folder = "_files"
    is_found_by_log = True

    def recognizes(self, path: str) -> bool:
        return path.endswith(".listed")

    def list_table(self, path: str, at: TableVersion) -> ListedTable:
        del at
        files = dict.fromkeys(str(Path(path, name)) for name in listed(path))
        return ListedTable(format=self, place=path, files=files)

    def table_to_write(self, paths: Sequence[str]) -> str | None:
        return paths[0] if self.recognizes(paths[0]) else None

    def open_to_write(self, place: str, choice: TableChoice) -> WritableTable:
        return WritableList(place, choice)


def listed(table: str) -> list[str]:
    return Path(table, "_files", "list").read_text().split()


class WritableList(WritableTable):
    """A table with a list, whose new files have the name ``new-`` and that of the old one."""

    names = opened_names = ColumnMapping(members={"id": NamedField(name="id")})

    def __init__(self, place: str, choice: TableChoice) -> None:
        del choice
        self.root = place

    def older_columns(self) -> list[OlderColumn]:
        return []

    def check_columns(self, names: Iterable[str]) -> None:
        pass

    def require(self, columns: Iterable[str]) -> None:
        pass

    def target(self, change: TableChange) -> ListTarget:
        return ListTarget(self.root, change.verb)


@dataclass
class ListTarget:
    root: str
    verb: str
    opened_names: ColumnMapping | None = None
    grant: StoreGrant | None = None
    old_files: str = ""
    locked_out: str = ""
    shown: Sequence[str] = ()
    commits: list[TableCommit] = field(default_factory=list)
    gone_files: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def paths(self) -> list[str]:
        return [str(Path(self.root, name)) for name in listed(self.root)]

    @property
    def sizes(self) -> dict[str, int]:
        return {path: Path(path).stat().st_size for path in self.paths}

    def listed(self) -> list[str]:
        return self.paths

    def skipped(self) -> list[tuple[str, str]]:
        return []

    def publishing(self, *, dry_run: bool) -> AbstractContextManager[ListPublication]:
        del dry_run
        return nullcontext(ListPublication(self))

    def gone(self, publication: Publication, reports: Iterable[FileReport]) -> frozenset[str]:
        return frozenset()


@dataclass
class ListPublication:
    table: ListTarget
    commits: list[TableCommit] = field(default_factory=list)
    gone: Sequence[str] = ()
    notes: Sequence[str] = ()

    def batches(self) -> Iterator[list[FileTask]]:
        for path in self.table.paths:
            yield [FileTask(path=path, target=str(Path(path).with_name(f"new-{Path(path).name}")))]

    def publish(self, reports: Sequence[FileReport]) -> None:
        names = listed(self.table.root)
        done = {Path(path).name for path in new_sizes(reports)}
        new = [f"new-{name}" if name in done else name for name in names]
        Path(self.table.root, "_files", "list").write_text("\n".join(new))
        replaced = [ReplacedFile(removed=name, added=f"new-{name}") for name in sorted(done)]
        self.commits.append(
            TableCommit(version=1, operation=self.table.verb, metrics={}, files=tuple(replaced))
        )


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of the made-up format, with one live file of two."""
    monkeypatch.setattr(formats, "FORMATS", (*formats.FORMATS, Listed()))
    folder = tmp_path / "t.listed"
    (folder / "_files").mkdir(parents=True)
    (folder / "_files" / "list").write_text("live.parquet")
    for name in ("live", "removed"):
        write(folder / f"{name}.parquet", customers(10))
    return folder


def test_a_new_format_is_one_class_and_one_row(table: Path) -> None:
    live = str(table / "live.parquet")
    for given in (table.parent, table, live):
        assert list_tables([str(given)]).paths == (live,)
    assert sb.read_table(table).num_rows == 10
    with pytest.raises(UnsupportedFeatureError, match="a table with a list: its own log"):
        sb.add_bloom_filters(live, columns=["id"])


def test_a_new_format_is_written_by_every_verb(table: Path) -> None:
    added = sb.add_bloom_filters(table, columns=["id"])
    assert [it.operation for it in added.commits] == ["add"]
    assert listed(str(table)) == ["new-live.parquet"]
    assert sb.probe(table, "id", [-1]).verdicts == {Verdict.ABSENT}
    policy = sb.KeyPolicy(footer_key="k_footer", columns={"id": ColumnRule(path="id", key="k_pii")})
    sealed = sb.reencrypt(table, policy=policy, keys=KEYRING)
    assert [it.operation for it in sealed.commits] == ["reencrypt"]
    assert listed(str(table)) == ["new-new-live.parquet"]
    assert sb.read_table(table, "id = 3", keys=KEYRING).num_rows == 1
    assert (table / "live.parquet").exists()


@pytest.mark.parametrize(
    ("form", "log", "verbs"),
    [
        (DeltaTables(), "_delta_log", {"add", "reencrypt", "rotate"}),
        (HudiTables(), ".hoodie", set()),
        (StreamingTables(), "_spark_metadata", set()),
        (IcebergTables(), "metadata", {"add", "reencrypt", "rotate"}),
        (PaimonTables(), "schema", set()),
    ],
    ids=["delta", "hudi", "streaming", "iceberg", "paimon"],
)
def test_a_format_says_which_verbs_take_its_tables(
    form: TableFormat, log: str, verbs: set[str]
) -> None:
    taken = {it for it in ("add", "reencrypt", "rotate") if form.takes_verb(it, "iceberg://c/d.t")}
    assert (form.log_folder, taken) == (log, verbs)
    assert verbs == {"add", "reencrypt", "rotate"} or "secure-bloom" in form.rewritten_by


def test_a_hudi_table_is_not_listed(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match="timeline"):
        HudiTables().list_table(str(tmp_path), TableVersion())
