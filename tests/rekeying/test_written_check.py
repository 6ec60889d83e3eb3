"""A file that could not be read is never put in the place of another one."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from tests.live_footer import encode_footer
from tests.surgery import opened
from tests.tables import KEYRING, Mode, customers, write


def without_crypto_metadata(path: Path, column: str) -> None:
    """Let a signed footer say that an encrypted column is in clear."""
    with opened(path) as it:
        ordinal = next(i for i, leaf in enumerate(it.footer.leaves) if leaf.name == column)
        for group in it.footer.row_groups:
            del group.columns[ordinal].crypto_metadata
            del group.columns[ordinal].encrypted_column_metadata
        content = it.file.read_at(0, it.footer.tail.offset) + encode_footer(it.footer)
    path.write_bytes(content)


@pytest.fixture
def lying(tmp_path: Path) -> Path:
    path = write(
        tmp_path / "lake.parquet", customers(50), Mode.SIGNED, column_keys={"k_pii": ["email"]}
    )
    without_crypto_metadata(path, "email")
    return path


def test_decrypt_writes_no_file_that_nobody_can_read(lying: Path, tmp_path: Path) -> None:
    output = tmp_path / "clear"
    [file] = sb.decrypt(lying, output=output, keys=KEYRING).files
    assert file.status == "failed"
    assert "email" in str(file.error)
    assert "the old one was left" in str(file.hint)
    assert list(output.rglob("*")) == []


def test_reencrypt_leaves_such_a_file_as_it_was(lying: Path) -> None:
    before = lying.read_bytes()
    policy = sb.KeyPolicy(footer_key="k_footer")
    [file] = sb.reencrypt(lying, policy=policy, keys=KEYRING, new_data_keys=True).files
    assert file.status == "failed"
    assert lying.read_bytes() == before
    assert [path.name for path in lying.parent.iterdir()] == [lying.name]


def test_files_in_clear_are_encrypted_as_before(tmp_path: Path) -> None:
    pq.write_table(customers(50), tmp_path / "a.parquet")
    policy = sb.KeyPolicy(footer_key="k_footer")
    [file] = sb.reencrypt(tmp_path, policy=policy, keys=KEYRING).files
    assert file.status == "reencrypted"
    assert sb.read_table(tmp_path, keys=KEYRING).num_rows == 50
