"""New keys are random, of one file alone, and wrapped as the policy says."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.encryption.file_keys import ExternalReference, KeyMaterial
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from secure_bloom.rekeying.new_keys import KeyMaker, NewFileKeys, new_file_keys
from secure_bloom.rekeying.protection import wanted_protection
from testing.surgery import opened
from testing.tables import KEYRING, write


class WrapCounter:
    """A keyring that counts the keys that it wraps."""

    def __init__(self) -> None:
        self.wrapped: list[str] = []

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        self.wrapped.append(master_key_identifier)
        return KEYRING.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return KEYRING.unwrap_key(wrapped_key, master_key_identifier)


def made(folder: Path, kms: WrapCounter, files: int = 1, **options: object) -> list[NewFileKeys]:
    encryption = EncryptionOptions(**options)  # type: ignore[arg-type]
    policy = KeyPolicy(
        footer_key="k_footer",
        columns={"a": ColumnRule(path="a", key="k_pii")},
        encryption=encryption,
    )
    maker = KeyMaker(kms, encryption)
    with opened(write(folder / "x.parquet", pa.table({"a": [1], "b": [2]}))) as it:
        wanted = wanted_protection(policy, it.footer.leaves)
    return [new_file_keys(maker, wanted, encryption) for _ in range(files)]


def test_no_two_keys_and_no_two_files_are_alike(tmp_path: Path) -> None:
    files = made(tmp_path, WrapCounter(), files=3)
    keys = {it.footer.key.key for it in files} | {it.columns[0].key.key for it in files}
    assert len(keys) == 6
    assert len({it.aad_file_unique for it in files}) == 3


def test_one_kek_serves_all_files_of_a_master_key(tmp_path: Path) -> None:
    kms = WrapCounter()
    made(tmp_path, kms, files=3)
    assert sorted(kms.wrapped) == ["k_footer", "k_pii"]
    made(tmp_path, single := WrapCounter(), files=3, double_wrapping=False)
    assert len(single.wrapped) == 6


def test_a_column_without_a_key_has_no_cipher(tmp_path: Path) -> None:
    (keys,) = made(tmp_path, WrapCounter())
    own = keys.cipher(2, 0)
    assert own is not None
    assert (own.key, own.row_group_ordinal, own.column_ordinal) == (keys.columns[0].key, 2, 0)
    assert own.file_aad == keys.aad_file_unique
    assert keys.cipher(2, 1) is None


@pytest.mark.parametrize("bits", [128, 256])
def test_keys_have_the_bits_of_the_policy(tmp_path: Path, bits: int) -> None:
    (keys,) = made(tmp_path, WrapCounter(), data_key_bits=bits)
    assert len(keys.footer.key.key) * 8 == bits


def test_material_stands_in_the_footer_or_under_fresh_names_outside(tmp_path: Path) -> None:
    (inside,) = made(tmp_path, WrapCounter())
    assert inside.external == {}
    assert isinstance(KeyMaterial.parse(inside.footer.key_metadata), KeyMaterial)
    first, second = made(tmp_path, WrapCounter(), files=2, internal_storage=False)
    assert isinstance(KeyMaterial.parse(first.footer.key_metadata), ExternalReference)
    assert len(first.external) == 2
    assert not first.external.keys() & second.external.keys()
