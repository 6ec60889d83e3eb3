"""Findings that a policy accepts, for a time and with a reason."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.encryption.accepted import AcceptedFinding, current
from secure_bloom.errors import PolicyError
from tests.tables import KEYRING, Mode, customers, write

#: A policy that wants a filter of every e-mail; nobody added one.
WANTED = '[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\nbloom = true\n'
IGNORED = '[[audit.ignore]]\nfinding = "filter-missing:email"\nreason = "added next month"\n'


def audited(tmp_path: Path, text: str) -> sb.AuditReport:
    path = write(
        tmp_path / "x.parquet",
        customers(20).select(["email"]),
        Mode.ENCRYPTED,
        column_keys={"k_pii": ["email"]},
    )
    (tmp_path / "policy.toml").write_text(text)
    return sb.audit(path, policy=tmp_path / "policy.toml", keys=KEYRING)


@pytest.mark.parametrize("until", ["", "until = 2999-12-31\n"])
def test_what_is_accepted_does_not_count_and_is_shown(tmp_path: Path, until: str) -> None:
    assert [f.id for f in audited(tmp_path, WANTED).findings] == ["filter-missing"]
    report = audited(tmp_path, WANTED + IGNORED + until)
    assert report.findings == ()
    assert [f.id for f in report.ignored] == ["filter-missing"]


def test_what_was_accepted_until_yesterday_counts_again(tmp_path: Path) -> None:
    report = audited(tmp_path, WANTED + IGNORED + "until = 2020-01-31\n")
    assert [f.id for f in report.findings] == ["filter-missing"]


def test_the_last_day_counts() -> None:
    accepted = [AcceptedFinding(finding="x", reason="y", until=date(2027, 1, 31))]
    assert current(accepted, date(2027, 1, 31)) == ["x"]
    assert current(accepted, date(2027, 2, 1)) == []


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ('finding = "filter-missing"\n', "lacks 'reason'"),
        ('reason = "why"\n', "lacks 'finding'"),
        ('finding = "a"\nreason = "b"\nuntil = "2027-01-31"\n', "is no date"),
        ('finding = "a"\nreason = "b"\nuntill = 2027-01-31\n', "unknown word 'untill'"),
    ],
)
def test_a_wrong_entry_is_told(tmp_path: Path, entry: str, told: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(WANTED + "[[audit.ignore]]\n" + entry)
    with pytest.raises(PolicyError, match=told):
        sb.KeyPolicy.load(path)
