"""Filters in clear are found wherever they stand, and nothing else is taken for one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.auditing.checks.filter_search import (
    HEADER_SIZE,
    has_plain_page,
    is_plain_filter,
    plain_filter,
    plain_filters,
)
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import encode_bloom_filter
from secure_bloom.encryption.file_keys import DataKey
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from testing.tables import Mode, customers, write
from tests.auditing.examples import some_filter


@given(st.binary(max_size=60), st.integers(1, 5000), st.binary(max_size=60))
def test_a_filter_is_found_among_any_bytes(before: bytes, blocks: int, after: bytes) -> None:
    stored = some_filter(b"a", blocks=blocks)
    data = before + stored + after
    assert len(before) in plain_filters(data, len(data))
    assert is_plain_filter(stored[:HEADER_SIZE], len(stored))
    assert plain_filter(stored + after).check(b"a")
    assert plain_filter(stored + after).block_count == blocks


@pytest.mark.parametrize("size", [0, 31, 33, 48, -32, (1 << 31) - 32])
def test_a_size_that_no_filter_has_is_none(size: int) -> None:
    zigzag, varint = (size << 1) ^ (size >> 31), bytearray()
    while zigzag > 0x7F:
        varint.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    header = b"\x15" + bytes([*varint, zigzag]) + b"\x1c\x1c\x00\x00" * 3 + b"\x00"
    assert list(plain_filters(header + bytes(100), 1 << 40)) == []


def test_a_filter_that_does_not_end_in_time_is_none() -> None:
    stored = some_filter(b"a")
    assert list(plain_filters(stored, len(stored))) == [0]
    assert list(plain_filters(stored, len(stored) - 1)) == []


def test_an_encrypted_filter_is_none() -> None:
    key = DataKey(key=os.urandom(16), name="k")
    column_cipher = ColumnCipher(
        key=key, file_aad=b"", uses_ctr=False, row_group_ordinal=0, column_ordinal=0
    )
    stored = encode_bloom_filter(SplitBlockBloomFilter(100), column_cipher)
    assert list(plain_filters(stored, len(stored))) == []


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("options", [{}, {"write_page_checksum": True}, {"use_dictionary": False}])
def test_pages_in_clear_are_found_by_their_headers(
    tmp_path: Path, version: str, options: dict[str, bool]
) -> None:
    path = tmp_path / "x.parquet"
    write(path, customers(3000), data_page_version=version, **options)
    assert has_plain_page(path.read_bytes())
    footers = path.read_bytes()[-8 - int.from_bytes(path.read_bytes()[-8:-4], "little") :]
    assert not has_plain_page(footers)
    write(path, customers(3000), Mode.ENCRYPTED, column_keys={"k_pii": customers(1).column_names})
    assert not has_plain_page(path.read_bytes())
