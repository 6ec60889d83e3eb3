"""Statistics and record keys that a footer shows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.auditing.findings import Severity
from testing.surgery import edit_footer
from testing.tables import KEYRING, Mode, customers
from testing.thrift.metadata import ColumnCryptoMetaData
from testing.thrift.views import Empty
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    EXAMPLES,
    POLICY,
    SIGNED,
    Example,
    chunk_of,
    sound,
    with_rules,
)


def test_statistics_under_the_footer_key_are_in_clear_in_a_signed_footer(tmp_path: Path) -> None:
    path = EXAMPLES["statistics-in-clear"](tmp_path).path
    crypto = ColumnCryptoMetaData.of(ENCRYPTION_WITH_FOOTER_KEY=Empty())
    edit_footer(path, lambda it: setattr(chunk_of(it, "email"), "crypto_metadata", crypto))
    policy = with_rules(SIGNED, email="k_footer")
    report = Example(path=path, policy=policy).audit(keys=None, without_keys=True)
    assert "statistics-in-clear" in ids(report)


def test_hudi_keys_of_a_column_that_is_not_sensitive_are_no_leak(tmp_path: Path) -> None:
    table = customers(30).append_column("_hoodie_record_key", pa.array(["k"] * 30))
    table = table.replace_schema_metadata({"org.apache.hudi.bloomfilter": "AAAA"})
    path = sound(tmp_path, Mode.SIGNED, table=table)
    (finding,) = Example(path=path, policy=SIGNED).audit().findings
    # Keys in clear tell no more than the column does; what they are made of nobody knows.
    assert (finding.id, finding.severity) == ("hudi-record-keys-without-rule", Severity.LOW)
    policy = with_rules(SIGNED, _hoodie_record_key=None)
    assert ids(Example(path=path, policy=policy).audit()) == []


def test_hudi_s_filter_of_a_sensitive_column_is_a_leak(tmp_path: Path) -> None:
    table = customers(30).append_column("_hoodie_record_key", pa.array(["k"] * 30))
    policy = with_rules(SIGNED, _hoodie_record_key=None)
    for name, found in (("email", ["hudi-record-keys-in-clear"]), ("city", [])):
        folder = tmp_path / name
        folder.mkdir()
        path = sound(folder, Mode.SIGNED, table=table)
        sb.hudi.add_record_key_filter(path, column=name, keys=KEYRING, allow_clear_entry=True)
        assert ids(Example(path=path, policy=policy).audit()) == found


@pytest.mark.parametrize("column", ["email", "city"])
@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED], ids=lambda mode: mode.name)
def test_a_filter_is_a_note_or_a_finding(tmp_path: Path, mode: Mode, column: str) -> None:
    path = sound(tmp_path, mode)
    run = sb.hudi.add_record_key_filter(path, column=column, keys=KEYRING)
    report = Example(path=path, policy=SIGNED if mode is Mode.SIGNED else POLICY).audit()
    noted = [it.what for it in report.notes if it.id == "hudi-filter-present"]
    if mode is Mode.SIGNED and column == "email":
        # The writer refuses it, so there is nothing to note.
        assert (len(run.failed), noted, ids(report)) == (1, [], [])
    else:
        readers = "anyone" if mode is Mode.SIGNED else "whoever has the footer key"
        assert noted == [f"{readers} can ask which record keys Hudi's filter holds"]
        assert "hudi-record-keys-in-clear" not in ids(report)
