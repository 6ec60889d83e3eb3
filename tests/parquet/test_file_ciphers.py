"""Which AAD and which key belong to a file and to its columns."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.kms import ExplicitKeys
from secure_bloom.errors import (
    KeyUnavailableError,
)
from secure_bloom.parquet.file_ciphers import file_aad_of, module_bodies
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import unlock
from secure_bloom.storage import open_input
from testing.surgery import opened
from testing.tables import KEYRING, CountingKms, Mode, customers, write
from testing.thrift.metadata import AesGcmCtrV1, EncryptionAlgorithm


def _aad(
    stored: bytes | None, supply: bool, given: bytes | None, unique: bytes | None = b"unique"
) -> bytes:
    parameters = AesGcmCtrV1.of(supply_aad_prefix=supply)
    if stored is not None:
        parameters.aad_prefix = stored
    if unique is not None:
        parameters.aad_file_unique = unique
    keys = KeyResolver(ExplicitKeys(footer=bytes(16), aad_prefix=given)).for_file()
    return file_aad_of(EncryptionAlgorithm.of(AES_GCM_CTR_V1=parameters), keys)


def test_the_aad_of_a_file_is_prefix_and_unique_part() -> None:
    assert _aad(None, False, None) == b"unique"
    assert _aad(b"stored ", False, None) == b"stored unique"
    assert _aad(b"stored ", True, None) == b"stored unique"
    assert _aad(b"stored ", False, b"stored ") == b"stored unique"
    assert _aad(None, True, b"given ") == b"given unique"
    assert _aad(b"stored ", False, None, None) == b"stored "
    assert _aad(b"", False, None, None) == b""


@pytest.mark.parametrize(
    ("stored", "supply", "given", "message", "hint"),
    [
        (
            None,
            False,
            b"p",
            "an AAD prefix was supplied, the file was written without one",
            "leave the prefix out for this file; if it should have one, it was exchanged",
        ),
        (
            None,
            True,
            None,
            "the file was written with an AAD prefix that it does not store",
            'supply it as "aad_prefix" in the keyring\'s "explicit" part',
        ),
        (b"a", False, b"b", "the AAD prefix supplied is not the one stored in the file", None),
    ],
)
def test_a_prefix_that_does_not_fit_says_why(
    stored: bytes | None, supply: bool, given: bytes | None, message: str, hint: str | None
) -> None:
    with pytest.raises(KeyUnavailableError) as caught:
        _aad(stored, supply, given)
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_the_cipher_of_a_column_is_that_of_its_footer(tmp_path: Path, algorithm: str) -> None:
    path = write(
        tmp_path / "x.parquet",
        customers(40),
        Mode.UNIFORM,
        row_group_size=20,
        encryption={"encryption_algorithm": algorithm},
    )
    with opened(path) as it:
        column_cipher = it.chunk(1, "city").cipher
        assert column_cipher is not None
        assert column_cipher.uses_ctr is (algorithm == "AES_GCM_CTR_V1")
        assert (column_cipher.row_group_ordinal, column_cipher.column_ordinal) == (1, 3)
        assert column_cipher.file_aad == it.footer.file_aad != b""


def test_a_column_under_the_footer_key_needs_no_checked_footer(tmp_path: Path) -> None:
    with opened(write(tmp_path / "x.parquet", customers(10), Mode.UNIFORM)) as it:
        unchecked = dataclasses.replace(it.footer.read, footer_key=None)
        column_cipher = unchecked.chunk(0, 0).cipher
        assert column_cipher == it.chunk(0, "email").cipher
    assert column_cipher is not None
    assert column_cipher.key == it.footer.key


def test_a_column_under_the_footer_key_is_opened_by_the_key_given_for_the_footer(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.parquet"
    properties = pe.create_encryption_properties(b"0123456789abcdef")
    pq.write_table(customers(3), path, encryption_properties=properties)
    with opened(path, ExplicitKeys(footer=b"0123456789abcdef")) as it:
        column_cipher = it.chunk(0, "email").cipher
    assert column_cipher is not None
    assert column_cipher.key.key == b"0123456789abcdef"


def test_a_key_is_looked_for_once_also_where_it_is_missing(tmp_path: Path) -> None:
    class Missing(CountingKms):
        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            super().unwrap_key(wrapped_key, master_key_identifier)
            if master_key_identifier == "k_pii":
                raise KeyUnavailableError("no k_pii here", hint="ask for it")
            return KEYRING.unwrap_key(wrapped_key, master_key_identifier)

    kms = Missing()
    path = write(tmp_path / "x.parquet", customers(40), Mode.ENCRYPTED, row_group_size=10)
    with open_input(str(path)) as file:
        keys = KeyResolver(kms).for_file()
        footer = unlock(read_tail(file), keys)
        before = len(kms.asked)
        for row_group in range(4):
            with pytest.raises(KeyUnavailableError, match="no k_pii here") as caught:
                footer.chunk(row_group, 0)
            assert (caught.value.row_group, caught.value.hint) == (row_group, "ask for it")
    assert len(kms.asked) == before + 1


def test_the_key_of_a_footer_is_looked_for_once_and_serves_its_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.parquet", customers(20), Mode.UNIFORM)
    with open_input(str(path)) as file:
        keys, asked = KeyResolver(KEYRING).for_file(), list[object]()
        footer = unlock(read_tail(file), keys)
        monkeypatch.setattr(keys, "footer_key", asked.append)
        assert footer.chunk(0, 0).cipher is not None
    assert asked == []


def module(size: int) -> bytes:
    return size.to_bytes(4, "little") + bytes(size)


def test_modules_fill_their_extents() -> None:
    one, two = module(28), module(100)
    data = b"xyz" + one + two
    assert module_bodies(data, 0, [(3, 35), (35, 139)], 1) == [(7, 35), (39, 139)]
    assert module_bodies(data, 10, [(13, 149)], 2) == [(7, 35), (39, 139)]
    assert module_bodies(data, 0, [(3, 139)], 1) is None
    assert module_bodies(data, 0, [(3, 138)], 2) is None
    assert module_bodies(data, 0, [(3, 140)], 2) is None
    assert module_bodies(data + b"x", 0, [(3, 140)], 2) is None
    assert module_bodies(module(27), 0, [(0, 31)], 1) is None


@given(st.binary(max_size=100), st.integers(-5, 110), st.integers(-5, 110), st.integers(1, 3))
def test_hostile_modules_end_inside(data: bytes, start: int, end: int, each: int) -> None:
    found = module_bodies(module(30) + data, 0, [(start, end)], each)
    assert found is None or (end <= 34 + len(data) and all(a < b <= end for a, b in found))
