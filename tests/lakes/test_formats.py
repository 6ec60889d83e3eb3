"""Formats of tables: each is recognized, and lists its live files, by one interface."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.lakes import TableVersion, formats, list_tables
from secure_bloom.lakes.delta_tables import DeltaTables
from secure_bloom.lakes.formats import DELTA, ICEBERG, STREAMING, named_format
from secure_bloom.lakes.hudi_tables import HudiTables
from secure_bloom.lakes.iceberg_tables import IcebergTables
from secure_bloom.lakes.paimon_tables import PaimonTables
from secure_bloom.lakes.streaming_tables import StreamingTables
from secure_bloom.lakes.table_format import ListedTable, TableFormat
from testing import delta_logs as logs
from testing.tables import customers, write


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
    """A format whose tables list their files in ``_files/list``."""

    title = "a table with a list"
    log_folder = "_files"
    is_found_by_log = True

    def recognizes(self, path: str) -> bool:
        return path.endswith(".listed")

    def list_table(self, path: str, at: TableVersion) -> ListedTable:
        del at
        names = Path(path, "_files", "list").read_text().split()
        files = dict.fromkeys(str(Path(path, name)) for name in names)
        return ListedTable(format=self, place=path, files=files)


def test_a_new_format_is_one_class_and_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "FORMATS", (*formats.FORMATS, Listed()))
    (tmp_path / "t.listed" / "_files").mkdir(parents=True)
    (tmp_path / "t.listed" / "_files" / "list").write_text("live.parquet")
    for name in ("live", "removed"):
        write(tmp_path / "t.listed" / f"{name}.parquet", customers(10))
    live = str(tmp_path / "t.listed" / "live.parquet")
    for given in (tmp_path, tmp_path / "t.listed", live):
        assert list_tables([str(given)]).paths == (live,)
    assert sb.read_table(tmp_path / "t.listed").num_rows == 10
    with pytest.raises(UnsupportedFeatureError, match="a table with a list: its own log"):
        sb.add_bloom_filters(tmp_path / "t.listed", columns=["id"])


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
