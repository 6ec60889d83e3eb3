"""A Delta table in clear in a folder without a log: what other readers find there."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as ds
import pytest

import secure_bloom as sb
from testing import delta_logs as logs
from testing.delta_tables import data_files, deltalake, rows, write_table
from testing.tables import KEYRING


def test_live_files_go_to_folders_that_say_their_partition(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", 2)
    policy = sb.KeyPolicy(footer_key="k_footer", uniform=True)
    sb.reencrypt(table, policy=policy, keys=KEYRING)
    before = sorted(sb.read_table(table, keys=KEYRING).to_pylist(), key=lambda it: it["id"])
    files = data_files(table)
    report = sb.decrypt(table, output=tmp_path / "clear", keys=KEYRING)
    assert {file.status for file in report.files} == {"decrypted"}
    assert (len(report.files), data_files(table)) == (6, files)
    found = ds.dataset(tmp_path / "clear", partitioning="hive").to_table().to_pylist()
    assert sorted(found, key=lambda it: it["id"]) == before
    assert {path.name for path in (tmp_path / "clear").iterdir()} == {
        "day=2026-11-20",
        "day=a b%2Fc",
        "day=__HIVE_DEFAULT_PARTITION__",
    }


def test_files_of_older_versions_stay_behind(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", 2, partitioned=False)
    deltalake.DeltaTable(table).optimize.compact()
    report = sb.decrypt(table, output=tmp_path / "clear")
    assert len(report.files) == 1
    assert len(rows(table)) == sb.read_table(tmp_path / "clear").num_rows


def test_a_folder_inside_the_table_is_refused(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", 1)
    files = data_files(table)
    with pytest.raises(sb.PolicyError, match="inside the table"):
        sb.decrypt(table, output=f"{table}/clear")
    assert data_files(table) == files


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    logs.commit(tmp_path / "t", 0, *logs.start(), logs.add("a/x.parquet"), logs.add("b/x.parquet"))
    with pytest.raises(sb.PolicyError, match="one output file"):
        sb.decrypt(tmp_path / "t", output=tmp_path / "clear")


def test_names_that_only_the_log_knows_are_refused(tmp_path: Path) -> None:
    names = {"delta.columnMapping.physicalName": "c1", "delta.columnMapping.id": 1}
    metadata = logs.metadata(logs.column("id", **names))
    metadata["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
    logs.commit(tmp_path / "t", 0, logs.protocol("columnMapping"), metadata, logs.add("x.parquet"))
    with pytest.raises(
        sb.UnsupportedFeatureError, match="column names in the table's files differ"
    ):
        sb.decrypt(tmp_path / "t", output=tmp_path / "clear")
