"""Page headers walked by the extension: the pages that Python finds, and none beside the bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import SecureBloomError
from secure_bloom.kernels import extension
from secure_bloom.parquet.pages import PageFinder, page_at, walk
from secure_bloom.parquet.structures.metadata import CompressionCodec, Encoding, PageType
from testing.thrift.metadata import (
    DataPageHeader,
    DataPageHeaderV2,
    DictionaryPageHeader,
    PageHeader,
)
from tests.kernels import mutations, needs_native

pytestmark = needs_native

V1 = {"definition_level_encoding": Encoding.RLE, "repetition_level_encoding": Encoding.RLE}
ENTRIES = {"num_values": 10, "encoding": Encoding.PLAIN}
V2 = {
    "num_nulls": 0,
    "num_rows": 10,
    "definition_levels_byte_length": 2,
    "repetition_levels_byte_length": 0,
}


def page(kind: PageType, name: str, detail: Any, size: int = 40, plain: int = 40) -> bytes:
    header = PageHeader.of(
        type=kind, uncompressed_page_size=plain, compressed_page_size=size, **{name: detail}
    )
    return header.encode() + bytes(size)


def data_page(count: int = 10, encoding: Encoding = Encoding.PLAIN, **sizes: int) -> bytes:
    detail = DataPageHeader.of(num_values=count, encoding=encoding, **V1)
    return page(PageType.DATA_PAGE, "data_page_header", detail, **sizes)


def data_page_2(count: int = 10, **fields: Any) -> bytes:
    detail = DataPageHeaderV2.of(num_values=count, encoding=Encoding.PLAIN, **V2, **fields)
    return page(PageType.DATA_PAGE_V2, "data_page_header_v2", detail)


def dictionary_page(count: int = 10) -> bytes:
    detail = DictionaryPageHeader.of(**ENTRIES | {"num_values": count})
    return page(PageType.DICTIONARY_PAGE, "dictionary_page_header", detail)


PAGES = [
    dictionary_page(),
    data_page(),
    data_page_2(),
    data_page(0),
    data_page_2(is_compressed=False),
    data_page(encoding=Encoding.RLE_DICTIONARY),
    data_page_2(is_compressed=True),
]
CHUNK = b"".join(PAGES)


@dataclass
class Chunk:
    """What the walk asks a chunk for."""

    codec: CompressionCodec
    num_values: int = 50
    dictionary_page_offset: int | None = None
    cipher: None = None

    @property
    def meta_data(self) -> Chunk:
        return self


def pages_of(data: bytes, chunk: Chunk, *, by_extension: bool) -> list[Any]:
    """What the walk finds: the pages, up to its error if there is one."""
    stored, finder, found = memoryview(data), PageFinder(chunk), []  # type: ignore[arg-type]

    def read(position: int, place: Any) -> Any:
        if by_extension:
            return finder.page(stored[position:], position, len(stored) - position, place)
        page, length = page_at(chunk, stored[position:], len(stored) - position, place)  # type: ignore[arg-type]
        return page, position + length

    try:
        for each in walk(chunk, read):  # type: ignore[arg-type]
            facts = each.is_dictionary, each.num_values, each.encoding, each.uncompressed_size
            found.append((*facts, each.ordinal, each.encoded_header, bytes(each.stored)))
    except SecureBloomError as error:
        found.append(str(error))
    return found


@pytest.mark.parametrize("codec", [CompressionCodec.UNCOMPRESSED, CompressionCodec.SNAPPY])
def test_all_pages_are_found(codec: CompressionCodec) -> None:
    found = pages_of(CHUNK, Chunk(codec), by_extension=True)
    assert len(found) == len(PAGES)
    assert b"".join(header + body for *_, header, body in found) == CHUNK
    assert found == pages_of(CHUNK, Chunk(codec), by_extension=False)


def test_one_call_finds_all_pages_of_a_chunk() -> None:
    chunk = Chunk(CompressionCodec.SNAPPY)
    native = mock.Mock(wraps=extension.native)
    with mock.patch.object(extension, "native", native):
        pages_of(CHUNK, chunk, by_extension=True)
    assert native.walk_pages.call_count == 1


def test_more_pages_than_a_call_takes_are_found() -> None:
    chunk, data = Chunk(CompressionCodec.SNAPPY, 2000), data_page() * 200
    found = pages_of(data, chunk, by_extension=True)
    assert found == pages_of(data, chunk, by_extension=False)
    assert [ordinal for *_, ordinal, _, _ in found] == list(range(200))


@pytest.mark.parametrize(
    "odd",
    [
        data_page(size=39),
        data_page(plain=2**31 - 1),
        data_page(plain=-1),
        data_page(-1),
        dictionary_page(-1),
        page(PageType.DATA_PAGE, "dictionary_page_header", DictionaryPageHeader.of(**ENTRIES)),
        page(PageType.INDEX_PAGE, "dictionary_page_header", DictionaryPageHeader.of(**ENTRIES)),
        data_page_2()[:20],
        data_page()[:-1],
    ],
)
def test_an_odd_page_is_that_of_python(odd: bytes) -> None:
    for codec in (CompressionCodec.UNCOMPRESSED, CompressionCodec.SNAPPY):
        data = data_page() + odd
        found = pages_of(data, Chunk(codec), by_extension=True)
        assert found == pages_of(data, Chunk(codec), by_extension=False)
        assert len(found) >= 2


@given(mutations(CHUNK), st.sampled_from(CompressionCodec), st.integers(-1, 80))
def test_altered_pages_are_those_of_python(
    data: bytes, codec: CompressionCodec, values: int
) -> None:
    chunk = Chunk(codec, values)
    found = pages_of(data, chunk, by_extension=True)
    assert found == pages_of(data, chunk, by_extension=False)
