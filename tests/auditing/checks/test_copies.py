"""Parquet files that readers of the table skip."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.auditing.checks import copies
from secure_bloom.encryption.policy import KeyPolicy
from testing.tables import KEYRING, Mode, customers, write
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    POLICY,
    Example,
    rules,
    sound,
)


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
        "x.crc",
        "x.index",
        "x.json",
    ],
)
def test_a_plain_copy_that_readers_skip_is_found(tmp_path: Path, name: str) -> None:
    sound(tmp_path)
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "notes.txt").write_text("PAR1")
    (tmp_path / "x.parquet.index").write_text("old")
    copy = tmp_path / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    write(copy, customers(30))
    findings = Example(path=tmp_path).audit().findings
    found = {(it.id, it.severity, it.path, it.column) for it in findings}
    assert found == {
        ("column-in-clear", "critical", str(copy), "email"),
        ("column-in-clear", "critical", str(copy), "iban"),
    }
    # The policy names no key, and no column of which a copy could show anything.
    assert set(ids(Example(path=tmp_path, policy=KeyPolicy()).audit())) <= {"key-not-in-policy"}


def test_a_copy_under_a_retired_key_is_found(tmp_path: Path) -> None:
    """A key that is destroyed while a copy depends on it was not revoked: the copy can be read."""
    old = sound(tmp_path).rename(tmp_path / "_old.parquet")
    sound(tmp_path, column_keys={"k_pii": ["email"]})
    policy = replace(POLICY, columns=rules(email="k_pii"), retired_keys=frozenset({"k_finance"}))
    findings = Example(path=tmp_path, policy=policy).audit().findings
    assert {(it.id, it.path) for it in findings} == {("key-retired", str(old))}
    assert "rm" in str(findings[0].fix)


@pytest.mark.parametrize(
    "name",
    [
        "_SUCCESS",
        "_KEY_MATERIAL_FOR_x.parquet",
        "_KEY_MATERIAL_FOR_gone.json",
        "_temporary/_metadata",
        ".notes.txt.crc",
        "x.parquet.index",
    ],
)
def test_no_name_excuses_a_copy(tmp_path: Path, name: str) -> None:
    sound(tmp_path)
    (tmp_path / "notes.txt").write_text("")
    copy = tmp_path / name
    copy.parent.mkdir(exist_ok=True)
    write(copy, customers(30))
    findings = Example(path=tmp_path).audit().findings
    assert ("column-in-clear", str(copy)) in {(each.id, each.path) for each in findings}


def test_a_summary_with_pages_is_a_copy(tmp_path: Path) -> None:
    sound(tmp_path)
    write(tmp_path / "_metadata", customers(30), write_statistics=False, store_schema=False)
    findings = Example(path=tmp_path).audit().findings
    assert {(it.id, it.path) for it in findings} == {
        ("column-in-clear", str(tmp_path / "_metadata"))
    }


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_pages_in_clear_of_a_writer_that_died_are_found(
    tmp_path: Path, version: str, dictionary: bool
) -> None:
    sound(tmp_path)
    died = tmp_path / "_temporary" / "x.parquet"
    died.parent.mkdir()
    write(died, customers(30), data_page_version=version, use_dictionary=dictionary)
    died.write_bytes(died.read_bytes()[:1000])
    (finding,) = Example(path=tmp_path).audit().findings
    assert (finding.id, finding.path) == ("unchecked-copy", str(died))
    assert f"`rm -f {died}`" in str(finding.to_dict()["fix"])
    # What is encrypted shows nothing, cut or not.
    write(died, customers(30), Mode.UNIFORM)
    died.write_bytes(died.read_bytes()[:1000])
    assert ids(Example(path=tmp_path).audit()) == []


def test_files_that_were_not_opened_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound(tmp_path)
    for name in ("a.txt", "b.txt", "z.parquet.bak"):
        (tmp_path / name).write_text("text")
    assert ids(Example(path=tmp_path).audit()) == []
    monkeypatch.setattr(copies, "_MOST_OPENED", 2)
    (finding,) = Example(path=tmp_path).audit().findings
    assert (finding.id, finding.path) == ("unchecked-copy", str(tmp_path))
    assert "the others were not opened" in finding.message
    # The path is that of the whole table.
    assert "`rm" not in str(finding.to_dict()["fix"])


def test_a_copy_is_found_once_though_two_paths_lead_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lake").mkdir()
    sound(tmp_path / "lake")
    write(tmp_path / "lake" / "_old.parquet", customers(30))
    monkeypatch.chdir(tmp_path)
    given = [str(tmp_path / "lake"), "lake", "lake/../lake"]
    report = sb.audit(given, policy=POLICY, keys=KEYRING)
    found = [it.column for it in report.findings if it.id == "column-in-clear"]
    assert sorted(map(str, found)) == ["email", "iban"]


def test_a_file_that_another_path_lists_is_no_stray_copy(tmp_path: Path) -> None:
    copy = write(tmp_path / "copy.bak", customers(30), Mode.ENCRYPTED)
    sound(tmp_path)
    report = sb.audit([tmp_path, copy], policy=POLICY, keys=KEYRING)
    assert (ids(report), report.files) == ([], 2)
    report = sb.audit([tmp_path, copy], policy=POLICY, keys=KEYRING, sample=1)
    assert ids(report) == ["unchecked-sample"]
