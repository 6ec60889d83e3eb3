"""What a terminal shows of files whose keys changed, and of the keys that files depend on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from secure_bloom.cli.rekey_verbs import print_rekey_report, print_used_keys
from secure_bloom.inspecting.key_use import FileKeyUse, KeyStanding, KeyUseReport, UsedKey
from secure_bloom.rekeying.rekey_report import RekeyedFile, RekeyReport


def report(count: int, *, dry_run: bool = False) -> RekeyReport:
    file = {"status": "rotated", "master_keys_before": ("k_old",), "master_keys": ("k_new",)}
    files = (RekeyedFile(path=f"lake/part-{i}.parquet", **file) for i in range(count))  # type: ignore[arg-type]
    return RekeyReport(files=tuple(files), notes=("_metadata is out of date",), dry_run=dry_run)


def test_keys_before_and_now_stand_beside_each_file(capsys: pytest.CaptureFixture[str]) -> None:
    print_rekey_report(report(2), verbose=False)
    text = capsys.readouterr().out
    for word in ("part-0.parquet", "part-1.parquet", "k_old", "k_new"):
        assert word in text
    assert text.endswith("2 files: 2 rotated\nnote: _metadata is out of date\n")


def test_many_files_are_only_counted_without_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    print_rekey_report(report(21, dry_run=True), verbose=False)
    text = capsys.readouterr().out
    assert "part-" not in text
    assert "21 files: 21 would be rotated" in text
    print_rekey_report(report(21), verbose=True)
    assert capsys.readouterr().out.count("part-") == 21


def used(*, is_complete: bool) -> KeyUseReport:
    keys = (
        UsedKey(master_key="k_f", version="2", opens_footer=True, columns=()),
        UsedKey(master_key="k_pii", version=None, opens_footer=False, columns=("email", "iban")),
    )
    return KeyUseReport(files=(FileKeyUse(path="a.parquet", keys=keys, is_complete=is_complete),))


def test_what_each_key_opens_is_told_with_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    print_used_keys(used(is_complete=True), verbose=True)
    text = capsys.readouterr().out
    assert "a.parquet: k_f: the footer\na.parquet: k_pii: email, iban\n" in text
    assert "would not open" not in text


def test_a_footer_that_does_not_open_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    print_used_keys(used(is_complete=False), verbose=False)
    text = capsys.readouterr().out
    assert "1 file whose footer would not open" in text
    assert "email" not in text


def test_files_that_readers_skip_are_counted_for_each_key(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (file,) = used(is_complete=True).files
    keys = tuple(replace(key, in_policy=KeyStanding.USED) for key in file.keys)
    files = tuple(FileKeyUse(path=f"{i}.parquet", keys=keys) for i in range(6))
    report = KeyUseReport(files=files[:4], skipped=files[4:], only=("k_f", "k_pii"))
    print_used_keys(report, verbose=False)
    head, _, footer, _, *_ = capsys.readouterr().out.strip().splitlines()
    assert head.split() == ["master", "key", "version", "files", "skipped", "policy"]
    assert footer.split() == ["k_f", "2", "4", "2", "in", "use"]
    assert (report.files_by_key[("k_f", "2")], report.skipped_by_key[("k_f", "2")]) == (4, 2)
