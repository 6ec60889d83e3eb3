"""Beside and above the files: summaries, indexes, partitions, copies."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.auditing.findings import Severity
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError
from secure_bloom.paimon.container import ColumnIndexes, FileIndex, Index
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    EXAMPLES,
    POLICY,
    SIGNED,
    Example,
    rules,
    sound,
    with_rules,
)
from tests.tables import KEYRING, Mode, customers, write


class TestFolders:
    def test_statistics_in_a_summary_are_found_once_a_column(self, tmp_path: Path) -> None:
        report = EXAMPLES["summary-in-clear"](tmp_path).audit()
        assert [(f.path, f.column) for f in report.findings] == [
            (str(tmp_path / "_metadata"), "email"),
            (str(tmp_path / "_metadata"), "iban"),
        ]

    def test_summaries_above_the_files_are_read(self, tmp_path: Path) -> None:
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

    def test_texts_of_a_summary_are_looked_at_too(self, tmp_path: Path) -> None:
        schema = customers(1).schema
        email = schema.field("email").with_metadata({"comment": "of the customers of Acme"})
        schema = schema.set(0, email).with_metadata({"hoodie_min_record_key": "DE1"})
        pq.write_metadata(schema, tmp_path / "_common_metadata")
        report = Example(path=sound(tmp_path)).audit()
        assert sorted(ids(report)) == ["hudi-record-keys-in-clear", "schema-in-clear"]
        assert {f.path for f in report.findings} == {str(tmp_path / "_common_metadata")}

    def test_a_summary_without_statistics_tells_nothing(self, tmp_path: Path) -> None:
        pq.write_metadata(customers(1).schema, tmp_path / "_common_metadata")
        assert ids(Example(path=sound(tmp_path)).audit()) == []

    def test_a_damaged_summary_is_unchecked(self, tmp_path: Path) -> None:
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
    def test_an_index_that_is_none(self, tmp_path: Path, content: bytes, found: list[str]) -> None:
        (tmp_path / "x.parquet.index").write_bytes(content)
        assert ids(Example(path=sound(tmp_path)).audit()) == found

    def test_an_index_of_other_columns_is_no_leak(self, tmp_path: Path) -> None:
        index = Index(type="bloom-filter", body=(4).to_bytes(4, "big") + bytes(8))
        columns = ColumnIndexes(name="city", indexes=(index,))
        (tmp_path / "x.parquet.index").write_bytes(FileIndex(columns=(columns,)).to_bytes())
        assert ids(Example(path=sound(tmp_path)).audit()) == []

    def test_the_finding_of_a_partition_does_not_show_its_values(self, tmp_path: Path) -> None:
        found = EXAMPLES["partition-in-clear"](tmp_path)
        other = tmp_path / "email=user2@example.com"
        shutil.copytree(tmp_path / "email=user1@example.com", other)
        (finding,) = found.audit().findings
        assert (finding.path, finding.column) == (str(tmp_path), "email")
        assert "@example.com" not in finding.message

    @pytest.mark.parametrize("folder", ["Email=user1@example.com", "e%3Amail=user1@example.com"])
    def test_a_partition_is_found_however_its_name_is_written(
        self, tmp_path: Path, folder: str
    ) -> None:
        column = "e:mail" if "%" in folder else "email"
        policy = replace(POLICY, columns={**rules(iban="k_finance"), **rules(**{column: "k_pii"})})
        (tmp_path / folder).mkdir()
        table = customers(30).drop_columns("email")
        sound(tmp_path / folder, table=table, column_keys={"k_finance": ["iban"]})
        (finding,) = Example(path=tmp_path, policy=policy).audit().findings
        assert (finding.id, finding.column) == ("partition-in-clear", column)

    def test_values_of_a_sensitive_partition_are_in_no_path_of_a_report(
        self, tmp_path: Path
    ) -> None:
        for user in ("user1", "user2"):
            below = tmp_path / f"email={user}@example.com" / "day=1"
            below.mkdir(parents=True)
            sound(below, Mode.PLAIN, table=customers(30).drop_columns("email"))
        report = Example(path=tmp_path).audit()
        assert {f.path for f in report.findings if f.id == "column-in-clear"} == {
            f"{tmp_path}/email=***{number}/day=1/x.parquet" for number in (1, 2)
        }
        assert report.paths == (
            f"{tmp_path}/email=***1/day=1/x.parquet",
            f"{tmp_path}/email=***2/day=1/x.parquet",
        )
        assert "@example.com" not in json.dumps(report.to_json())

    @pytest.mark.parametrize(
        "name",
        [
            "x.parquet.bak",
            "x.parquet.tmp",
            ".x.parquet",
            "_x.parquet",
            "_temporary/0/x.parquet",
            ".hidden/x.parquet",
            "000000_0",
        ],
    )
    def test_a_plain_copy_that_readers_skip_is_found(self, tmp_path: Path, name: str) -> None:
        sound(tmp_path)
        (tmp_path / "_SUCCESS").write_text("")
        (tmp_path / "notes.txt").write_text("PAR1")
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        write(copy, customers(30))
        (finding,) = Example(path=tmp_path).audit().findings
        assert (finding.id, finding.path) == ("unchecked-copy", str(copy.parent))
        assert copy.name in finding.message
        assert ids(Example(path=tmp_path, policy=KeyPolicy()).audit()) == []

    def test_a_file_that_another_path_lists_is_no_stray_copy(self, tmp_path: Path) -> None:
        copy = write(tmp_path / "copy.bak", customers(30), Mode.ENCRYPTED)
        sound(tmp_path)
        report = sb.audit([tmp_path, copy], policy=POLICY, keys=KEYRING)
        assert (ids(report), report.files) == ([], 2)
        report = sb.audit([tmp_path, copy], policy=POLICY, keys=KEYRING, sample=1)
        assert ids(report) == ["unchecked-sample"]

    def test_a_path_that_is_not_there_stops_no_other(self, tmp_path: Path) -> None:
        path = sound(tmp_path, column_keys={"k_finance": ["iban"]})
        report = sb.audit([path, tmp_path / "gone"], policy=POLICY, keys=KEYRING)
        assert {(f.id, f.path) for f in report.findings} == {
            ("column-in-clear", str(path)),
            ("unchecked-file", str(tmp_path / "gone")),
        }
        with pytest.raises(PolicyError, match="gone"):
            sb.audit([tmp_path / "gone", tmp_path / "too"], policy=POLICY, keys=KEYRING)

    def test_an_unforeseen_error_beside_the_files_loses_none_of_their_findings(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> list[object]:
            raise ZeroDivisionError("user1@example.com")

        sound(tmp_path, column_keys={"k_finance": ["iban"]})
        monkeypatch.setattr("secure_bloom.auditing.checks.folders._check_orphans", fail)
        report = Example(path=tmp_path).audit()
        assert sorted(ids(report)) == ["column-in-clear", "unchecked-file"]
        assert "user1" not in json.dumps(report.to_json())

    def test_a_folder_that_cannot_be_looked_into_stops_no_other(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = sound(tmp_path)
        closed = tmp_path / "closed"
        closed.mkdir()
        scan = os.scandir

        def refuse(place: str) -> object:
            if str(place) == str(closed):
                raise PermissionError(13, "Permission denied", str(closed))
            return scan(place)

        # Whoever runs the tests as root may look everywhere.
        monkeypatch.setattr(os, "scandir", refuse)
        report = sb.audit(tmp_path, policy=POLICY, keys=KEYRING)
        assert [(f.id, f.path) for f in report.findings] == [("unchecked-file", str(closed))]
        assert report.paths == (str(path),)

    def test_hudi_keys_of_a_column_that_is_not_sensitive_are_no_leak(self, tmp_path: Path) -> None:
        table = customers(30).append_column("_hoodie_record_key", pa.array(["k"] * 30))
        table = table.replace_schema_metadata({"org.apache.hudi.bloomfilter": "AAAA"})
        path = sound(tmp_path, Mode.SIGNED, table=table)
        (finding,) = Example(path=path, policy=SIGNED).audit().findings
        # Keys in clear tell no more than the column does; what they are made of nobody knows.
        assert (finding.id, finding.severity) == ("hudi-record-keys-without-rule", Severity.LOW)
        policy = with_rules(SIGNED, _hoodie_record_key=None)
        assert ids(Example(path=path, policy=policy).audit()) == []

    def test_hudi_s_filter_of_a_sensitive_column_is_a_leak(self, tmp_path: Path) -> None:
        table = customers(30).append_column("_hoodie_record_key", pa.array(["k"] * 30))
        policy = with_rules(SIGNED, _hoodie_record_key=None)
        for column, found in (("email", ["hudi-record-keys-in-clear"]), ("city", [])):
            folder = tmp_path / column
            folder.mkdir()
            path = sound(folder, Mode.SIGNED, table=table)
            sb.hudi.add_record_key_filter(path, column=column, keys=KEYRING)
            assert ids(Example(path=path, policy=policy).audit()) == found

    def test_relative_paths_are_audited_alike(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        EXAMPLES["key-material-orphaned"](tmp_path)
        monkeypatch.chdir(tmp_path)
        for path in ("x.parquet", ".", "*.parquet"):
            report = sb.audit(path, policy=POLICY, keys=KEYRING)
            assert ids(report) == ["key-material-orphaned"], path
