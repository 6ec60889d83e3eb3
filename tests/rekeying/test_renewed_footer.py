"""New key metadata stand in a footer where the old ones stood, and all else stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import unlock
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.structures.records import decode_record
from secure_bloom.rekeying.key_files import key_metadata_of
from secure_bloom.rekeying.new_footer import renewed_crypto, renewed_metadata
from secure_bloom.storage import open_input
from testing.tables import KEYRING, Mode, customers, write
from testing.thrift.metadata import FileCryptoMetaData, FileMetaData


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED])
def test_new_key_metadata_stand_where_the_old_ones_stood(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(30), mode, row_group_size=10)
    with open_input(str(path)) as file:
        footer = unlock(read_tail(file), file_keys(KeyResolver(KEYRING), file))
        new = {old: b"new-" + old for old in key_metadata_of(footer)}
        plain = renewed_metadata(footer, new)
        # Back again: only these bytes have changed.
        back = {replaced: old for old, replaced in new.items()}
        found = decode_record(FileMetaData, plain)
        columns = {
            chunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY.key_metadata
            for group in found.row_groups
            for chunk in group.columns
            if chunk.crypto_metadata is not None
            and chunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY is not None
        }
        assert columns
        assert columns <= back.keys()
        crypto = renewed_crypto(footer.tail, new)
        if mode is Mode.SIGNED:
            assert crypto == b""
            assert found.footer_signing_key_metadata in back
        else:
            assert decode_record(FileCryptoMetaData, crypto).key_metadata in back
        assert len(plain) > len(footer.plain)
        assert renewed_metadata(footer, {old: old for old in new}) == footer.plain
