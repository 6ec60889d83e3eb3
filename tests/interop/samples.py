"""Files under the keys and in the modes of the public corpus, written here by pyarrow and Polars.

The corpus stands beside a checkout at most; these a clone makes for itself.  Names say the same as
there.  What Polars writes has keys and no key metadata, what pyarrow writes under column keys has
key material of its ``CryptoFactory`` (``key_material`` in the name).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb

#: The keys of the corpus, as its README names them.
FOOTER, DOUBLE, FLOAT = b"0123456789012345", b"1234567890123450", b"1234567890123451"
MASTER_KEYS = {"kf": FOOTER, "kc1": DOUBLE, "kc2": FLOAT}
COLUMN_KEYS = {"double_field": DOUBLE, "float_field": FLOAT}
PREFIX = b"tester"


def rows() -> pa.Table:
    """Fifty rows of most physical types, a sixth of the values null."""
    numbers = range(50)
    start = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
    columns: dict[str, list[Any]] = {
        "boolean_field": [n % 2 == 0 for n in numbers],
        "int32_field": [n * n for n in numbers],
        "int64_field": [n * 10**12 for n in numbers],
        "time_field": [start + dt.timedelta(hours=n) for n in numbers],
        "float_field": [n * 1.5 for n in numbers],
        "double_field": [n * 1.1111111 for n in numbers],
        "ba_field": [f"parquet{n:03}" for n in numbers],
    }
    types = {"int32_field": pa.int32(), "float_field": pa.float32()}
    return pa.table(
        {
            name: pa.array([None if n % 6 == 5 else values[n] for n in numbers], types.get(name))
            for name, values in columns.items()
        }
    )


def _by_polars(**settings: Any) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        polars = pytest.importorskip("polars")
        keys = polars.ParquetEncryptionProperties(
            footer_key=FOOTER, column_keys=COLUMN_KEYS, **settings
        )
        polars.from_arrow(rows()).write_parquet(path, encryption=keys)

    return make


def _by_key(**settings: Any) -> Callable[[Path], None]:
    """One key for all."""

    def make(path: Path) -> None:
        properties = pe.create_encryption_properties(FOOTER, **settings)
        pq.write_table(rows(), path, encryption_properties=properties)

    return make


def _by_kms(**settings: Any) -> Callable[[Path], None]:
    """Data keys that a KMS has wrapped under the master keys."""

    def make(path: Path) -> None:
        configuration = pe.EncryptionConfiguration(
            footer_key="kf",
            column_keys={"kc1": ["double_field"], "kc2": ["float_field"]},
            **settings,
        )
        properties = pe.CryptoFactory(CorpusKms).file_encryption_properties(
            pe.KmsConnectionConfig(), configuration, str(path)
        )
        pq.write_table(rows(), path, encryption_properties=properties)

    return make


class CorpusKms(pe.KmsClient):
    """The master keys of the corpus behind pyarrow's interface."""

    def __init__(self, _config: object) -> None:
        super().__init__()
        self._keyring = sb.Keyring(master_keys=MASTER_KEYS)

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return self._keyring.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str | bytes, master_key_identifier: str) -> bytes:
        text = wrapped_key.decode() if isinstance(wrapped_key, bytes) else wrapped_key
        return self._keyring.unwrap_key(text, master_key_identifier)


_COLUMNS = "encrypt_columns_and_footer"
_MAKERS: dict[str, Callable[[Path], None]] = {
    "plain.parquet": lambda path: pq.write_table(rows(), path),
    f"{_COLUMNS}.parquet.encrypted": _by_polars(),
    f"{_COLUMNS}_aad.parquet.encrypted": _by_polars(aad_prefix=PREFIX, store_aad_prefix=True),
    f"{_COLUMNS}_disable_aad_storage.parquet.encrypted": _by_polars(
        aad_prefix=PREFIX, store_aad_prefix=False
    ),
    "encrypt_columns_plaintext_footer.parquet.encrypted": _by_polars(plaintext_footer=True),
    "internal_key_material_ctr.parquet.encrypted": _by_kms(encryption_algorithm="AES_GCM_CTR_V1"),
    "internal_key_material.parquet.encrypted": _by_kms(),
    "internal_key_material_single_wrapping.parquet.encrypted": _by_kms(double_wrapping=False),
    "external_key_material.parquet.encrypted": _by_kms(internal_key_material=False),
    "uniform_encryption.parquet.encrypted": _by_key(),
    "uniform_encryption_ctr.parquet.encrypted": _by_key(encryption_algorithm="AES_GCM_CTR_V1"),
}
SAMPLES = sorted(_MAKERS)


def make_sample(name: str, folder: Path) -> Path:
    """Write the sample of this name."""
    path = folder / name
    _MAKERS[name](path)
    return path
