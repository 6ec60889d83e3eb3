"""Encrypted data files in a Paimon table: no index shows a value unless the caller allows it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pypaimon_rust")

import secure_bloom as sb
from secure_bloom.lakes.paimon.table import paimon_table
from testing.paimon_tables import Warehouse, files_below

KEYS = sb.Keyring(master_keys={"k_footer": bytes(16), "k_pii": bytes(range(16))})
POLICY = """
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path / "policy.toml"


@pytest.fixture
def folder(tmp_path: Path, policy: Path) -> str:
    """A table with an encrypted data file, which was put in the place of the plain one."""
    lake = Warehouse(path=str(tmp_path / "lake"))
    folder = lake.create("id bigint, email string", file_index__in_manifest_threshold="0 b")
    lake.insert([(1, "anna"), (2, "bo")])
    [path] = paimon_table(folder).files
    plain = tmp_path / "plain"
    plain.mkdir()
    pq.write_table(pq.read_table(path), plain / "a.parquet")
    assert not sb.reencrypt(plain, policy=policy, keys=KEYS).failed
    Path(path).write_bytes((plain / "a.parquet").read_bytes())
    return folder


def test_rows_are_read_with_keys(folder: str, policy: Path) -> None:
    found = sb.read_table(folder, where="email = 'bo'", policy=policy, keys=KEYS)
    assert found.to_pylist() == [{"id": 2, "email": "bo"}]
    with pytest.raises(sb.KeyUnavailableError):
        sb.read_table(folder)


def test_an_index_of_an_encrypted_column_is_refused(folder: str, policy: Path) -> None:
    before = files_below(folder)
    [report] = sb.paimon.build_indexes(folder, ["email"], policy=policy, keys=KEYS).files
    assert report.status == "failed"
    assert "the data is encrypted" in str(report.error)
    assert files_below(folder) == before


def test_the_caller_may_allow_it_and_hears_what_it_shows(folder: str, policy: Path) -> None:
    report = sb.paimon.build_indexes(
        folder, ["email"], policy=policy, keys=KEYS, allow_clear_index=True
    )
    assert [file.status for file in report.files] == ["built"]
    assert any("email" in note and "in clear" in note for note in report.notes)
    [finding] = [
        it
        for it in sb.audit(folder, policy=policy, keys=KEYS).findings
        if it.column == "email" and "index" in it.message
    ]
    assert "clear" in finding.message


def test_a_column_in_clear_gets_its_index(folder: str, policy: Path) -> None:
    report = sb.paimon.build_indexes(folder, ["id"], policy=policy, keys=KEYS, jobs=2)
    assert [file.status for file in report.files] == ["built"]
    assert report.notes == ()
