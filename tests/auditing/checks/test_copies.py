"""Parquet files that readers of the table skip."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.auditing.checks import copies
from secure_bloom.encryption.policy import KeyPolicy
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    POLICY,
    Example,
    sound,
)
from tests.tables import KEYRING, Mode, customers, write


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
    copy = tmp_path / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    write(copy, customers(30))
    (finding,) = Example(path=tmp_path).audit().findings
    assert (finding.id, finding.path) == ("unchecked-copy", str(copy.parent))
    assert copy.name in finding.message
    assert ids(Example(path=tmp_path, policy=KeyPolicy()).audit()) == []


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


def test_a_file_that_another_path_lists_is_no_stray_copy(tmp_path: Path) -> None:
    copy = write(tmp_path / "copy.bak", customers(30), Mode.ENCRYPTED)
    sound(tmp_path)
    report = sb.audit([tmp_path, copy], policy=POLICY, keys=KEYRING)
    assert (ids(report), report.files) == ([], 2)
    report = sb.audit([tmp_path, copy], policy=POLICY, keys=KEYRING, sample=1)
    assert ids(report) == ["unchecked-sample"]
