"""Formats of tables: each is recognized, and lists its live files, by one interface."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.lakes import TableVersion, formats, list_tables
from secure_bloom.lakes.formats import READ_LOGS, ListedTable, TableFormat, format_of, named_format
from secure_bloom.storage import TableLog
from testing import delta_logs as logs


@pytest.mark.parametrize(
    ("path", "log"),
    [
        ("iceberg://lake/db.t", TableLog.ICEBERG),
        ("warehouse/t/metadata/00001-a.metadata.json", TableLog.ICEBERG),
        ("t", None),
        ("t/part-0.parquet", None),
    ],
)
def test_a_path_may_name_a_table_by_itself(path: str, log: TableLog | None) -> None:
    found = named_format(path)
    assert (None if found is None else found.log) is log


def test_a_delta_table_is_listed_by_its_log(tmp_path: Path) -> None:
    columns = [logs.column("email", "string"), logs.column("day", "date")]
    logs.commit(
        tmp_path,
        0,
        *logs.start(*columns, partitions=["day"]),
        logs.add("a", partitionValues={"day": None}),
    )
    logs.commit(tmp_path, 1, logs.remove("a"), logs.add("b", partitionValues={"day": None}))
    table = format_of(TableLog.DELTA).list_files(str(tmp_path), TableVersion())
    assert [Path(path).name for path in table.files] == ["b"]
    assert (table.partition_columns, table.column_mapping) == (("day",), None)
    old = format_of(TableLog.DELTA).list_files(str(tmp_path), TableVersion(version=0))
    assert [Path(path).name for path in old.files] == ["a"]
    with pytest.raises(PolicyError, match="not snapshots"):
        format_of(TableLog.DELTA).list_files(str(tmp_path), TableVersion(snapshot=7))


def sink(folder: Path, *files: str) -> str:
    entries = [json.dumps({"path": path, "action": "add"}) for path in files]
    (folder / "_spark_metadata").mkdir()
    (folder / "_spark_metadata" / "0").write_text("\n".join(["v1", *entries]))
    return str(folder)


def test_a_streaming_sink_has_files_and_no_versions(tmp_path: Path) -> None:
    folder = sink(tmp_path, f"file://{tmp_path}/part-0.parquet")
    table = format_of(TableLog.STREAMING).list_files(folder, TableVersion())
    assert list(table.files) == [str(tmp_path / "part-0.parquet")]
    with pytest.raises(PolicyError, match="have versions"):
        format_of(TableLog.STREAMING).list_files(folder, TableVersion(version=1))


def test_a_streaming_sink_that_was_moved_is_refused(tmp_path: Path) -> None:
    folder = sink(tmp_path, "file:///elsewhere/part-0.parquet")
    with pytest.raises(UnsupportedFeatureError, match="names files elsewhere"):
        format_of(TableLog.STREAMING).list_files(folder, TableVersion())


def test_every_log_that_is_read_has_a_format() -> None:
    assert {format_of(log).log for log in READ_LOGS} == READ_LOGS


def test_a_new_format_is_one_entry_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = tmp_path / "live.parquet"
    live.write_bytes(b"")

    def list_files(path: str, _at: TableVersion) -> ListedTable:
        files = dict.fromkeys([str(live)])
        return ListedTable(log=TableLog.HUDI, place=path, files=files, state=path)

    mine = TableFormat(
        log=TableLog.HUDI, list_files=list_files, recognize=lambda path: path.endswith(".mine")
    )
    monkeypatch.setattr(formats, "FORMATS", (*formats.FORMATS, mine))
    listing = list_tables(["table.mine"])
    assert (listing.paths, [table.place for table in listing.tables]) == (
        (str(live),),
        ["table.mine"],
    )
