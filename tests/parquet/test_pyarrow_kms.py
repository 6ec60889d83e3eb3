"""pyarrow encrypts and decrypts with a KMS client of ours."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from secure_bloom.errors import KeyUnavailableError
from secure_bloom.parquet.pyarrow_encryption import PyarrowKms
from testing.tables import KEYRING

TABLE = pa.table({"email": ["a@example.com", None]})


def test_a_file_under_our_client_is_read_again(tmp_path: Path) -> None:
    factory = pe.CryptoFactory(lambda _: PyarrowKms(KEYRING))
    connection = pe.KmsConnectionConfig()
    settings = pe.EncryptionConfiguration(footer_key="k_footer", column_keys={"k_pii": ["email"]})
    writing = factory.file_encryption_properties(connection, settings)
    pq.write_table(TABLE, tmp_path / "x.parquet", encryption_properties=writing)
    reading = factory.file_decryption_properties(connection)
    found = pq.ParquetFile(tmp_path / "x.parquet", decryption_properties=reading).read()
    assert found.equals(TABLE)


def test_without_a_client_there_is_no_key() -> None:
    with pytest.raises(KeyUnavailableError, match="k_pii"):
        PyarrowKms(None).unwrap_key("wrapped", "k_pii")
