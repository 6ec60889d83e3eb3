"""Read the fields that a lookup needs of all chunks of one column of a file, as rows of numbers.

Metadata in encrypted modules are decrypted first: those of a column together, because they are
mostly under one key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from secure_bloom.reading.pruning.filter_reads import FilterLocation

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkFields:
    """A row of ``fields`` for each of ``row_groups``.

    :mod:`secure_bloom.parquet.chunk_fields` names the slots of a row.  A text has two slots: its
    offsets in ``plain``.  ``cipher`` is the cipher of the first row group. The others differ in
    their ordinals.
    """

    column: str
    row_groups: Sequence[int]
    ordinals: Sequence[int]
    plain: bytes
    fields: Numbers
    cipher: ColumnCipher | None = None

    @property
    def filters(self) -> Numbers:
        """Offset and length of each chunk's filter, negative if it has none."""
        return self.fields[:, layout.BLOOM_FILTER_OFFSET : layout.BLOOM_FILTER_LENGTH + 1]

    def filter_locations(self, indices: Sequence[int]) -> list[FilterLocation]:
        """Return the places of the filters of the chunks at ``indices``, and their ciphers."""
        cipher, found = self.cipher, []
        for index, (offset, length) in zip(indices, self.filters[indices].tolist(), strict=True):
            own = None if cipher is None else cipher.at(self.ordinals[index])
            place = FilterLocation(self.row_groups[index], self.column, offset, length, own)
            found.append(place)
        return found


def read_chunk_fields(footer: Footer, column: int, row_groups: Sequence[int]) -> ChunkFields | None:
    """Return the fields of a column's chunks, or None if the steps must check them one by one.

    Raises KeyUnavailableError, or IntegrityError with row group and column.
    """
    plain, name = footer.plain, footer.columns.leaves[column].name
    offsets = footer.chunk_offsets[row_groups, column]
    found = read_chunks(plain, offsets, len(row_groups))
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
            opened = _opened(name, row_groups, cipher, ordinals, plain, modules)
            if opened is None:
                return None
            plain, inner = opened
            inner[:, layout.FILE_PATH] = fields[:, layout.FILE_PATH]
            fields = inner
    rows = footer.rows
    if not footer.columns.leaves[column].is_repeated and fields[:, layout.NUM_VALUES].tolist() != [
        rows[index] for index in row_groups
    ]:
        # The steps raise the error of a chunk that has not the rows of its row group.
        return None
    return ChunkFields(
        column=name,
        row_groups=row_groups,
        ordinals=ordinals,
        plain=plain,
        fields=fields,
        cipher=cipher,
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
