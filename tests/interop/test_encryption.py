"""Every way in which a file may be encrypted: filters go in, pyarrow reads the same rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.encryption.cipher import ModuleType, encrypt_gcm, module_aad
from secure_bloom.encryption.kms import ExplicitKeys, Keyring
from testing.live_footer import encode_footer
from testing.surgery import Opened, opened
from testing.tables import KEYRING, MASTER_KEYS, Mode, crypto_factory, customers, read, write
from testing.thrift.views import encoded

ROWS = 300
COLUMNS = ["email", "id", "city"]
KEYS = [
    b"16-bytes-long-k!",
    b"a key of 24 bytes, long!",
    b"one key with thirty-two bytes...",
]
ALGORITHMS = ["AES_GCM_V1", "AES_GCM_CTR_V1"]
ENCRYPTED = [Mode.ENCRYPTED, Mode.SIGNED, Mode.UNIFORM]


def _check_filters(path: Path, keys: Keyring | ExplicitKeys, **options: Any) -> None:
    """Add filters; then present values are found, and hardly any others."""
    (report,) = sb.add_bloom_filters(path, columns=COLUMNS, keys=keys, **options).files
    assert report.error is None
    _check_lookups(path, keys)


def _check_lookups(path: Path, keys: Keyring | ExplicitKeys) -> None:
    emails = customers(ROWS)["email"].to_pylist()
    absent = [f"nobody{i}" for i in range(200)]
    (probed,) = sb.probe(path, "email", emails + absent, keys=keys).files
    said = {
        email: {str(group.verdicts[email]) for group in probed.row_groups}
        for email in emails + absent
    }
    assert all("maybe" in said[email] for email in emails)
    assert sum("maybe" in said[email] for email in absent) < 40


@pytest.mark.parametrize("mode", ENCRYPTED, ids=lambda mode: mode.name)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("bits", [128, 192, 256])
def test_key_lengths_and_algorithms(tmp_path: Path, mode: Mode, algorithm: str, bits: int) -> None:
    encryption = {"encryption_algorithm": algorithm, "data_key_length_bits": bits}
    path = write(
        tmp_path / "x.parquet", customers(ROWS), mode, encryption=encryption, row_group_size=100
    )
    _check_filters(path, KEYRING)
    assert read(path).equals(customers(ROWS))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{8 * len(key)} bits")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("is_signed", [False, True], ids=["encrypted", "signed"])
@pytest.mark.parametrize("prefix", [None, "stored", "supplied"])
def test_aad_prefixes(
    tmp_path: Path, key: bytes, algorithm: str, is_signed: bool, prefix: str | None
) -> None:
    """Files without key metadata, all columns under the footer key."""
    path = tmp_path / "x.parquet"
    aad_prefix = None if prefix is None else b"table one"
    properties = pe.create_encryption_properties(
        key,
        aad_prefix=aad_prefix,
        store_aad_prefix=prefix == "stored",
        encryption_algorithm=algorithm,
        plaintext_footer=is_signed,
    )
    pq.write_table(customers(ROWS), path, row_group_size=100, encryption_properties=properties)
    before = path.read_bytes()
    needed = aad_prefix if prefix == "supplied" else None
    if needed is not None:
        (failed,) = sb.add_bloom_filters(path, columns=COLUMNS, keys=ExplicitKeys(footer=key)).files
        assert "AAD prefix" in str(failed.error)
        assert path.read_bytes() == before
    _check_filters(path, ExplicitKeys(footer=key, aad_prefix=needed))
    again = pe.create_decryption_properties(key, aad_prefix=needed)
    assert pq.ParquetFile(path, decryption_properties=again).read().equals(customers(ROWS))


@pytest.mark.parametrize("to_output", [False, True], ids=["replaced", "output"])
@pytest.mark.parametrize("mode", ENCRYPTED, ids=lambda mode: mode.name)
def test_key_material_outside_the_file(tmp_path: Path, mode: Mode, to_output: bool) -> None:
    path = tmp_path / "x.parquet"
    columns = {} if mode is Mode.UNIFORM else {"column_keys": {"k_pii": ["email"]}}
    configuration = pe.EncryptionConfiguration(
        footer_key="k_footer",
        uniform_encryption=mode is Mode.UNIFORM,
        plaintext_footer=mode is Mode.SIGNED,
        internal_key_material=False,
        **columns,
    )
    connection = pe.KmsConnectionConfig()
    properties = crypto_factory().file_encryption_properties(connection, configuration, str(path))
    pq.write_table(customers(ROWS), path, row_group_size=100, encryption_properties=properties)
    assert (tmp_path / "_KEY_MATERIAL_FOR_x.parquet.json").exists()
    target = tmp_path / "new" / "x.parquet" if to_output else path
    output = {"output": target.parent} if to_output else {}
    (report,) = sb.add_bloom_filters(path, columns=COLUMNS, keys=KEYRING, **output).files
    assert report.error is None
    _check_lookups(target, KEYRING)
    again = crypto_factory().file_decryption_properties(
        connection, pe.DecryptionConfiguration(), str(target)
    )
    assert pq.ParquetFile(target, decryption_properties=again).read().equals(customers(ROWS))


def _rewritten(path: Path, change: Callable[[Opened], bytes]) -> None:
    """Write another footer behind the file's data."""
    with opened(path) as it:
        content = it.file.read_at(0, it.footer.tail.offset)
        path.write_bytes(content + change(it))


@pytest.mark.parametrize("mode", ENCRYPTED, ids=lambda mode: mode.name)
def test_row_groups_without_an_ordinal(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(ROWS), mode, row_group_size=100)

    def without(it: Opened) -> bytes:
        assert [group.ordinal for group in it.footer.row_groups] == [0, 1, 2]
        for group in it.footer.row_groups:
            del group.ordinal
        return encode_footer(it.footer)

    _rewritten(path, without)
    _check_filters(path, KEYRING)
    with opened(path) as it:
        assert {group.ordinal for group in it.footer.row_groups} == {None}


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.UNIFORM], ids=lambda mode: mode.name)
def test_thrift_modules_padded_with_zeros(tmp_path: Path, mode: Mode) -> None:
    """As parquet-java pads them; zeros behind a structure are no part of it."""
    path = write(tmp_path / "x.parquet", customers(ROWS), mode, row_group_size=100)
    _rewritten(path, _padded)
    assert read(path).equals(customers(ROWS))
    _check_filters(path, KEYRING)
    assert read(path).equals(customers(ROWS))


def _padded(it: Opened) -> bytes:
    for row_group, leaf in itertools.product(range(3), it.footer.leaves):
        chunk = it.chunk(row_group, leaf.name)
        if chunk.column_chunk.encrypted_column_metadata is not None:
            assert chunk.cipher is not None
            chunk.column_chunk.encrypted_column_metadata = chunk.cipher.encrypt(
                ModuleType.COLUMN_META_DATA, encoded(chunk.meta_data) + bytes(777)
            )
    footer = it.footer
    assert footer.key is not None
    aad = module_aad(footer.file_aad, ModuleType.FOOTER)
    module = encrypt_gcm(footer.metadata.encode() + bytes(999), footer.key.key, aad)
    body = footer.tail.clear + module
    return body + len(body).to_bytes(4, "little") + b"PARE"


def test_free_form_key_metadata_names_a_data_key(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(ROWS), Mode.ENCRYPTED, row_group_size=100)
    found: dict[str, bytes] = {}

    def rename(it: Opened) -> bytes:
        for row_group in range(3):
            chunk = it.chunk(row_group, "email")
            assert chunk.cipher is not None
            assert chunk.column_chunk.crypto_metadata is not None
            own = chunk.column_chunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY
            own.key_metadata = b"the e-mails' key, 2024"
            found["the e-mails' key, 2024"] = chunk.cipher.key.key
        return encode_footer(it.footer)

    _rewritten(path, rename)
    before = path.read_bytes()
    (failed,) = sb.add_bloom_filters(path, columns=["email"], keys=KEYRING).files
    assert "the e-mails' key, 2024" in str(failed.error)
    assert path.read_bytes() == before
    keys = Keyring(master_keys=MASTER_KEYS, data_keys=found)
    _check_filters(path, keys)
    report = sb.inspect(path, keys=keys)
    (email, *_) = report.files[0].row_groups[0].columns
    assert email.key == "the e-mails' key, 2024"
