"""A policy's columns are looked for in the files of a run, before one is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from secure_bloom.errors import WorkerLostError
from secure_bloom.parquet.pages import Page
from secure_bloom.rekeying.file_work import RekeyWork, check_columns
from secure_bloom.rekeying.rekey_work import reencryption
from secure_bloom.rekeying.transfer import moved_page
from secure_bloom.runs.work import FileTask
from testing.live_footer import encode_footer
from testing.surgery import opened
from testing.tables import KEYRING, CountingKms, Mode, customers, write


def work(column: str, *, needs_columns: bool = True) -> RekeyWork:
    rules = {column: ColumnRule(path=column, key="k_pii")}
    policy = sb.KeyPolicy(footer_key="k_footer", columns=rules)
    return reencryption(policy, KEYRING, needs_columns=needs_columns)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "0.parquet").write_text("no Parquet file")
    for number, name in enumerate(("id", "email"), 1):
        pq.write_table(pa.table({name: ["x"]}), tmp_path / f"{number}.parquet")
    return sorted(map(str, tmp_path.iterdir()))


def test_a_column_that_one_file_has_is_enough(files: list[str]) -> None:
    check_columns(files, work("email"))
    work("email").check(files)


def test_a_misspelt_column_is_refused(files: list[str]) -> None:
    with pytest.raises(sb.PolicyError, match="emial"):
        work("emial").check(files)
    # A table's schema has said which columns there are.
    work("emial", needs_columns=False).check(files)


def test_a_file_whose_process_died_is_one_step_that_failed() -> None:
    found = work("email").failed(FileTask("a.parquet"), WorkerLostError("has died"))
    assert (found.path, found.status) == ("a.parquet", "failed")
    assert work("email").steps_of(found) == 1


def without_crypto_metadata(path: Path, column: str) -> None:
    """Let a signed footer say that an encrypted column is in clear."""
    with opened(path) as it:
        ordinal = next(i for i, leaf in enumerate(it.footer.leaves) if leaf.name == column)
        for group in it.footer.row_groups:
            del group.columns[ordinal].crypto_metadata
            del group.columns[ordinal].encrypted_column_metadata
        content = it.file.read_at(0, it.footer.tail.offset) + encode_footer(it.footer)
    path.write_bytes(content)


@pytest.fixture
def lying(tmp_path: Path) -> Path:
    path = write(
        tmp_path / "lake.parquet", customers(50), Mode.SIGNED, column_keys={"k_pii": ["email"]}
    )
    without_crypto_metadata(path, "email")
    return path


def test_decrypt_writes_no_file_that_nobody_can_read(lying: Path, tmp_path: Path) -> None:
    output = tmp_path / "clear"
    [file] = sb.decrypt(lying, output=output, keys=KEYRING).files
    assert file.status == "failed"
    assert "email" in str(file.error)
    assert "the old one was left" in str(file.hint)
    assert list(output.rglob("*")) == []


def test_reencrypt_leaves_such_a_file_as_it_was(lying: Path) -> None:
    before = lying.read_bytes()
    policy = sb.KeyPolicy(footer_key="k_footer")
    [file] = sb.reencrypt(lying, policy=policy, keys=KEYRING, new_data_keys=True).files
    assert file.status == "failed"
    assert lying.read_bytes() == before
    assert [path.name for path in lying.parent.iterdir()] == [lying.name]


def test_files_in_clear_are_encrypted_as_before(tmp_path: Path) -> None:
    pq.write_table(customers(50), tmp_path / "a.parquet")
    policy = sb.KeyPolicy(footer_key="k_footer")
    [file] = sb.reencrypt(tmp_path, policy=policy, keys=KEYRING).files
    assert file.status == "reencrypted"
    assert sb.read_table(tmp_path, keys=KEYRING).num_rows == 50


@pytest.mark.parametrize("verify", [False, True])
def test_with_verify_every_column_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verify: bool
) -> None:
    """A writer that seals a page wrongly is found, which no other look before the rename shows."""
    path = write(tmp_path / "lake.parquet", customers(50), Mode.UNIFORM)
    before = path.read_bytes()

    def broken(page: Page, new: ColumnCipher | None) -> tuple[bytes, bytes]:
        header, body = moved_page(page, new)
        return header, body[:-1] + bytes([body[-1] ^ 1])

    monkeypatch.setattr("secure_bloom.rekeying.transfer.moved_page", broken)
    policy = sb.KeyPolicy(footer_key="k_footer", uniform=True)
    [file] = sb.reencrypt(
        path, policy=policy, keys=KEYRING, new_data_keys=True, verify=verify
    ).files
    assert (file.status == "failed") is verify
    assert (path.read_bytes() == before) is verify


class Forgetful(CountingKms):
    """A KMS that wraps keys and cannot unwrap what it has wrapped since."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return KEYRING.wrap_key(bytes(len(key_bytes)), master_key_identifier)


@pytest.mark.parametrize("verify", [False, True])
def test_with_verify_rotated_keys_open_the_file(tmp_path: Path, verify: bool) -> None:
    path = write(tmp_path / "lake.parquet", customers(50), Mode.UNIFORM)
    before = path.read_bytes()
    policy = sb.KeyPolicy(footer_key="k_footer")
    [file] = sb.rotate_keys(
        path, policy=policy, moves={"k_footer": "k_pii"}, keys=Forgetful(), verify=verify
    ).files
    assert (file.status == "failed") is verify
    assert (path.read_bytes() == before) is verify


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED, Mode.UNIFORM])
def test_with_verify_sound_files_are_done(tmp_path: Path, mode: Mode) -> None:
    column_keys = {} if mode is Mode.UNIFORM else {"column_keys": {"k_pii": ["email"]}}
    write(tmp_path / "a.parquet", customers(50), mode, **column_keys)
    policy = sb.KeyPolicy(footer_key="k_footer")
    for external in (False, True):
        options = EncryptionOptions(internal_storage=not external)
        wanted = replace(policy, encryption=options)
        done = sb.reencrypt(tmp_path, policy=wanted, keys=KEYRING, new_data_keys=True, verify=True)
        assert not done.failed
        moved = sb.rotate_keys(
            tmp_path, policy=wanted, moves={"k_footer": "k_pii"}, keys=KEYRING, verify=True
        )
        assert not moved.failed
        assert sb.read_table(tmp_path, keys=KEYRING).num_rows == 50
    done = sb.decrypt(tmp_path, output=tmp_path.parent / "clear", keys=KEYRING, verify=True)
    assert not done.failed
