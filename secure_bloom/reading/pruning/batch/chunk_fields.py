"""Read what a lookup needs of all chunks of one column of a file, as rows of numbers.

To decode each chunk's metadata into an object takes longer than to prune the chunk.  This module
imports compiled code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from thrift.protocol.TProtocol import TType

from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.column_cipher import ColumnCipher
from secure_bloom.errors import located
from secure_bloom.kernels import chunks as layout
from secure_bloom.kernels import fields as kernels
from secure_bloom.parquet.structures.metadata import (
    ColumnChunk,
    ColumnCryptoMetaData,
    ColumnMetaData,
)
from secure_bloom.parquet.structures.records import decode_record
from secure_bloom.reading.lockstep import Job
from secure_bloom.reading.pruning.filter_reads import FilterLocation
from secure_bloom.reading.table.footer import FileFooter


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkFields:
    """A row of ``fields`` for each of ``row_groups``.

    :mod:`secure_bloom.kernels.chunks` names the slots of a row.  A text has two: its offsets in
    ``plain``.
    """

    column: str
    row_groups: Sequence[int]
    plain: bytes
    fields: NDArray[np.int64]
    ciphers: Sequence[ColumnCipher] | None = None

    @property
    def filters(self) -> NDArray[np.int64]:
        """Offset and length of each chunk's filter, below zero where it has none."""
        return self.fields[:, layout.BLOOM_FILTER_OFFSET : layout.BLOOM_FILTER_LENGTH + 1]

    def filter_locations(self, indices: Sequence[int]) -> list[FilterLocation]:
        """The places of the filters of the chunks at ``indices``, and their ciphers."""
        ciphers, found = self.ciphers, []
        for index, (offset, length) in zip(indices, self.filters[indices].tolist(), strict=True):
            cipher = None if ciphers is None else ciphers[index]
            place = FilterLocation(self.row_groups[index], self.column, offset, length, cipher)
            found.append(place)
        return found


def read_chunk_fields(
    footer: FileFooter, column: int, row_groups: Sequence[int]
) -> Job[ChunkFields | None]:
    """The chunks of a column; None where the steps must look at them one by one.

    Raises KeyUnavailableError or IntegrityError, the latter with row group and column.
    """
    starts = footer.chunk_offsets(column, row_groups)
    name, plain = footer.columns.leaves[column].name, footer.plain
    fields = _read(plain, starts, np.full_like(starts, len(plain)), _COLUMN_CHUNK)
    yield
    if fields is None:
        return None
    if not (fields[:, layout.CRYPTO_METADATA] >= 0).any():
        return ChunkFields(column=name, row_groups=row_groups, plain=plain, fields=fields)
    crypto = _extents(plain, fields, layout.CRYPTO_METADATA)
    ciphers = yield from _ciphers(footer, column, row_groups, crypto)
    if ciphers is None:
        return None
    modules = _extents(plain, fields, layout.ENCRYPTED_COLUMN_METADATA)
    found: tuple[bytes, NDArray[np.int64]] | None = (plain, fields)
    if any(module is not None for module in modules):
        found = yield from _decrypted(name, fields, ciphers, modules)
    if found is None:
        return None
    return ChunkFields(
        column=name,
        row_groups=row_groups,
        plain=found[0],
        fields=found[1],
        ciphers=list(ciphers.values()),
    )


def _ciphers(
    footer: FileFooter, column: int, row_groups: Sequence[int], crypto: Sequence[bytes | None]
) -> Job[dict[int, ColumnCipher] | None]:
    """The cipher of each chunk; None where the steps must look at them one by one."""
    # One key for all chunks is the usual case; with several the steps take over.
    if crypto[0] is None or any(one != crypto[0] for one in crypto):
        return None
    said = decode_record(ColumnCryptoMetaData, crypto[0])
    yield
    first = footer.cipher(row_groups[0], column, said)
    if first is None:
        return None
    yield
    ordinals = footer.row_groups.ordinals
    return {index: first.at(ordinals[index]) for index in row_groups}


def _decrypted(
    column: str,
    outer: NDArray[np.int64],
    ciphers: Mapping[int, ColumnCipher],
    modules: Sequence[bytes | None],
) -> Job[tuple[bytes, NDArray[np.int64]] | None]:
    """Decrypt metadata that are modules of their own, and read their fields."""
    yield
    found = []
    for (index, cipher), module in zip(ciphers.items(), modules, strict=True):
        if module is None:
            return None
        with located(row_group=index, column=column):
            found.append(cipher.decrypt(ModuleType.COLUMN_META_DATA, module))
    yield
    plain = b"".join(found)
    bounds = np.cumsum([0, *map(len, found)], dtype=np.int64)
    fields = _read(plain, bounds[:-1], bounds[1:], _COLUMN_META_DATA)
    if fields is None:
        return None
    fields[:, layout.FILE_PATH] = outer[:, layout.FILE_PATH]
    return plain, fields


def _read(
    plain: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64], table: kernels.Table
) -> NDArray[np.int64] | None:
    """A row of fields for each structure; None if one is malformed or unusual."""
    found = np.empty((len(starts), layout.PLACES), np.int64)
    data = np.frombuffer(plain, np.uint8)
    is_whole = kernels.read_structures(data, starts, ends, table, found)
    return found if is_whole else None


def _extents(plain: bytes, fields: NDArray[np.int64], place: int) -> list[bytes | None]:
    """The bytes of one field of each chunk, None where it is absent."""
    return [
        None if start < 0 else plain[start:end]
        for start, end in fields[:, place : place + 2].tolist()
    ]


#: Field of a ColumnMetaData -> its slot.
_OF_META_DATA = {
    "path_in_schema": layout.PATH_IN_SCHEMA,
    "num_values": layout.NUM_VALUES,
    "data_page_offset": layout.DATA_PAGE_OFFSET,
    "dictionary_page_offset": layout.DICTIONARY_PAGE_OFFSET,
    "statistics.max": layout.MAX,
    "statistics.min": layout.MIN,
    "statistics.null_count": layout.NULL_COUNT,
    "statistics.max_value": layout.MAX_VALUE,
    "statistics.min_value": layout.MIN_VALUE,
    "size_statistics.definition_level_histogram": layout.DEFINITION_LEVEL_HISTOGRAM,
    "bloom_filter_offset": layout.BLOOM_FILTER_OFFSET,
    "bloom_filter_length": layout.BLOOM_FILTER_LENGTH,
}
_OF_COLUMN_CHUNK = {
    "file_path": layout.FILE_PATH,
    "crypto_metadata": layout.CRYPTO_METADATA,
    "encrypted_column_metadata": layout.ENCRYPTED_COLUMN_METADATA,
    **{f"meta_data.{name}": place for name, place in _OF_META_DATA.items()},
}

_WIRE_TYPES = {
    TType.I16: kernels.I16_TYPE,
    TType.I32: kernels.I32_TYPE,
    TType.I64: kernels.I64_TYPE,
    TType.STRING: kernels.BINARY,
    TType.LIST: kernels.LIST,
    TType.STRUCT: kernels.STRUCT,
}


def _table(view: Any, wanted: Mapping[str, int]) -> kernels.Table:
    """The table by which the kernel enters fields of ``view``, by dotted path, in their slots."""
    structures = [np.zeros((kernels.FIELD_IDS, 2), np.int16)]
    known = {"": (0, view)}
    for path, place in wanted.items():
        names = path.split(".")
        for depth, name in enumerate(names):
            above, owner = known[".".join(names[:depth])]
            field = owner.FIELDS[name]
            action = place + 1
            if depth + 1 < len(names):
                below = ".".join(names[: depth + 1])
                if below not in known:
                    known[below] = len(structures), field.kind.inner
                    structures.append(np.zeros_like(structures[0]))
                action = -known[below][0]
            structures[above][field.id] = _WIRE_TYPES[field.kind.ttype], action
    return np.stack(structures)


_COLUMN_CHUNK = _table(ColumnChunk, _OF_COLUMN_CHUNK)
_COLUMN_META_DATA = _table(ColumnMetaData, _OF_META_DATA)
