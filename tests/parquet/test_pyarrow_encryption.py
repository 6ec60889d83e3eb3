"""pyarrow writes what a policy says, and the audit agrees."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.auditing.findings import Severity
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from testing.tables import keyring_json

TABLE = pa.table(
    {
        "email": ["a@example.com", None],
        "address": [{"zip": "00100", "city": "rome"}, {"zip": "0150", "city": "oslo"}],
        "tags": [["x"], []],
        "id": [1, 2],
        "uuids": pa.ListArray.from_arrays([0, 1, 1], pa.array([bytes(16)], pa.uuid())),
    }
)
COLUMNS = '[columns.email]\nkey = "k_pii"\n[columns."address.zip"]\nkey = "k_finance"\n'
TAGS = '[columns.tags]\nkey = "k_finance"\n'


def policy_in(folder: Path, text: str) -> Path:
    (folder / "keyring.json").write_text(keyring_json())
    (folder / "keyring.json").chmod(0o600)
    path = folder / "policy.toml"
    path.write_text(f'[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n{text}')
    return path


@pytest.mark.parametrize(
    "text",
    [
        '[footer]\nkey = "k_footer"\n' + COLUMNS + TAGS,
        '[footer]\nkey = "k_footer"\nmode = "plaintext"\n' + COLUMNS,
        '[footer]\nkey = "k_footer"\nuniform = true\n',
        '[footer]\nkey = "k_footer"\nuniform = true\n' + COLUMNS,
        '[footer]\nkey = "k_footer"\n[encryption]\nalgorithm = "AES_GCM_CTR_V1"\n'
        "data_key_bits = 256\ndouble_wrapping = false\n" + COLUMNS,
    ],
    ids=["encrypted", "signed", "uniform", "uniform and own keys", "CTR, 256 bits, single"],
)
def test_files_are_as_the_policy_says_and_read_again(tmp_path: Path, text: str) -> None:
    policy = policy_in(tmp_path, text)
    encryption = sb.pyarrow_encryption(policy, TABLE.schema)
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE, path, encryption_properties=encryption.encryption_properties())
    properties = encryption.decryption_properties()
    assert pq.ParquetFile(path, decryption_properties=properties).read().equals(TABLE)
    assert sb.read_table(path, policy=policy).equals(TABLE)
    found = sb.audit(path, policy=policy).findings
    # What every writer leaves in clear in a signed footer is none of the policy's.
    assert {finding.severity for finding in found} <= {Severity.LOW}
    assert b"a@example.com" not in path.read_bytes()


def test_a_dataset_is_written_under_it(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, '[footer]\nkey = "k_footer"\n' + COLUMNS)
    encryption = sb.pyarrow_encryption(policy, TABLE.schema)
    options = ds.ParquetFileFormat().make_write_options(
        encryption_config=ds.ParquetEncryptionConfig(
            encryption.factory, encryption.connection, encryption.configuration
        )
    )
    ds.write_dataset(TABLE, tmp_path / "lake", format="parquet", file_options=options)
    assert sb.audit(tmp_path / "lake", policy=policy).findings == ()


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("[columns.email]\nbloom = true\n", PolicyError, "the policy encrypts nothing"),
        (
            '[footer]\nkey = "k_footer"\n[columns.emial]\nkey = "k_pii"\n',
            PolicyError,
            "column emial: the schema has no such column",
        ),
        (
            '[footer]\nkey = "k_footer"\n[encryption]\nkey_material = "external"\n' + COLUMNS,
            UnsupportedFeatureError,
            "pyarrow writes no key material beside files",
        ),
    ],
)
def test_what_pyarrow_cannot_write_is_told(
    tmp_path: Path, text: str, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        sb.pyarrow_encryption(policy_in(tmp_path, text), TABLE.schema)
