"""The pages of a chunk are found, counted, decrypted; what cannot be is refused."""

from __future__ import annotations

import copy
from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.encryption.cipher import ModuleType, encrypt_ctr, encrypt_gcm, module_aad
from secure_bloom.errors import FormatError, IntegrityError
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.pages import read_first_pages, read_pages
from secure_bloom.storage import CountedFile
from testing.surgery import edit_column, flip, opened
from testing.tables import Mode, customers, write
from testing.thrift import trees
from testing.thrift.metadata import ColumnMetaData, PageHeader

MANY_PAGES = {"data_page_size": 256, "write_batch_size": 16, "compression": "none"}


def written(folder: Path, mode: Mode, **options: object) -> Path:
    return write(folder / "x.parquet", customers(300), mode, **{**MANY_PAGES, **options})


def _data_pages(chunk: Chunk, file: object) -> list:
    return [page for page in read_pages(file, chunk) if not page.is_dictionary]


@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_all_pages_are_found(tmp_path: Path, mode: Mode, version: str, dictionary: bool) -> None:
    path = written(tmp_path, mode, data_page_version=version, use_dictionary=dictionary)
    with opened(path) as it:
        chunk = it.chunk(0, "email")
        pages = read_pages(it.file, chunk)
        assert [page.is_dictionary for page in pages].count(True) == dictionary
        assert pages[0].is_dictionary is dictionary
        data = pages[1:] if dictionary else pages
        assert len(data) > 2
        assert [page.ordinal for page in data] == list(range(len(data)))
        assert sum(page.num_values for page in data) == chunk.meta_data.num_values == 300
        for page in pages:
            assert len(page.body()) == page.header.compressed_page_size - (
                0 if chunk.cipher is None else 32
            )


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED], ids=lambda mode: mode.name)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_values", 299),
        ("num_values", 301),
        ("num_values", 2**40),
        ("total_compressed_size", 40),
        ("total_compressed_size", 0),
        ("total_compressed_size", -1),
        ("total_compressed_size", 2**50),
        ("data_page_offset", -5),
        ("data_page_offset", 0),
        ("data_page_offset", 2**50),
    ],
)
def test_metadata_that_does_not_fit_the_pages_is_refused(
    tmp_path: Path, mode: Mode, field: str, value: int
) -> None:
    path = written(tmp_path, mode, use_dictionary=False)
    edit_column(path, 0, "email", lambda meta_data: setattr(meta_data, field, value))
    with opened(path) as it, pytest.raises(FormatError):
        read_pages(it.file, it.chunk(0, "email"))


def test_every_flipped_byte_of_encrypted_pages_is_noticed(tmp_path: Path) -> None:
    table = pa.table({"email": [f"user{i}@example.com" for i in range(4)]})
    path = write(tmp_path / "x.parquet", table, Mode.ENCRYPTED, column_keys={"k_pii": ["email"]})
    with opened(path) as it:
        meta_data = it.chunk(0, "email").meta_data
        start = meta_data.dictionary_page_offset or 0
        length = meta_data.total_compressed_size
    for place in range(start, start + length):
        flip(path, place)
        with opened(path) as it, pytest.raises((IntegrityError, FormatError)):
            assert all(page.body() for page in read_pages(it.file, it.chunk(0, "email")))
        flip(path, place)


def test_pages_in_another_order_do_not_authenticate(tmp_path: Path) -> None:
    path = written(tmp_path, Mode.ENCRYPTED, use_dictionary=False)
    with opened(path) as it:
        chunk = it.chunk(0, "iban")
        first, second, *_ = _data_pages(chunk, it.file)
        assert len(first.stored) == len(second.stored)
        content = bytearray(path.read_bytes())
        places = [content.index(page.stored) for page in (first, second)]
        for place, page in zip(places, (second, first), strict=True):
            content[place : place + len(page.stored)] = page.stored
    path.write_bytes(content)
    with opened(path) as it, pytest.raises(IntegrityError):
        _data_pages(it.chunk(0, "iban"), it.file)[0].body()


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_levels_that_parquet_java_leaves_in_clear_are_read(tmp_path: Path, algorithm: str) -> None:
    """Spark with `parquet.writer.version=v2`: levels, then a module of the values alone."""
    options = {"use_dictionary": False, "data_page_version": "2.0", "compression": "none"}
    encryption = {"encryption_algorithm": algorithm}
    path = write(
        tmp_path / "x.parquet", customers(50), Mode.ENCRYPTED, encryption=encryption, **options
    )
    with opened(path) as it:
        chunk = it.chunk(0, "email")
        (page,) = read_pages(it.file, chunk)
        body, data_end = bytes(page.body()), it.footer.tail.offset
        stored = _as_parquet_java_stores(
            PageHeader(trees.decode(page.encoded_header)[0]), body, chunk
        )
    content = path.read_bytes()
    path.write_bytes(content[:data_end] + stored + content[data_end:])

    def point_at_it(meta_data: ColumnMetaData) -> None:
        meta_data.data_page_offset = data_end
        meta_data.total_compressed_size = len(stored)

    edit_column(path, 0, "email", point_at_it)
    with opened(path) as it:
        (page,) = read_pages(it.file, it.chunk(0, "email"))
        assert page.body() == body


def _as_parquet_java_stores(header: PageHeader, body: bytes, chunk: Chunk) -> bytes:
    assert header.data_page_header_v2 is not None
    assert chunk.cipher is not None
    levels = header.data_page_header_v2.definition_levels_byte_length
    assert levels > 0
    key, place = chunk.cipher.key.key, (chunk.row_group, 0, 0)
    if chunk.cipher.uses_ctr:
        module = encrypt_ctr(body[levels:], key)
    else:
        aad = module_aad(chunk.cipher.file_aad, ModuleType.DATA_PAGE, *place)
        module = encrypt_gcm(body[levels:], key, aad)
    header = copy.deepcopy(header)
    header.compressed_page_size = levels + len(module)
    aad = module_aad(chunk.cipher.file_aad, ModuleType.DATA_PAGE_HEADER, *place)
    return encrypt_gcm(header.encode(), key, aad) + body[:levels] + module


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
@pytest.mark.parametrize("dictionary", [True, False])
def test_the_first_pages_are_read_without_the_others(
    tmp_path: Path, mode: Mode, dictionary: bool
) -> None:
    path = write(
        tmp_path / "x.parquet",
        customers(20_000),
        mode,
        row_group_size=20_000,
        data_page_size=4096,
        use_dictionary=["city"] if dictionary else False,
        compression="none",
    )
    name = "city" if dictionary else "email"
    with opened(path) as it:
        spy, chunk = CountedFile(it.file), it.chunk(0, name)
        first = read_first_pages(spy, chunk)
        every = read_pages(it.file, chunk)
    wanted = every[: 1 + dictionary]
    assert [page.is_dictionary for page in first] == [True, False][1 - dictionary :]
    assert [page.body() for page in first] == [page.body() for page in wanted]
    assert spy.bytes_read <= 256 * 1024
    assert len(every) > len(first)


def test_a_first_page_larger_than_the_first_read_is_read_whole(tmp_path: Path) -> None:
    table = pa.table({"x": ["y" * 400_000, "z"]})
    options = {"use_dictionary": False, "compression": "none", "row_group_size": 2}
    path = write(tmp_path / "x.parquet", table, **options)
    with opened(path) as it:
        (page,) = read_first_pages(it.file, it.chunk(0, "x"))
    assert page.num_values == 2
