"""A file taken apart, to change what it says of itself, and put together again.

What is changed is written anew behind the data, and the footer refers to it there; the bytes that
were there before stay.  Of an encrypted file all modules are sealed again: the writer itself lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.pages import read_pages
from secure_bloom.parquet.structures import metadata as declared
from testing.live_footer import encode_footer
from testing.surgery import Opened, opened
from testing.thrift import trees
from testing.thrift.metadata import (
    ColumnIndex,
    ColumnMetaData,
    FileMetaData,
    OffsetIndex,
    PageHeader,
    RowGroup,
)
from testing.thrift.views import encoded


@dataclass(slots=True)
class EditedPage:
    """One page in clear: a header that can be changed, and a body that is still compressed."""

    header: PageHeader
    body: bytes
    is_dictionary: bool


class Place:
    """One column chunk of a file that is being edited."""

    def __init__(self, editor: Editor, chunk: Chunk) -> None:
        self._editor = editor
        self.chunk = chunk
        self.meta_data: ColumnMetaData = chunk.meta_data

    @property
    def column(self) -> str:
        return self.chunk.leaf.path[0]

    @property
    def file(self) -> FileMetaData:
        return self._editor.it.footer.metadata

    @property
    def row_group(self) -> RowGroup:
        return self._editor.it.footer.row_groups[self.chunk.row_group]

    @property
    def statistics(self) -> declared.Statistics:
        found = self.meta_data.statistics
        if found is None:
            raise Inapplicable
        return found

    def other(self, column: str, row_group: int | None = None) -> Place:
        """Another column's chunk in the same row group, or the one named."""
        return self._editor.place(self.chunk.row_group if row_group is None else row_group, column)

    @contextmanager
    def column_index(self) -> Iterator[ColumnIndex]:
        """The column index, written back when it has been changed."""
        chunk = self.chunk.column_chunk
        if chunk.column_index_offset is None or chunk.column_index_length is None:
            raise Inapplicable
        stored = self._editor.it.file.read_at(chunk.column_index_offset, chunk.column_index_length)
        index = ColumnIndex(trees.decode(self._opened(ModuleType.COLUMN_INDEX, stored))[0])
        yield index
        sealed = self._sealed(ModuleType.COLUMN_INDEX, index.encode())
        chunk.column_index_offset = self._editor.append(sealed)
        chunk.column_index_length = len(sealed)

    @contextmanager
    def offset_index(self) -> Iterator[OffsetIndex]:
        """The same of the offset index."""
        chunk = self.chunk.column_chunk
        if chunk.offset_index_offset is None or chunk.offset_index_length is None:
            raise Inapplicable
        stored = self._editor.it.file.read_at(chunk.offset_index_offset, chunk.offset_index_length)
        index = OffsetIndex(trees.decode(self._opened(ModuleType.OFFSET_INDEX, stored))[0])
        yield index
        sealed = self._sealed(ModuleType.OFFSET_INDEX, index.encode())
        chunk.offset_index_offset = self._editor.append(sealed)
        chunk.offset_index_length = len(sealed)

    @contextmanager
    def pages(self, *, keeps_indexes: bool = True) -> Iterator[list[EditedPage]]:
        """All pages; the chunk is written anew, and its offset index tells of the new places."""
        pages = [
            EditedPage(
                header=PageHeader(trees.decode(page.encoded_header)[0]),
                body=bytes(page.body()),
                is_dictionary=page.is_dictionary,
            )
            for page in read_pages(self._editor.it.file, self.chunk)
        ]
        yield pages
        places = self._write_pages(pages)
        if keeps_indexes and self.chunk.column_chunk.offset_index_offset is not None:
            with self.offset_index() as index:
                for location, (offset, length) in zip(index.page_locations, places, strict=False):
                    location.offset, location.compressed_page_size = offset, length

    def _write_pages(self, pages: list[EditedPage]) -> list[tuple[int, int]]:
        """Where each data page stands now."""
        places, ordinal, start, size = [], 0, None, 0
        for page in pages:
            page_ordinal = None if page.is_dictionary else ordinal
            ordinal += not page.is_dictionary
            body_type, header_type = (
                (ModuleType.DICTIONARY_PAGE, ModuleType.DICTIONARY_PAGE_HEADER)
                if page.is_dictionary
                else (ModuleType.DATA_PAGE, ModuleType.DATA_PAGE_HEADER)
            )
            body = self._sealed(body_type, page.body, page_ordinal)
            if self.chunk.cipher is not None:
                page.header.compressed_page_size = len(body)
            header = self._sealed(header_type, page.header.encode(), page_ordinal)
            offset = self._editor.append(header + body)
            if page.is_dictionary:
                self.meta_data.dictionary_page_offset = offset
            else:
                places.append((offset, len(header) + len(body)))
            start = offset if start is None else start
            size += len(header) + len(body)
        self.meta_data.data_page_offset = places[0][0]
        self.meta_data.total_compressed_size = size
        return places

    def _opened(self, module: ModuleType, stored: bytes) -> bytes:
        found = self.chunk.cipher
        return stored if found is None else found.decrypt(module, stored)

    def _sealed(self, module: ModuleType, plain: bytes, page: int | None = None) -> bytes:
        found = self.chunk.cipher
        if found is None:
            return plain
        aad = cipher.module_aad(
            found.file_aad, module, found.row_group_ordinal, found.column_ordinal, page
        )
        return cipher.encrypt_gcm(plain, found.key.key, aad)


class Inapplicable(Exception):  # noqa: N818  (it is no error)
    """The file has nothing that the lie could be told of."""


class Editor:
    """An open file with what was changed in it."""

    def __init__(self, it: Opened) -> None:
        self.it = it
        self._places: dict[tuple[int, str], Place] = {}
        self._parts = [it.file.read_at(0, it.footer.tail.offset)]
        self._size = len(self._parts[0])

    def place(self, row_group: int, column: str) -> Place:
        """The chunk of a top-level column."""
        if (row_group, column) not in self._places:
            leaf = next(leaf for leaf in self.it.footer.leaves if leaf.path[0] == column)
            self._places[row_group, column] = Place(self, self.it.chunk(row_group, leaf.name))
        return self._places[row_group, column]

    def append(self, content: bytes) -> int:
        """Write behind the data; where that is."""
        offset = self._size
        self._parts.append(content)
        self._size += len(content)
        return offset

    def content(self) -> bytes:
        """The file with all changes."""
        for place in self._places.values():
            chunk = place.chunk
            if chunk.column_chunk.encrypted_column_metadata is not None and chunk.cipher:
                chunk.column_chunk.encrypted_column_metadata = chunk.cipher.encrypt(
                    ModuleType.COLUMN_META_DATA, encoded(chunk.meta_data)
                )
        return b"".join([*self._parts, encode_footer(self.it.footer)])


def edit(
    source: Path, target: Path, row_group: int, column: str, change: Callable[[Place], object]
) -> bool:
    """Write ``source`` with the change to ``target``; whether there was anything to change."""
    with opened(source) as it:
        editor = Editor(it)
        try:
            change(editor.place(row_group, column))
        except Inapplicable:
            return False
        target.write_bytes(editor.content())
        return True
