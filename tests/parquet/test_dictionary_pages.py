"""Dictionary pages: found, read alone, and held against the metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.encryption.cipher import ModuleType, encrypt_gcm, module_aad
from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.parquet.dictionary_pages import read_dictionary_page
from secure_bloom.parquet.pages import Page, read_pages
from secure_bloom.parquet.structures.metadata import (
    DataPageHeader,
    DictionaryPageHeader,
    PageType,
)
from secure_bloom.storage import CountedFile
from testing.surgery import edit_column, opened
from testing.tables import Mode
from tests.parquet.test_page_headers import page_header, values
from tests.parquet.test_pages import written


@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
def test_the_dictionary_page_alone_is_read(tmp_path: Path, mode: Mode) -> None:
    path = written(tmp_path, mode)
    with opened(path) as it:
        chunk, spy = it.chunk(0, "email"), CountedFile(it.file)
        page = read_dictionary_page(spy, chunk)
        assert page is not None
        assert page.num_values == 300
        assert b"user299@example.com" in bytes(page.body())
        meta_data = chunk.meta_data
        assert meta_data.dictionary_page_offset is not None
        assert spy.bytes_read == meta_data.data_page_offset - meta_data.dictionary_page_offset
        assert spy.bytes_read < meta_data.total_compressed_size


def test_a_chunk_without_a_dictionary_has_no_dictionary_page(tmp_path: Path) -> None:
    with opened(written(tmp_path, Mode.PLAIN, use_dictionary=False)) as it:
        assert read_dictionary_page(it.file, it.chunk(0, "email")) is None


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"dictionary_page_header": values(DictionaryPageHeader, -1)}, "-1 values"),
        ({"data_page_header": values(DataPageHeader, 1)}, "lacks its own header"),
    ],
)
def test_a_dictionary_page_counts_its_entries_by_its_own_header(
    fields: dict[str, object], text: str
) -> None:
    header = page_header(type=PageType.DICTIONARY_PAGE, **fields)
    page = Page(
        type=header.type,
        uncompressed_size=0,
        encoded_header=header.encode(),
        stored=memoryview(b""),
    )
    with pytest.raises(FormatError, match=text):
        _ = page.num_values


def test_a_dictionary_page_that_the_metadata_does_not_name_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, Mode.ENCRYPTED)

    def hide(meta_data) -> None:
        meta_data.data_page_offset = meta_data.dictionary_page_offset
        del meta_data.dictionary_page_offset

    edit_column(path, 0, "email", hide)
    with opened(path) as it, pytest.raises(SecureBloomError):
        read_pages(it.file, it.chunk(0, "email"))


def test_a_data_page_where_the_metadata_names_a_dictionary_is_refused(tmp_path: Path) -> None:
    """Authentic as a dictionary page's header, and still not one: a writer's mistake."""
    path = written(tmp_path, Mode.ENCRYPTED)
    with opened(path) as it:
        chunk = it.chunk(0, "email")
        start = chunk.meta_data.dictionary_page_offset or 0
        aad = module_aad(it.footer.file_aad, ModuleType.DICTIONARY_PAGE_HEADER, 0, 0)
        header = page_header(data_page_header=values(DataPageHeader, 1)).encode()
        assert chunk.cipher is not None
        module = encrypt_gcm(header, chunk.cipher.key.key, aad)
        content = bytearray(path.read_bytes())
        content[start : start + len(module) + 16] = module + (12).to_bytes(4, "little") + bytes(12)
    path.write_bytes(content)
    with opened(path) as it, pytest.raises(SecureBloomError, match="dictionary page"):
        read_dictionary_page(it.file, it.chunk(0, "email"))
