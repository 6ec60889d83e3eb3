"""Errors that stop a check are findings, and stop nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from testing.tables import KEYRING
from tests.auditing.datasets import batch, ids
from tests.auditing.examples import (
    POLICY,
    Example,
    sound,
)


def test_a_path_that_is_not_there_stops_no_other(tmp_path: Path) -> None:
    path = sound(tmp_path, column_keys={"k_finance": ["iban"]})
    report = sb.audit([path, tmp_path / "gone"], policy=POLICY, keys=KEYRING)
    assert {(f.id, f.path) for f in report.findings} == {
        ("column-in-clear", str(path)),
        ("unchecked-file", str(tmp_path / "gone")),
    }
    with pytest.raises(PolicyError, match="gone"):
        sb.audit([tmp_path / "gone", tmp_path / "too"], policy=POLICY, keys=KEYRING)


def test_an_unforeseen_error_beside_the_files_loses_none_of_their_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[object]:
        raise ZeroDivisionError("user1@example.com")

    sound(tmp_path, column_keys={"k_finance": ["iban"]})
    monkeypatch.setattr("secure_bloom.auditing.checks.folders._check_orphans", fail)
    report = Example(path=tmp_path).audit()
    assert sorted(ids(report)) == ["column-in-clear", "unchecked-file"]
    assert "user1" not in json.dumps(report.to_dict())


def test_a_folder_that_cannot_be_looked_into_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def test_a_broken_file_stops_no_other(tmp_path: Path) -> None:
    batch(tmp_path, 2)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no footer PAR1")
    report = Example(path=tmp_path).audit()
    assert ids(report) == ["unchecked-file"]
    assert (report.files, report.columns_checked) == (3, 10)


def test_findings_about_keys_tell_what_led_to_them(tmp_path: Path) -> None:
    class Failing:
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
            raise RuntimeError("token-of-the-test")

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            if master_key_identifier == "k_pii":
                raise RuntimeError("token-of-the-test")
            return KEYRING.unwrap_key(wrapped_key, master_key_identifier)

    sound(tmp_path)
    report = sb.audit(tmp_path, policy=POLICY, keys=Failing())
    told = {finding.id: finding.causes for finding in report.findings}
    assert told["unchecked-column"] == told["policy-key-unusable"] == ("builtins.RuntimeError",)
    assert "token-of-the-test" not in json.dumps(report.to_dict())
