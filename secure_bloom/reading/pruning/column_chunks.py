"""Read what a lookup needs of all chunks of one column, as rows of numbers.

Metadata in encrypted modules are decrypted first. All modules of a column are decrypted together,
because they are mostly under one key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.errors import located
from secure_bloom.parquet import chunk_fields as layout
from secure_bloom.parquet.chunk_fields import SLOTS, read_chunks, read_meta_data
from secure_bloom.parquet.file_ciphers import bounds_of, open_run
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.structures.metadata import ColumnCryptoMetaData
from secure_bloom.parquet.structures.records import decode_record
from secure_bloom.parquet.value_order import has_ordered_bounds
from secure_bloom.reading.pruning.filter_reads import FilterPlaces

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnChunks:
    """The chunks of one column in some files. Each chunk has a row in ``fields``.

    :mod:`secure_bloom.parquet.chunk_fields` names the slots of a row.  A text has two slots, which
    are its start and end in ``plain``.  ``codes`` has the file and row group of each chunk: see
    :func:`codes_of`.
    ``ciphers`` has the column's cipher in each file. ``ordinals`` has the ordinals of each chunk
    that the cipher needs for its AADs.  ``has_order`` says whether bounds are in the order of the
    type.
    """

    codes: Numbers
    ordinals: Numbers
    ciphers: Mapping[int, ColumnCipher | None] = field(repr=False)
    rows: Numbers
    has_order: bool
    plain: bytes = field(repr=False)
    fields: Numbers = field(repr=False)

    @property
    def filters(self) -> Numbers:
        """Offset and length of each chunk's filter, negative if it has none."""
        return self.fields[:, layout.BLOOM_FILTER_OFFSET : layout.BLOOM_FILTER_LENGTH + 1]

    def filter_places(self, file: int, chunks: NDArray[np.intp]) -> FilterPlaces:
        """Return where the filters of some chunks of one file are."""
        return FilterPlaces(self.filters[chunks], self.ciphers[file], self.ordinals[chunks])


#: A code is one number for a file and a row group, ascending by both.
_FILE_BITS = 32


def codes_of(files: Numbers | int, row_groups: Numbers) -> Numbers:
    """Return the code of each row group."""
    codes: Numbers = row_groups + files * (1 << _FILE_BITS)
    return codes


def places_of(codes: Numbers) -> tuple[Numbers, Numbers]:
    """Return the file and the row group of each code."""
    return codes >> _FILE_BITS, codes & ((1 << _FILE_BITS) - 1)


def read_column_chunks(
    footer: Footer, column: int, row_groups: Sequence[int], file: int = 0
) -> ColumnChunks | None:
    """Return a column's chunks in some row groups, or None if the steps must check them.

    Raises KeyUnavailableError, or IntegrityError with row group and column.
    """
    plain, leaf = footer.plain, footer.columns.leaves[column]
    found = read_chunks(plain, footer.chunk_offsets[row_groups, column], len(row_groups))
    if found is None:
        return None
    fields = _rows(found)
    every = footer.ordinals
    ordinals = [every[index] for index in row_groups]
    cipher = None
    if (fields[:, layout.CRYPTO_METADATA] >= 0).any():
        cipher = _cipher(footer, column, row_groups[0], fields)
        if cipher is None:
            return None
        modules = _extents(fields, layout.ENCRYPTED_COLUMN_METADATA)
        if (modules[:, 0] >= 0).any():
            opened = _opened(leaf.name, row_groups, cipher, ordinals, plain, modules)
            if opened is None:
                return None
            plain, inner = opened
            inner[:, layout.FILE_PATH] = fields[:, layout.FILE_PATH]
            fields = inner
    chunks = _column_chunks(footer, column, row_groups, file, ordinals, cipher, plain, fields)
    if not leaf.is_repeated and (fields[:, layout.NUM_VALUES] != chunks.rows).any():
        # The steps raise the error of a chunk that has not the rows of its row group.
        return None
    return chunks


def decode_column_chunks(
    footer: Footer, column: int, row_groups: Sequence[int], file: int
) -> ColumnChunks | None:
    """Return what :func:`read_column_chunks` does, without bounds: chunks are decoded one by one.

    This is for an installation without the C extension.  Return None for chunks in other files, of
    other columns, or under several keys.
    """
    chunks = [footer.chunk_to_read(index, column) for index in row_groups]
    fields = np.full((len(chunks), SLOTS), -1, np.int64)
    cipher = chunks[0].cipher
    ordinals = [footer.ordinals[index] for index in row_groups]
    for row, ordinal, chunk in zip(fields, ordinals, chunks, strict=True):
        meta_data = chunk.meta_data
        row[layout.NUM_VALUES] = meta_data.num_values
        if meta_data.bloom_filter_offset is not None:
            row[layout.BLOOM_FILTER_OFFSET] = meta_data.bloom_filter_offset
            row[layout.BLOOM_FILTER_LENGTH] = meta_data.bloom_filter_length or 0
        own = None if chunk.cipher is None or cipher is None else cipher.at(ordinal)
        is_usual = chunk.column_chunk.file_path is None and meta_data.num_values == chunk.num_rows
        if (
            not is_usual
            or own != chunk.cipher
            or tuple(meta_data.path_in_schema) != chunk.leaf.path
        ):
            return None
    return _column_chunks(footer, column, row_groups, file, ordinals, cipher, b"", fields)


def _column_chunks(
    footer: Footer,
    column: int,
    row_groups: Sequence[int],
    file: int,
    ordinals: Sequence[int],
    cipher: ColumnCipher | None,
    plain: bytes,
    fields: Numbers,
) -> ColumnChunks:
    rows, orders = footer.rows, footer.metadata.column_orders
    return ColumnChunks(
        codes=codes_of(file, np.array(row_groups, np.int64)),
        ordinals=np.array(ordinals, np.int64),
        ciphers={file: cipher},
        rows=np.array([rows[index] for index in row_groups], np.int64),
        has_order=has_ordered_bounds(orders, column, footer.columns.leaves[column]),
        plain=plain,
        fields=fields,
    )


def _rows(found: memoryview) -> Numbers:
    return np.asarray(found).reshape(-1, SLOTS)


def _extents(fields: Numbers, slot: int) -> Numbers:
    """Return start and end of one field of each chunk, negative if it is absent."""
    return np.ascontiguousarray(fields[:, slot : slot + 2])


def _cipher(footer: Footer, column: int, row_group: int, fields: Numbers) -> ColumnCipher | None:
    """Return the cipher of a column in a row group.

    Return None if its chunks are encrypted differently.
    """
    extents = _extents(fields, layout.CRYPTO_METADATA).tolist()
    # One key for all chunks is the usual case; with several the steps take over.
    said = {footer.plain[start:end] if start >= 0 else b"" for start, end in extents}
    if len(said) > 1:
        return None
    crypto = decode_record(ColumnCryptoMetaData, said.pop())
    return footer.cipher(row_group, column, crypto)


def _opened(
    column: str,
    row_groups: Sequence[int],
    cipher: ColumnCipher,
    ordinals: Sequence[int],
    plain: bytes,
    modules: Numbers,
) -> tuple[bytes, Numbers] | None:
    """Decrypt metadata in encrypted modules, and read their fields."""
    if (modules[:, 0] < 0).any():
        return None
    found = open_run(cipher, plain, 0, modules, (ModuleType.COLUMN_META_DATA,), ordinals)
    if found is None:
        found = []
        for index, ordinal, (start, end) in zip(
            row_groups, ordinals, modules.tolist(), strict=True
        ):
            with located(row_group=index, column=column):
                module = plain[start:end]
                found.append(cipher.at(ordinal).decrypt(ModuleType.COLUMN_META_DATA, module))
    rows = read_meta_data(b"".join(found), bounds_of(found), len(found))
    return None if rows is None else (b"".join(found), _rows(rows))
