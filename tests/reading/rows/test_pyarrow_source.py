"""Whatever the keys of a file are and wherever they stand, pyarrow opens it and reads its rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.kms import ExplicitKeys, Keyring
from secure_bloom.encryption.policy_tables import EncryptionOptions
from secure_bloom.errors import KeyUnavailableError
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import read_footer
from secure_bloom.reading.rows.pyarrow_source import SourceOpener
from secure_bloom.storage import open_input
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, write
from tests.auditing.examples import POLICY

TABLE = customers(100)
KEY = b"16-bytes-long-k!"


def read(
    path: Path, names: Sequence[str], keys: Keyring | ExplicitKeys = KEYRING
) -> dict[str, list[object]]:
    """Some columns of the second row group, as pyarrow reads them."""
    resolver = KeyResolver(keys)
    with open_input(str(path)) as file:
        footer = read_footer(file, resolver, SchemaCache())
    ordinals = [i for name in names for i in footer.columns.below(name)]
    with SourceOpener(resolver).open(footer, ordinals, [1]) as source:
        found: dict[str, list[object]] = source.read_row_group(1, columns=names).to_pydict()
        return found


def wanted(names: Sequence[str]) -> dict[str, list[object]]:
    found: dict[str, list[object]] = TABLE.slice(50).select(names).to_pydict()
    return found


@pytest.mark.parametrize("mode", list(Mode))
def test_key_material_in_the_file(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", TABLE, mode, row_group_size=50)
    assert read(path, TABLE.column_names) == wanted(TABLE.column_names)


@pytest.mark.parametrize("footer_mode", [FooterMode.ENCRYPTED, FooterMode.SIGNED])
def test_key_material_beside_the_file(tmp_path: Path, footer_mode: FooterMode) -> None:
    path = write(tmp_path / "x.parquet", TABLE, row_group_size=50)
    outside = EncryptionOptions(internal_storage=False)
    policy = replace(POLICY, footer_mode=footer_mode, encryption=outside)
    assert not sb.reencrypt(path, policy=policy, keys=KEYRING).failed
    assert (tmp_path / "_KEY_MATERIAL_FOR_x.parquet.json").exists()
    assert read(path, TABLE.column_names) == wanted(TABLE.column_names)


@pytest.mark.parametrize("prefix", [None, b"the table"])
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_keys_and_an_aad_prefix_that_are_given(
    tmp_path: Path, algorithm: str, prefix: bytes | None
) -> None:
    properties = pe.create_encryption_properties(
        KEY, aad_prefix=prefix, store_aad_prefix=False, encryption_algorithm=algorithm
    )
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE, path, row_group_size=50, encryption_properties=properties)
    keys = ExplicitKeys(footer=KEY, aad_prefix=prefix)
    assert read(path, ["email", "id"], keys) == wanted(["email", "id"])


def test_only_keys_of_columns_that_are_read_are_needed(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", TABLE, Mode.ENCRYPTED, row_group_size=50)
    few = Keyring(master_keys={name: MASTER_KEYS[name] for name in ("k_footer", "k_pii")})
    assert read(path, ["email", "city"], few) == wanted(["email", "city"])
    with pytest.raises(KeyUnavailableError):
        read(path, ["email", "iban"], few)


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", TABLE, Mode.ENCRYPTED, row_group_size=50)
    strange = path.rename(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.parquet"))
    assert read(strange, ["email"]) == wanted(["email"])
