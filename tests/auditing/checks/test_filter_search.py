"""Filters in clear are found wherever they stand, and nothing else is taken for one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.auditing.checks.filter_search import (
    HEADER_SIZE,
    LONGEST_HEADER,
    CrowdedError,
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


def with_fields(before: bytes = b"", inside: bytes = b"", after: bytes = b"") -> bytes:
    """A filter whose header has fields that the format lacks: before, in and after its own."""
    made = some_filter(b"a", blocks=8)
    size, bitset = made[: len(made) - 8 * 32 - 13], made[-8 * 32 :]
    # With fields before it, the first own field has the long form.
    start = before + (b"\x05\x02" + size[1:] if before else size)
    return (
        start
        + b"\x1c\x1c\x00"
        + inside
        + b"\x00"
        + b"\x1c\x1c\x00\x00" * 2
        + after
        + b"\0"
        + bitset
    )


#: Fields that the format lacks, each of another type.
UNKNOWN = {
    "bool": b"\x51",
    "byte": b"\x53\x07",
    "number": b"\x56\x80\x01",
    "double": b"\x57" + bytes(8),
    "text": b"\x58\x05alice",
    "list": b"\x59\x38\x01a\x01b\x01c",
    "map": b"\x5b\x01\x88\x01k\x01v",
    "structure": b"\x5c\x15\x02\x00",
    "twice": b"\x58\x01a\x05\x0a\x02",
    "long": b"\x58\xc8\x01" + b"x" * 200,
}


@pytest.mark.parametrize("kind", list(UNKNOWN))
@pytest.mark.parametrize("place", ["before", "inside", "after"])
def test_a_header_with_fields_that_the_format_lacks(place: str, kind: str) -> None:
    stored = with_fields(**{place: UNKNOWN[kind]})
    data = os.urandom(40) + stored + os.urandom(40)
    (at,) = plain_filters(data, len(data))
    assert plain_filter(data[at:]).check(b"a")
    assert plain_filter(data[at:]).block_count == 8
    assert is_plain_filter(stored[:LONGEST_HEADER], len(stored))
    assert list(plain_filters(data, 40 + len(stored) - 1)) == []


def test_random_bytes_and_texts_are_none() -> None:
    for data in (os.urandom(4 << 20), b"alice@example.com,5@\x15@\n" * 1000):
        assert list(plain_filters(data, len(data))) == []


def test_bytes_that_were_made_to_take_long_are_not_called_clean() -> None:
    with pytest.raises(CrowdedError):
        list(plain_filters(b"\x15\x40" * (1 << 20), 1 << 30))


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
