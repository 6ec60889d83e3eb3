"""Read a file that was written under other keys, before it replaces the old one.

A run opens each page that it seals or decrypts.  Columns that are in clear before and after are
copied unchanged. If a file wrongly says that a column is in clear, the copy would be unreadable. So
the footer is opened with the new keys, and the first page of each copied column is read.  A run
with ``verify`` reads the first page of every column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing

from secure_bloom.encryption.file_keys import FileKeys, KeyResolver
from secure_bloom.encryption.kms import ExplicitKeys
from secure_bloom.errors import SecureBloomError, located
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import unlock
from secure_bloom.parquet.pages import chunk_extent
from secure_bloom.parquet.schema import Leaf
from secure_bloom.rekeying.new_keys import NewFileKeys
from secure_bloom.rekeying.regions import Region, RegionKind
from secure_bloom.rekeying.transfer import stored_pages
from secure_bloom.storage import InputFile
from secure_bloom.storage.column_mapping import ColumnMapping


def check_written(
    file: InputFile,
    keys: FileKeys,
    columns: Collection[int] | None,
    names: ColumnMapping | None = None,
) -> None:
    """Raise the error of the first part of a new file that cannot be read.

    ``columns`` are the ordinals of the columns whose first page is read. None means all columns.
    ``names`` maps the columns to their names in the table: ``keys`` finds their keys by these.
    """
    file.column_names = names
    try:
        footer = unlock(read_tail(file), keys)
        every = range(len(footer.leaves)) if columns is None else columns
        for column in every if footer.row_groups else ():
            with located(row_group=0, column=footer.leaves[column].name):
                _read_first_page(file, footer.chunk(0, column), column)
    except SecureBloomError as error:
        error.hint = (
            "the new file could not be read, so the old one was left as it was; check that "
            "file with secure-bloom audit"
        )
        raise


def _read_first_page(file: InputFile, chunk: Chunk, column: int) -> None:
    start, length = chunk_extent(chunk)
    region = Region(offset=start, length=length, kind=RegionKind.PAGES, chunk=chunk, column=column)
    with closing(stored_pages(file, region)) as pages:
        for page, _, _ in pages:
            page.body()
            return


def keys_by_place(new: NewFileKeys | None, leaves: tuple[Leaf, ...]) -> FileKeys:
    """Return the keys of a new file, by its footer and columns, so that no KMS is needed.

    ``new`` is None for a file in clear.
    """
    if new is None:
        return KeyResolver(None).for_file()
    columns: Mapping[str, bytes] = {
        leaf.name: sealed.key.key
        for ordinal, leaf in enumerate(leaves)
        if (sealed := new.sealed_with(ordinal)) is not None
    }
    given = ExplicitKeys(footer=new.footer.key.key, columns=columns)
    return KeyResolver(given).for_file(lambda: new.external)
