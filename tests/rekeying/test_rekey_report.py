"""Reports of files under other keys: what changed, and the keys that files depended on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from secure_bloom.calling.options import FooterMode
from secure_bloom.errors import KeyUnavailableError
from secure_bloom.rekeying.protection import KeyUse, Protection
from secure_bloom.rekeying.rekey_report import (
    RekeyedFile,
    RekeyReport,
    RekeyStatus,
    failed_file,
    rekeyed_file,
)
from testing.surgery import opened
from testing.tables import customers, write

PLAIN = Protection(
    footer_mode=FooterMode.PLAINTEXT, algorithm=None, footer=None, columns=(None,) * 5
)
SIGNED = Protection(
    footer_mode=FooterMode.SIGNED,
    algorithm=None,
    footer=KeyUse(name="k_f"),
    columns=(KeyUse(name="k_pii"), KeyUse(name=None), None, None, None),
)


def test_a_file_tells_its_keys_before_and_now(tmp_path: Path) -> None:
    with opened(write(tmp_path / "x.parquet", customers(9))) as it:
        report = rekeyed_file(
            it.file,
            it.footer.leaves,
            "reencrypted",
            before=PLAIN,
            after=SIGNED,
            size=7,
            started=time.perf_counter(),
        )
        assert (report.bytes_before, report.bytes_after) == (it.file.size, 7)
    assert (report.footer_before, report.footer) == ("plaintext", "signed")
    # A key whose name nobody knows is none that a table could be said to depend on.
    assert (report.master_keys_before, report.master_keys) == ((), ("k_f", "k_pii"))
    changes = [(it.column, it.key_before, it.key) for it in report.columns]
    assert changes[:3] == [("email", None, "k_pii"), ("iban", None, None), ("id", None, None)]


@pytest.mark.parametrize(
    ("status", "changes"),
    [("reencrypted", True), ("decrypted", True), ("rotated", True), ("unchanged", False)],
)
def test_what_becomes_another_file(status: RekeyStatus, changes: bool) -> None:
    assert RekeyedFile(path="a", status=status).changes is changes


def test_a_failure_is_told_with_its_hint_and_counted() -> None:
    failed = failed_file("a.parquet", KeyUnavailableError("no key", hint="give it"), 0.5)
    assert (failed.status, failed.hint, failed.seconds) == ("failed", "give it", 0.5)
    assert not failed.changes
    report = RekeyReport(files=(failed, RekeyedFile(path="b", status="rotated")))
    assert report.failed == (failed,)
    assert repr(report) == "<RekeyReport: 2 files (1 failed, 1 rotated)>"
