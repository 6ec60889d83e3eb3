"""The modules of a column chunk are bound to their place; pages of AES_GCM_CTR_V1 have no tag."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.encryption.file_keys.resolver import DataKey
from secure_bloom.errors import IntegrityError

KEY = DataKey(key=b"0123456789012345", name="k")
PAGE, HEADER = ModuleType.DATA_PAGE, ModuleType.DATA_PAGE_HEADER


def cipher(**changes: Any) -> ColumnCipher:
    settings = {"key": KEY, "file_aad": b"file", "uses_ctr": False}
    place = {"row_group_ordinal": 2, "column_ordinal": 5}
    return ColumnCipher(**{**settings, **place, **changes})


@pytest.mark.parametrize("uses_ctr", [False, True])
@pytest.mark.parametrize("module", [PAGE, HEADER, ModuleType.DICTIONARY_PAGE])
def test_what_is_encrypted_is_decrypted(module: ModuleType, uses_ctr: bool) -> None:
    ours = cipher(uses_ctr=uses_ctr)
    page = None if module is ModuleType.DICTIONARY_PAGE else 3
    stored = ours.encrypt(module, b"values", page=page)
    assert ours.decrypt(module, stored, page=page) == b"values"
    assert stored != ours.encrypt(module, b"values", page=page)  # a nonce is used once


@pytest.mark.parametrize(
    "elsewhere",
    [{"row_group_ordinal": 3}, {"column_ordinal": 6}, {"file_aad": b"other"}],
    ids=["row group", "column", "file"],
)
def test_a_module_that_was_moved_fails_its_tag(elsewhere: dict[str, Any]) -> None:
    stored = cipher().encrypt(PAGE, b"values", page=3)
    with pytest.raises(IntegrityError):
        cipher(**elsewhere).decrypt(PAGE, stored, page=3)
    with pytest.raises(IntegrityError):
        cipher().decrypt(PAGE, stored, page=4)


def test_a_cipher_of_another_row_group_is_as_if_made_there() -> None:
    assert cipher().at(7) == cipher(row_group_ordinal=7)
    assert dataclasses.replace(cipher().at(7), row_group_ordinal=2) == cipher()


@pytest.mark.parametrize("uses_ctr", [False, True])
def test_pages_grow_by_their_overhead(uses_ctr: bool) -> None:
    ours = cipher(uses_ctr=uses_ctr)
    assert len(ours.encrypt(PAGE, bytes(100), page=0)) == 100 + ours.page_overhead
    assert "0123456789" not in repr(ours)
