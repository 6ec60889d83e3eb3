"""A file is whole where its footer accounts for every byte before it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.adding.in_place import append_mark, is_whole_file
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.kms import Keyring
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.pages import chunk_extent
from secure_bloom.storage import open_input
from testing.surgery import Opened, edit_column, edit_footer
from testing.tables import KEYRING, Mode, customers, write
from testing.thrift.metadata import ColumnMetaData


def is_whole(path: Path, keys: Keyring | None = KEYRING) -> bool:
    with open_input(str(path)) as file:
        return is_whole_file(file, file.size, KeyResolver(keys).for_file())


@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
@pytest.mark.parametrize("index", [False, True])
def test_what_a_writer_wrote_is_whole(tmp_path: Path, mode: Mode, index: bool) -> None:
    path = write(tmp_path / "x.parquet", customers(60), mode, write_page_index=index)
    assert is_whole(path)
    sb.add_bloom_filters(path, columns=["email"], keys=KEYRING)
    assert is_whole(path)
    sb.add_bloom_filters(path, columns=["city"], keys=KEYRING, in_place=True)
    assert is_whole(path)


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED], ids=lambda mode: mode.name)
@pytest.mark.parametrize("dictionary", [False, True])
def test_a_file_without_rows_is_whole(tmp_path: Path, mode: Mode, dictionary: bool) -> None:
    path = tmp_path / "x.parquet"
    write(path, customers(60).slice(0, 0), mode, use_dictionary=dictionary)
    assert is_whole(path)
    sb.add_bloom_filters(path, columns=["email"], keys=KEYRING, in_place=True)
    assert is_whole(path)


def test_without_a_key_nobody_knows(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(60), Mode.SIGNED)
    assert not is_whole(path, None)


@pytest.mark.parametrize(
    ("between", "whole"),
    [
        (lambda _: bytes(100), True),
        (lambda _: b"x", False),
        (lambda old: append_mark(len(old)) + b"x", False),
        (lambda old: old, False),
    ],
)
def test_bytes_that_nothing_accounts_for(
    tmp_path: Path, between: Callable[[bytes], bytes], whole: bool
) -> None:
    path = write(tmp_path / "x.parquet", customers(60))
    content = path.read_bytes()
    with open_input(str(path)) as file:
        offset = read_tail(file).offset
    path.write_bytes(content[:offset] + between(content) + content[offset:])
    assert is_whole(path) is whole


def test_what_an_earlier_append_left_behind_is_dead(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(60))
    old = path.read_bytes()
    with open_input(str(path)) as file:
        footer = old[read_tail(file).offset :]
    # The whole old file, its footer included, then a mark that says where it ended.
    path.write_bytes(old + append_mark(len(old)) + bytes(50) + footer)
    assert is_whole(path)
    # The same bytes behind a mark of another place are not known to be a file of their own.
    path.write_bytes(old + append_mark(len(old) - 1) + bytes(50) + footer)
    assert not is_whole(path)


@pytest.mark.parametrize("field", ["offset_index_length", "column_index_length"])
def test_an_index_that_is_said_to_be_longer_than_it_is(tmp_path: Path, field: str) -> None:
    path = write(tmp_path / "x.parquet", customers(60), write_page_index=True)

    def lengthen(it: Opened) -> None:
        entry = it.chunk(0, "email").column_chunk
        setattr(entry, field, getattr(entry, field) + 1)

    edit_footer(path, lengthen)
    assert not is_whole(path)


def test_pages_that_do_not_end_with_their_chunk(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(60))

    def shorten(meta_data: ColumnMetaData) -> None:
        meta_data.total_compressed_size -= 1

    edit_column(path, 0, "email", shorten)
    assert not is_whole(path)


def test_metadata_that_are_not_repeated_behind_the_pages(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(60))

    def point_behind(it: Opened) -> None:
        chunk = it.chunk(0, it.footer.leaves[-1].name)
        chunk.column_chunk.file_offset = sum(chunk_extent(chunk))

    edit_footer(path, point_behind)
    assert is_whole(path)
