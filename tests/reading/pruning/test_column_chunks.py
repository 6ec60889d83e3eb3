"""The chunks of one column as numbers: what each says, decrypted where it is encrypted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TProtocol import TType

import secure_bloom as sb
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.kms import Keyring
from secure_bloom.errors import IntegrityError, KeyUnavailableError
from secure_bloom.parquet import chunk_fields as layout
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import Footer, read_footer
from secure_bloom.parquet.footer.scan import ABSENT
from secure_bloom.reading.pruning.column_chunks import (
    ColumnChunks,
    codes_of,
    places_of,
    read_column_chunks,
)
from secure_bloom.storage import open_input
from testing.surgery import Opened, edit_column, edit_footer
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, write
from testing.thrift.metadata import ColumnChunk, ColumnMetaData
from testing.thrift.views import encoded

GROUPS = 8
#: A number of a chunk, and where it is said.
NUMBERS = {
    "num_values": layout.NUM_VALUES,
    "data_page_offset": layout.DATA_PAGE_OFFSET,
    "dictionary_page_offset": layout.DICTIONARY_PAGE_OFFSET,
    "bloom_filter_offset": layout.BLOOM_FILTER_OFFSET,
    "bloom_filter_length": layout.BLOOM_FILTER_LENGTH,
}
BOUNDS = {
    "min_value": layout.MIN_VALUE,
    "max_value": layout.MAX_VALUE,
    "min": layout.MIN,
    "max": layout.MAX,
}


#: These tests are about the C extension.
pytestmark = pytest.mark.parametrize("has_extension", [True])


def lake(path: Path, mode: Mode, *, filters: bool = True) -> Path:
    table = customers(800).append_column("nothing", pa.nulls(800, pa.int32()))
    file = write(path / "x.parquet", table, mode, row_group_size=100)
    if filters:
        columns = {"email": sb.BloomFilterOptions(), "score": sb.BloomFilterOptions()}
        assert not sb.add_bloom_filters(file, columns=columns, keys=KEYRING).failed
    return file


def footer_of(path: Path, keys: Keyring | None = KEYRING, *, twice: bool = True) -> Footer:
    """The footer, by the C extension where it is read ``twice``."""
    scanner = SchemaCache()
    with open_input(str(path)) as file:
        for _ in range(1 + twice):
            footer = read_footer(file, KeyResolver(keys), scanner)
    return footer


def ordinal_of(footer: Footer, name: str) -> int:
    return [leaf.name for leaf in footer.columns.leaves].index(name)


def assert_says(fields: ColumnChunks, index: int, chunk: Chunk) -> None:
    found, meta = fields.fields[index].tolist(), chunk.meta_data
    wanted = {name: getattr(meta, name) for name in NUMBERS}
    assert {name: found[place] for name, place in NUMBERS.items()} == {
        name: ABSENT if number is None else number for name, number in wanted.items()
    }
    statistics = meta.statistics
    nulls = None if statistics is None else statistics.null_count
    assert found[layout.NULL_COUNT] == (ABSENT if nulls is None else nulls)
    for name, place in BOUNDS.items():
        start, end = found[place : place + 2]
        bound = None if statistics is None else getattr(statistics, name)
        assert (None if start == ABSENT else fields.plain[start:end]) == bound
    start, end = found[layout.PATH_IN_SCHEMA : layout.PATH_IN_SCHEMA + 2]
    path = [len(meta.path_in_schema) << 4 | 8]
    for name in meta.path_in_schema:
        path += [len(name), *name.encode()]
    assert fields.plain[start:end] == bytes(path)
    assert found[layout.FILE_PATH] == ABSENT


@pytest.mark.parametrize("filters", [True, False])
@pytest.mark.parametrize("mode", list(Mode))
def test_fields_are_those_of_the_decoded_chunks(tmp_path: Path, mode: Mode, filters: bool) -> None:
    footer = footer_of(lake(tmp_path, mode, filters=filters))
    for row_groups in (list(range(GROUPS)), [5], [1, 6, 7]):
        for ordinal, leaf in enumerate(footer.columns.leaves):
            fields = read_column_chunks(footer, ordinal, row_groups)
            assert fields is not None
            assert places_of(fields.codes)[1].tolist() == row_groups, leaf.name
            assert len(fields.fields) == len(row_groups)
            chunks = [footer.chunk_to_read(index, ordinal) for index in row_groups]
            for place, chunk in enumerate(chunks):
                assert_says(fields, place, chunk)
            ciphers = [it.cipher for it in chunks if it.cipher is not None]
            own = fields.ciphers[0]
            assert [own.at(i) for i in fields.ordinals.tolist() if own is not None] == ciphers


def test_fields_are_the_same_if_the_library_scanned_the_footer(tmp_path: Path) -> None:
    path = lake(tmp_path, Mode.ENCRYPTED)
    for name in ("email", "id"):
        found = [
            read_column_chunks(footer, ordinal_of(footer, name), range(GROUPS))
            for footer in (footer_of(path), footer_of(path, twice=False))
        ]
        assert found[0] is not None
        assert found[1] is not None
        assert found[0].fields.tolist() == found[1].fields.tolist()
        assert found[0].plain == found[1].plain


def test_filters_stand_where_the_chunks_say(tmp_path: Path) -> None:
    footer = footer_of(lake(tmp_path, Mode.ENCRYPTED))
    ordinal = ordinal_of(footer, "email")
    fields = read_column_chunks(footer, ordinal, [2, 4, 6])
    assert fields is not None
    chunks = [footer.chunk_to_read(index, ordinal) for index in (2, 6)]
    found = fields.filter_places(0, np.array([0, 2]))
    assert found.places.tolist() == [
        [it.meta_data.bloom_filter_offset, it.meta_data.bloom_filter_length] for it in chunks
    ]
    assert found.cipher is not None
    assert [found.cipher.at(number) for number in found.ordinals.tolist()] == [
        it.cipher for it in chunks
    ]


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**15)), min_size=1))
def test_codes_ascend_by_file_and_row_group(
    has_extension: bool, places: list[tuple[int, int]]
) -> None:
    files, row_groups = np.array(places, np.int64).T
    codes = codes_of(files, row_groups)
    assert list(zip(*(it.tolist() for it in places_of(codes)), strict=True)) == places
    assert np.argsort(codes, kind="stable").tolist() == sorted(
        range(len(places)), key=places.__getitem__
    )


def change_modules(path: Path, change: Callable[[int, Opened, ColumnChunk], None]) -> None:
    """Change the column chunks of ``email``, which have metadata of their own."""

    def edit(it: Opened) -> None:
        for index in range(GROUPS):
            change(index, it, it.chunk(index, "email").column_chunk)

    edit_footer(path, edit)


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED])
def test_a_tampered_module_is_an_error(tmp_path: Path, mode: Mode) -> None:
    path = lake(tmp_path, mode)

    def tamper(index: int, _it: Opened, chunk: ColumnChunk) -> None:
        if index == 3:
            module = bytearray(chunk.encrypted_column_metadata or b"")
            module[-1] ^= 1
            chunk.encrypted_column_metadata = bytes(module)

    change_modules(path, tamper)
    footer = footer_of(path)
    with pytest.raises(IntegrityError) as refused:
        read_column_chunks(footer, ordinal_of(footer, "email"), range(GROUPS))
    assert (refused.value.row_group, refused.value.column) == (3, "email")
    assert read_column_chunks(footer, ordinal_of(footer, "email"), [0, 1, 2, 4]) is not None
    assert read_column_chunks(footer, ordinal_of(footer, "iban"), range(GROUPS)) is not None


def test_exchanged_modules_are_an_error(tmp_path: Path) -> None:
    path = lake(tmp_path, Mode.ENCRYPTED)

    def swap(it: Opened) -> None:
        one, two = (it.chunk(index, "email").column_chunk for index in (1, 2))
        one.encrypted_column_metadata, two.encrypted_column_metadata = (
            two.encrypted_column_metadata,
            one.encrypted_column_metadata,
        )

    edit_footer(path, swap)
    footer = footer_of(path)
    with pytest.raises(IntegrityError) as refused:
        read_column_chunks(footer, ordinal_of(footer, "email"), range(GROUPS))
    assert (refused.value.row_group, refused.value.column) == (1, "email")


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED])
@pytest.mark.parametrize("missing", [0, 3, GROUPS - 1])
def test_a_chunk_without_a_module_leaves_all_to_the_steps(
    tmp_path: Path, mode: Mode, missing: int
) -> None:
    path = lake(tmp_path, mode)

    def remove(index: int, _it: Opened, chunk: ColumnChunk) -> None:
        if index == missing:
            del chunk.encrypted_column_metadata

    change_modules(path, remove)
    footer = footer_of(path)
    assert read_column_chunks(footer, ordinal_of(footer, "email"), range(GROUPS)) is None


def test_chunks_under_several_keys_are_left_to_the_steps(tmp_path: Path) -> None:
    path = lake(tmp_path, Mode.ENCRYPTED)

    def change(index: int, it: Opened, chunk: ColumnChunk) -> None:
        if index == 3:
            chunk.crypto_metadata = it.chunk(0, "iban").column_chunk.crypto_metadata

    change_modules(path, change)
    footer = footer_of(path)
    assert read_column_chunks(footer, ordinal_of(footer, "email"), range(GROUPS)) is None


@pytest.mark.parametrize("only", [None, 0, 3])
def test_metadata_may_be_padded(tmp_path: Path, only: int | None) -> None:
    path = lake(tmp_path, Mode.ENCRYPTED)
    seal(path, lambda encoded: encoded + bytes(9), only=only)
    footer = footer_of(path)
    ordinal = ordinal_of(footer, "email")
    fields = read_column_chunks(footer, ordinal, range(GROUPS))
    assert fields is not None
    for index in range(GROUPS):
        assert_says(fields, index, footer.chunk_to_read(index, ordinal))


def seal(path: Path, change: Callable[[bytes], bytes], *, only: int | None = None) -> None:
    """Encrypt other bytes in place of the metadata of ``email``."""

    def sealed(index: int, it: Opened, column_chunk: ColumnChunk) -> None:
        chunk = it.chunk(index, "email")
        if chunk.cipher is not None and only in (None, index):
            column_chunk.encrypted_column_metadata = chunk.cipher.encrypt(
                ModuleType.COLUMN_META_DATA, change(encoded(chunk.meta_data))
            )

    change_modules(path, sealed)


@pytest.mark.parametrize("only", [None, 0, 3, GROUPS - 1])
@pytest.mark.parametrize("size", [0, 1, 30, -1])
def test_metadata_that_are_cut_short_do_not_go_on_in_the_next(
    tmp_path: Path, size: int, only: int | None
) -> None:
    path = lake(tmp_path, Mode.ENCRYPTED)
    seal(path, lambda encoded: encoded[:size], only=only)
    footer = footer_of(path)
    assert read_column_chunks(footer, ordinal_of(footer, "email"), range(GROUPS)) is None


def test_a_key_that_is_missing_is_said(tmp_path: Path) -> None:
    path = lake(tmp_path, Mode.ENCRYPTED)
    keys = Keyring(master_keys={k: v for k, v in MASTER_KEYS.items() if k != "k_pii"})
    footer = footer_of(path, keys)
    with pytest.raises(KeyUnavailableError) as refused:
        read_column_chunks(footer, ordinal_of(footer, "email"), range(GROUPS))
    assert refused.value.column == "email"
    assert read_column_chunks(footer, ordinal_of(footer, "iban"), range(GROUPS)) is not None


def test_a_signed_footer_without_keys_says_what_is_in_clear(tmp_path: Path) -> None:
    footer = footer_of(lake(tmp_path, Mode.SIGNED), None)
    fields = read_column_chunks(footer, ordinal_of(footer, "id"), range(GROUPS))
    assert fields is not None
    assert fields.ciphers == {0: None}
    with pytest.raises(KeyUnavailableError):
        read_column_chunks(footer, ordinal_of(footer, "email"), range(GROUPS))


def test_numbers_of_another_wire_type_are_left_to_the_steps(tmp_path: Path) -> None:
    path = lake(tmp_path, Mode.PLAIN)

    def to_i32(meta_data: ColumnMetaData) -> None:
        fields = meta_data.tree.fields
        fields[5] = TType.I32, fields[5][1]

    edit_column(path, 2, "id", to_i32)
    footer = footer_of(path)
    assert read_column_chunks(footer, ordinal_of(footer, "id"), range(GROUPS)) is None
    assert read_column_chunks(footer, ordinal_of(footer, "id"), [0, 1]) is not None
