"""Dictionary pages: found, read alone, and held against the metadata."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secure_bloom.encryption.cipher import ModuleType, encrypt_gcm, module_aad
from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.parquet.dictionary_pages import (
    read_dictionary_page,
    read_full_dictionary,
    read_headers,
)
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.pages import Page, read_pages
from secure_bloom.parquet.structures.metadata import CompressionCodec, Encoding, PageType
from secure_bloom.storage import CountedFile, InputFile, open_input
from secure_bloom.storage.local import LocalFile
from testing.surgery import edit_column, opened
from testing.tables import Mode, write
from testing.thrift.metadata import (
    DataPageHeader,
    DataPageHeaderV2,
    DictionaryPageHeader,
    PageHeader,
)
from tests.parquet.test_pages import written


def page_header(**fields: object) -> PageHeader:
    defaults = {"type": PageType.DATA_PAGE, "uncompressed_page_size": 8}
    return PageHeader.of(**{**defaults, "compressed_page_size": 8, **fields})


def values(cls: Any, num_values: int) -> object:
    levels = {"definition_level_encoding": Encoding.RLE, "repetition_level_encoding": Encoding.RLE}
    extra = levels if cls is DataPageHeader else {}
    return cls.of(num_values=num_values, encoding=Encoding.PLAIN, **extra)


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (page_header(), "lacks the header of its type, DATA_PAGE"),
        (page_header(type=PageType.DATA_PAGE_V2), "lacks the header of its type, DATA_PAGE_V2"),
        (page_header(data_page_header=values(DataPageHeader, -1)), "-1 values"),
        (
            page_header(compressed_page_size=2**31 - 1, data_page_header=values(DataPageHeader, 1)),
            "2147483647 bytes",
        ),
        (
            page_header(compressed_page_size=-8, data_page_header=values(DataPageHeader, 1)),
            "-8 bytes",
        ),
        (page_header(type=PageType.INDEX_PAGE), "pages end"),
    ],
)
def test_a_page_header_that_cannot_be_is_refused(
    tmp_path: Path, header: PageHeader, text: str
) -> None:
    path = write(tmp_path / "x.parquet", pa.table({"n": pa.array([1, 2], pa.int64())}))
    content = header.encode() + bytes(8)
    path.write_bytes(path.read_bytes()[:4] + content + path.read_bytes()[4:])

    def point_at_it(meta_data) -> None:
        del meta_data.dictionary_page_offset
        meta_data.data_page_offset = 4
        meta_data.total_compressed_size = len(content)

    edit_column(path, 0, "n", point_at_it)
    with opened(path) as it, pytest.raises(FormatError, match=text):
        assert all(page.num_values >= 0 for page in read_pages(it.file, it.chunk(0, "n")))


#: Bytes of the bodies: few, so that headers stand close together, or more than are read at a time.
SIZES = st.sampled_from([0, 1, 8, 900, 1100, 70_000])
DATA_ENCODINGS = st.sampled_from([Encoding.RLE_DICTIONARY, Encoding.PLAIN])


def body(size: int, header: PageHeader) -> bytes:
    return header.encode() + bytes(size)


@st.composite
def data_pages(draw: st.DrawFn) -> bytes:
    """A page as often as drawn: of either version, counted rightly or not."""
    size, count, encoding = draw(SIZES), draw(st.integers(-1, 3)), draw(DATA_ENCODINGS)
    if draw(st.booleans()):
        detail: dict[str, object] = {"data_page_header": data_header(count, encoding)}
    else:
        header = DataPageHeaderV2.of(
            num_values=count,
            num_nulls=0,
            num_rows=count,
            encoding=encoding,
            definition_levels_byte_length=0,
            repetition_levels_byte_length=0,
        )
        detail = {"type": PageType.DATA_PAGE_V2, "data_page_header_v2": header}
    kind = draw(st.sampled_from([detail, detail, {"type": PageType.INDEX_PAGE}]))
    said = draw(st.sampled_from([size, size, size, size + 1, -1, 2**31 - 1]))
    return body(size, page_header(compressed_page_size=said, **kind)) * draw(st.integers(1, 9))


def data_header(count: int, encoding: Encoding) -> DataPageHeader:
    levels = {"definition_level_encoding": Encoding.RLE, "repetition_level_encoding": Encoding.RLE}
    return DataPageHeader.of(num_values=count, encoding=encoding, **levels)


def dictionary_page() -> bytes:
    detail = DictionaryPageHeader.of(num_values=1, encoding=Encoding.PLAIN)
    return body(
        5,
        page_header(
            type=PageType.DICTIONARY_PAGE, compressed_page_size=5, dictionary_page_header=detail
        ),
    )


@pytest.fixture(scope="module")
def any_chunk(tmp_path_factory: pytest.TempPathFactory) -> Chunk:
    path = tmp_path_factory.mktemp("any") / "x.parquet"
    write(path, pa.table({"n": pa.array([1, 2], pa.int64())}))
    with opened(path) as it:
        return it.chunk(0, "n")


def chunk_of(path: Path, like: Chunk, content: bytes, values: int, *, dictionary: bytes) -> Chunk:
    """A chunk of snappy whose pages are these bytes, behind those of its dictionary page."""
    meta_data = copy.deepcopy(like.meta_data)
    meta_data.codec = CompressionCodec.SNAPPY
    meta_data.num_values = values
    meta_data.total_compressed_size = len(dictionary) + len(content)
    meta_data.data_page_offset = 4 + len(dictionary)
    meta_data.dictionary_page_offset = 4 if dictionary else 0
    path.write_bytes(b"PAR1" + dictionary + content + b"PAR1")
    return dataclasses.replace(like, meta_data=meta_data)


def told(file: InputFile, chunk: Chunk) -> object:
    """What the headers say, page by page, and of the dictionary; or what is wrong with them."""
    try:
        pages = [(page.encoded_header, page.num_values) for page in read_headers(file, chunk)]
        return pages, read_full_dictionary(file, chunk) is not None
    except SecureBloomError as error:
        return error.message


def never(*_arguments: object) -> int:
    return 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    runs=st.lists(data_pages(), min_size=1, max_size=5),
    dictionary=st.sampled_from([b"", dictionary_page()]),
    values=st.integers(0, 40),
    cut=st.integers(0, 30),
    flips=st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 7)), max_size=3),
)
def test_headers_that_repeat_are_told_as_if_each_were_decoded(
    tmp_path: Path,
    any_chunk: Chunk,
    runs: list[bytes],
    dictionary: bytes,
    values: int,
    cut: int,
    flips: list[tuple[int, int]],
) -> None:
    content = bytearray(b"".join(runs))
    del content[max(1, len(content) - cut) :]
    for place, bit in flips:
        # Most flips are of a header: bodies are zeros that nobody looks at.
        headers = [i for i, byte in enumerate(content) if byte] or [0]
        content[headers[place % len(headers)]] ^= 1 << bit
    chunk = chunk_of(tmp_path / "x", any_chunk, bytes(content), values, dictionary=dictionary)
    with open_input(str(tmp_path / "x")) as file:
        with mock.patch.object(LocalFile, "repeats", never):
            one_by_one = told(file, chunk)
        assert told(file, chunk) == told(CountedFile(file), chunk) == one_by_one


def test_headers_that_repeat_are_one_page_and_few_bytes_are_read(
    tmp_path: Path, any_chunk: Chunk
) -> None:
    page = body(70_000, page_header(compressed_page_size=70_000, data_page_header=ten_values()))
    chunk = chunk_of(tmp_path / "x", any_chunk, page * 50, 500, dictionary=b"")
    with open_input(str(tmp_path / "x")) as file:
        counted = CountedFile(file)
        pages = list(read_headers(counted, chunk))
        assert [page is pages[0] for page in pages] == [True] * 50
        assert counted.bytes_read < 70_000


def test_a_full_dictionary_is_seen_from_few_bytes_of_pages_that_repeat(
    tmp_path: Path, any_chunk: Chunk
) -> None:
    """However many pages there are, a header that comes again is compared and not decoded."""
    page = body(2_000, page_header(compressed_page_size=2_000, data_page_header=ten_values()))
    content = page * 1_000
    chunk = chunk_of(tmp_path / "x", any_chunk, content, 10_000, dictionary=dictionary_page())
    with open_input(str(tmp_path / "x")) as file:
        counted = CountedFile(file)
        assert read_full_dictionary(counted, chunk) is not None
        assert counted.bytes_read < len(content) // 10


def ten_values() -> DataPageHeader:
    return data_header(10, Encoding.RLE_DICTIONARY)


@pytest.mark.parametrize("different", [1, 2])
@pytest.mark.parametrize("place", [1, 7, 48, 120])
def test_one_page_without_the_dictionary_among_many_is_seen(
    tmp_path: Path, any_chunk: Chunk, place: int, different: int
) -> None:
    """Else the filter would lack its values."""
    counts = [10 + number % different for number in range(150)]
    pages = [
        body(8, page_header(data_page_header=data_header(count, Encoding.RLE_DICTIONARY)))
        for count in counts
    ]
    for expected in (True, False):
        content = b"".join(pages)
        chunk = chunk_of(
            tmp_path / "x", any_chunk, content, sum(counts), dictionary=dictionary_page()
        )
        with open_input(str(tmp_path / "x")) as file:
            assert (read_full_dictionary(file, chunk) is not None) is expected
        plain = data_header(counts[place], Encoding.PLAIN)
        pages[place] = body(8, page_header(data_page_header=plain))
        assert len(pages[place]) == len(pages[0])


def test_a_page_that_repeats_beyond_the_chunk_is_refused(tmp_path: Path, any_chunk: Chunk) -> None:
    page = body(8, page_header(data_page_header=ten_values()))
    chunk = chunk_of(tmp_path / "x", any_chunk, page * 5, 50, dictionary=b"")
    chunk.meta_data.total_compressed_size -= 1
    with open_input(str(tmp_path / "x")) as file:
        pages: list[Page] = []
        with pytest.raises(FormatError, match="remain in its chunk"):
            pages.extend(read_headers(file, chunk))
        assert len(pages) == 4


def test_pages_behind_the_last_value_are_not_looked_at(tmp_path: Path, any_chunk: Chunk) -> None:
    page = body(8, page_header(data_page_header=ten_values()))
    chunk = chunk_of(tmp_path / "x", any_chunk, page * 5, 30, dictionary=b"")
    with open_input(str(tmp_path / "x")) as file:
        assert len(list(read_headers(file, chunk))) == 3


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
        ({"data_page_header": values(DataPageHeader, 1)}, "lacks the header of its type"),
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
