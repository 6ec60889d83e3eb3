"""Which master keys open what, told without any key; versions as the KMS wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from testing.tables import KEYRING, Mode, customers, write


class VersionedKms:
    """Wraps as Vault does: the version of the key stands before what it wrapped."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return "vault:v3:" + KEYRING.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return KEYRING.unwrap_key(wrapped_key.removeprefix("vault:v3:"), master_key_identifier)


def test_names_stand_in_a_signed_footer_for_everyone(tmp_path: Path) -> None:
    (file,) = sb.keys_used(write(tmp_path / "x.parquet", customers(30), Mode.SIGNED)).files
    assert file.is_complete
    assert [(it.master_key, it.opens_footer, it.columns) for it in file.keys] == [
        ("k_footer", True, ()),
        ("k_pii", False, ("email",)),
        ("k_finance", False, ("iban",)),
    ]


def test_an_encrypted_footer_shows_its_own_key_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(30), Mode.ENCRYPTED)
    (closed,) = sb.keys_used(path).files
    assert not closed.is_complete
    assert [it.master_key for it in closed.keys] == ["k_footer"]
    (open_,) = sb.keys_used(path, keys=KEYRING).files
    assert open_.is_complete
    assert len(open_.keys) == 3


def test_columns_under_the_footer_key_are_its(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(30), Mode.UNIFORM)
    (file,) = sb.keys_used(path, keys=KEYRING).files
    (key,) = file.keys
    assert key.opens_footer
    assert key.columns == ("email", "iban", "id", "city", "score")


def test_versions_and_files_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", customers(30))
    (tmp_path / "p.toml").write_text('[footer]\nkey = "k_footer"\n')
    for name in ("a", "b"):
        done = sb.reencrypt(
            tmp_path / "x.parquet",
            policy=tmp_path / "p.toml",
            keys=VersionedKms(),
            output=tmp_path / name,
        )
        assert not done.failed
    used = sb.keys_used([tmp_path / "a", tmp_path / "b"])
    assert used.files_by_key == {("k_footer", "3"): 2}
    assert repr(used) == "<KeyUseReport: 1 master key in 2 files>"


@pytest.mark.parametrize("content", [b"", b"PAR1" * 5])
def test_what_cannot_be_read_is_told_and_stops_no_other(tmp_path: Path, content: bytes) -> None:
    write(tmp_path / "good.parquet", customers(30), Mode.SIGNED)
    (tmp_path / "bad.parquet").write_bytes(content)
    used = sb.keys_used(tmp_path)
    assert [Path(file.path).name for file in used.failed] == ["bad.parquet"]
    assert used.files_by_key[("k_pii", None)] == 1
