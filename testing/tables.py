"""Tables and Parquet files for tests, written by pyarrow in every footer mode."""

from __future__ import annotations

import base64
import enum
import functools
import json
import tempfile
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

from secure_bloom.encryption.kms import Keyring

MASTER_KEYS = {
    "k_footer": b"footer-key-16byt",
    "k_pii": b"pii-key-24-bytes-long-xx",
    "k_finance": b"finance-key-with-32-bytes-in-it!",
}
KEYRING = Keyring(master_keys=MASTER_KEYS)
#: Every secret that no message may ever hold.
SECRETS = [
    form
    for key in MASTER_KEYS.values()
    for form in (key.decode(), base64.b64encode(key).decode(), key.hex())
]


class Mode(enum.Enum):
    """How a test file is encrypted."""

    PLAIN = "plain"
    ENCRYPTED = "encrypted footer"
    SIGNED = "plaintext footer"
    UNIFORM = "uniform"


class ArrowKms(pe.KmsClient):
    """pyarrow's own interface, over the same keyring."""

    def __init__(self, _config: object = None) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return KEYRING.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str | bytes, master_key_identifier: str) -> bytes:
        text = wrapped_key.decode() if isinstance(wrapped_key, bytes) else wrapped_key
        return KEYRING.unwrap_key(text, master_key_identifier)


class CountingKms:
    """A KMS that is far away: every key that it unwraps is noted."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        self.asked.append((wrapped_key, master_key_identifier))
        return KEYRING.unwrap_key(wrapped_key, master_key_identifier)

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return KEYRING.wrap_key(key_bytes, master_key_identifier)


def crypto_factory() -> pe.CryptoFactory:
    return pe.CryptoFactory(ArrowKms)


def keyring_json(master_keys: Mapping[str, bytes] = MASTER_KEYS) -> str:
    """The keyring file with these master keys."""
    encoded = {name: base64.b64encode(key).decode() for name, key in master_keys.items()}
    return json.dumps({"version": 1, "master_keys": encoded})


@functools.lru_cache(maxsize=64)  # nobody changes a table, and hundreds of tests want the same ones
def customers(rows: int = 3000, seed: int = 7) -> pa.Table:
    """E-mails and IBANs all distinct, a number, a low-cardinality city, a nullable score."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(rows)
    scores = rng.normal(size=rows)
    return pa.table(
        {
            "email": [f"user{i}@example.com" for i in ids],
            "iban": [f"DE{i:020d}" for i in ids],
            "id": pa.array(ids, pa.int64()),
            "city": pa.array([("rome", "oslo", "lyon")[i % 3] for i in ids]),
            "score": pa.array(
                [None if i % 5 == 0 else s for i, s in zip(ids, scores, strict=True)]
            ),
        }
    )


def made_once(make: Callable[..., object]) -> Callable[..., None]:
    """``make``, which writes files into a folder, called once with the same arguments after it.

    Later calls write the bytes of the first one: dozens of tests begin with the same files.
    """

    @functools.cache
    def files(*given: Hashable) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder), *given)
            paths = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
            return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}

    def write_copies(folder: Path, *given: Hashable) -> None:
        for name, content in files(*given).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    return write_copies


def write(
    path: Path,
    table: pa.Table,
    mode: Mode = Mode.PLAIN,
    *,
    column_keys: Mapping[str, list[str]] | None = None,
    encryption: Mapping[str, Any] | None = None,
    **options: Any,
) -> Path:
    """Write ``table`` in one of the modes; ``encryption`` goes to EncryptionConfiguration."""
    options.setdefault("row_group_size", 1000)
    if mode is not Mode.PLAIN:
        options["encryption_properties"] = crypto_factory().file_encryption_properties(
            pe.KmsConnectionConfig(), _configuration(mode, column_keys, encryption)
        )
    pq.write_table(table, path, **options)
    return path


def _configuration(
    mode: Mode, column_keys: Mapping[str, list[str]] | None, encryption: Mapping[str, Any] | None
) -> pe.EncryptionConfiguration:
    settings: dict[str, Any] = {"footer_key": "k_footer", **(encryption or {})}
    if mode is Mode.UNIFORM:
        settings["uniform_encryption"] = True
    else:
        settings["column_keys"] = column_keys or {"k_pii": ["email"], "k_finance": ["iban"]}
        settings["plaintext_footer"] = mode is Mode.SIGNED
    return pe.EncryptionConfiguration(**settings)


def read(path: Path, *, encrypted: bool = True) -> pa.Table:
    """Read a file back with pyarrow and its own decryption."""
    properties = None
    if encrypted:
        properties = crypto_factory().file_decryption_properties(pe.KmsConnectionConfig())
    return pq.ParquetFile(path, decryption_properties=properties).read()
