"""Beside and above the files: summaries, indexes, partitions."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.paimon.container import ColumnIndexes, FileIndex, Index
from testing.tables import KEYRING, customers
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    EXAMPLES,
    POLICY,
    Example,
    rules,
    sound,
)


def test_statistics_in_a_summary_are_found_once_a_column(tmp_path: Path) -> None:
    report = EXAMPLES["summary-in-clear"](tmp_path).audit()
    assert [(f.path, f.column) for f in report.findings] == [
        (str(tmp_path / "_metadata"), "email"),
        (str(tmp_path / "_metadata"), "iban"),
    ]


def test_summaries_above_the_files_are_read(tmp_path: Path) -> None:
    table = customers(30)
    below = tmp_path / "day=1" / "hour=2"
    below.mkdir(parents=True)
    sound(below)
    collected: list[object] = []
    plain = tmp_path.parent / f"{tmp_path.name} plain"
    pq.write_to_dataset(table, plain, metadata_collector=collected)
    pq.write_metadata(table.schema, tmp_path / "_metadata", metadata_collector=collected)
    for path in (tmp_path, below, below / "x.parquet", tmp_path / "*" / "*" / "*.parquet"):
        assert set(ids(Example(path=path).audit())) == {"summary-in-clear"}, path


def test_texts_of_a_summary_are_looked_at_too(tmp_path: Path) -> None:
    schema = customers(1).schema
    email = schema.field("email").with_metadata({"comment": "of the customers of Acme"})
    schema = schema.set(0, email).with_metadata({"hoodie_min_record_key": "DE1"})
    pq.write_metadata(schema, tmp_path / "_common_metadata")
    report = Example(path=sound(tmp_path)).audit()
    assert sorted(ids(report)) == ["hudi-record-keys-in-clear", "schema-in-clear"]
    assert {f.path for f in report.findings} == {str(tmp_path / "_common_metadata")}


def test_a_summary_without_statistics_tells_nothing(tmp_path: Path) -> None:
    pq.write_metadata(customers(1).schema, tmp_path / "_common_metadata")
    assert ids(Example(path=sound(tmp_path)).audit()) == []


def test_a_damaged_summary_is_unchecked(tmp_path: Path) -> None:
    (tmp_path / "_metadata").write_bytes(b"PAR1 damaged PAR1")
    assert ids(Example(path=sound(tmp_path)).audit()) == ["unchecked-file"]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", ["unchecked-file"]),
        (b"another tool's index", []),
        ((1493475289347502).to_bytes(8, "big") + b"\x00\x00\x00\x01", ["unchecked-file"]),
    ],
)
def test_an_index_that_is_none(tmp_path: Path, content: bytes, found: list[str]) -> None:
    (tmp_path / "x.parquet.index").write_bytes(content)
    assert ids(Example(path=sound(tmp_path)).audit()) == found


def test_an_index_whose_data_file_is_gone_still_shows_what_it_showed(tmp_path: Path) -> None:
    found = EXAMPLES["paimon-index-in-clear"](tmp_path)
    (tmp_path / "x.parquet.index").rename(tmp_path / "gone.parquet.index")
    assert ids(found.audit()) == ["paimon-index-in-clear"]


def test_an_index_of_other_columns_is_no_leak(tmp_path: Path) -> None:
    index = Index(type="bloom-filter", body=(4).to_bytes(4, "big") + bytes(8))
    columns = ColumnIndexes(name="city", indexes=(index,))
    (tmp_path / "x.parquet.index").write_bytes(FileIndex(columns=(columns,)).to_bytes())
    assert ids(Example(path=sound(tmp_path)).audit()) == []


def test_the_finding_of_a_partition_does_not_show_its_values(tmp_path: Path) -> None:
    found = EXAMPLES["partition-in-clear"](tmp_path)
    other = tmp_path / "email=user2@example.com"
    shutil.copytree(tmp_path / "email=user1@example.com", other)
    (finding,) = found.audit().findings
    assert (finding.path, finding.column) == (str(tmp_path), "email")
    assert "@example.com" not in finding.message


@pytest.mark.parametrize("folder", ["Email=user1@example.com", "e%3Amail=user1@example.com"])
def test_a_partition_is_found_however_its_name_is_written(tmp_path: Path, folder: str) -> None:
    column = "e:mail" if "%" in folder else "email"
    policy = replace(POLICY, columns={**rules(iban="k_finance"), **rules(**{column: "k_pii"})})
    (tmp_path / folder).mkdir()
    table = customers(30).drop_columns("email")
    sound(tmp_path / folder, table=table, column_keys={"k_finance": ["iban"]})
    (finding,) = Example(path=tmp_path, policy=policy).audit().findings
    assert (finding.id, finding.column) == ("partition-in-clear", column)


def test_relative_paths_are_audited_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    EXAMPLES["key-material-orphaned"](tmp_path)
    monkeypatch.chdir(tmp_path)
    for path in ("x.parquet", ".", "*.parquet"):
        report = sb.audit(path, policy=POLICY, keys=KEYRING)
        assert ids(report) == ["key-material-orphaned"], path
