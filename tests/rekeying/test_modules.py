"""Modules from one protection into another: the same bytes in clear, under other keys."""

from __future__ import annotations

import dataclasses
import os
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.bloom.stored import decode_bloom_filter, filter_extent
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys import DataKey
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.errors import IntegrityError
from secure_bloom.parquet.pages import DICTIONARY, Page, page_at, read_pages
from secure_bloom.parquet.structures.records import decode_record
from secure_bloom.rekeying.transfer import moved_filter, moved_page
from testing.surgery import Opened, opened
from testing.tables import KEYRING, Mode, customers, write
from testing.thrift.metadata import PageHeader

MODES = [Mode.PLAIN, Mode.ENCRYPTED]


def new_cipher(*, uses_ctr: bool = False) -> ColumnCipher:
    return ColumnCipher(
        key=DataKey(key=os.urandom(16), name=None),
        file_aad=b"new file",
        uses_ctr=uses_ctr,
        row_group_ordinal=0,
        column_ordinal=0,
    )


def written(folder: Path, mode: Mode, **options: Any) -> Path:
    return write(folder / "x.parquet", customers(60), mode, **options)


def read_back(file: Opened, page: Page, new: ColumnCipher | None) -> Page:
    """The page as readers of the new file find it."""
    chunk = file.chunk(0, "email")
    chunk = dataclasses.replace(chunk, cipher=new)
    stored = memoryview(b"".join(moved_page(page, new)))
    place = DICTIONARY if page.is_dictionary else (ModuleType.DATA_PAGE_HEADER, page.ordinal)
    found, length = page_at(chunk, stored, len(stored), place)
    assert length == len(stored)
    return found


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("new", [None, new_cipher(), new_cipher(uses_ctr=True)], ids=repr)
def test_a_page_keeps_its_body(
    tmp_path: Path, mode: Mode, version: str, new: ColumnCipher | None
) -> None:
    with opened(written(tmp_path, mode, data_page_version=version)) as it:
        pages = read_pages(it.file, it.chunk(0, "email"))
        assert len(pages) > 1
        for page in pages:
            assert bytes(read_back(it, page, new).body()) == bytes(page.body())


def test_a_checksum_is_that_of_the_bytes_as_they_are_stored(tmp_path: Path) -> None:
    with opened(written(tmp_path, Mode.PLAIN, write_page_checksum=True)) as it:
        page = read_pages(it.file, it.chunk(0, "email"))[-1]
        new = new_cipher()
        _, body = moved_page(page, new)
        back = read_back(it, page, new)
        header, clear = moved_page(page, None)
        assert (decode_record(PageHeader, header).crc or 0) % 2**32 == zlib.crc32(clear)
    assert back.header.crc is not None
    assert len(back.stored) == len(body)
    assert back.header.crc % 2**32 == zlib.crc32(back.stored)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_filter_keeps_its_bits(tmp_path: Path, mode: Mode, is_sealed: bool) -> None:
    path = written(tmp_path, mode)
    sb.add_bloom_filters(path, columns=["email"], keys=KEYRING)
    new = new_cipher() if is_sealed else None
    with opened(path) as it:
        chunk = it.chunk(0, "email")
        stored = it.file.read_at(*(filter_extent(it.file, chunk) or (0, 0)))
        moved = moved_filter(stored, chunk.cipher, new)
        old = decode_bloom_filter(stored, chunk.cipher)
    assert decode_bloom_filter(moved, new) == old
    assert (moved == stored) is (mode is Mode.PLAIN and not is_sealed)


def test_a_damaged_page_in_clear_does_not_pass_for_whole(tmp_path: Path) -> None:
    """Sealed with the checksum of its altered bytes, nobody would ever see it."""
    path = tmp_path / "x.parquet"
    table = pa.table({"x": list(range(100))})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    at = content.index((50).to_bytes(8, "little"))
    content[at] ^= 1
    path.write_bytes(content)
    policy = sb.KeyPolicy(footer_key="k_footer", uniform=True)
    [failed] = sb.reencrypt(path, policy=policy, keys=KEYRING).failed
    assert "row group 0, column x: a page's checksum does not fit" in str(failed.error)
    assert path.read_bytes() == content


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_are_not_sealed_as_noise_where_the_algorithm_was_exchanged(
    tmp_path: Path, version: str
) -> None:
    path = written(tmp_path, Mode.ENCRYPTED, data_page_version=version)
    with opened(path) as it:
        chunk = it.chunk(0, "email")
        for page in read_pages(it.file, chunk):
            assert page.cipher is not None
            # The algorithm's id stands in clear before an encrypted footer: anybody can do this.
            exchanged = dataclasses.replace(
                page, cipher=dataclasses.replace(page.cipher, uses_ctr=True)
            )
            for new in (new_cipher(), None):
                with pytest.raises(IntegrityError, match="AES_GCM_CTR_V1"):
                    moved_page(exchanged, new)
