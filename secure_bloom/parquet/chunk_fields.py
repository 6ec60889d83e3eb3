"""Read a few fields of many column chunks, or page headers, as numbers, by the C extension alone.

Decoding each chunk into an object takes longer than most questions about it.  A row has the slots
named here.  A number has one slot. A text or a structure has two: its start and its end in the
bytes that were read.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, Final

from thrift.protocol.TProtocol import TType

from secure_bloom.kernels import extension
from secure_bloom.parquet.structures.metadata import (
    ColumnChunk,
    ColumnMetaData,
    PageHeader,
    PageType,
)
from secure_bloom.parquet.structures.wire_fields import WireType

NUM_VALUES: Final = 0
DATA_PAGE_OFFSET: Final = 1
DICTIONARY_PAGE_OFFSET: Final = 2
BLOOM_FILTER_OFFSET: Final = 3
BLOOM_FILTER_LENGTH: Final = 4
NULL_COUNT: Final = 5
MIN_VALUE: Final = 6
MAX_VALUE: Final = 8
MIN: Final = 10
MAX: Final = 12
PATH_IN_SCHEMA: Final = 14
FILE_PATH: Final = 16
CRYPTO_METADATA: Final = 18
ENCRYPTED_COLUMN_METADATA: Final = 20
DEFINITION_LEVEL_HISTOGRAM: Final = 22
SLOTS: Final = 24

#: Field of a ColumnMetaData -> its slot.
_OF_META_DATA: Final = {
    "path_in_schema": PATH_IN_SCHEMA,
    "num_values": NUM_VALUES,
    "data_page_offset": DATA_PAGE_OFFSET,
    "dictionary_page_offset": DICTIONARY_PAGE_OFFSET,
    "statistics.max": MAX,
    "statistics.min": MIN,
    "statistics.null_count": NULL_COUNT,
    "statistics.max_value": MAX_VALUE,
    "statistics.min_value": MIN_VALUE,
    "size_statistics.definition_level_histogram": DEFINITION_LEVEL_HISTOGRAM,
    "bloom_filter_offset": BLOOM_FILTER_OFFSET,
    "bloom_filter_length": BLOOM_FILTER_LENGTH,
}
_OF_COLUMN_CHUNK: Final = {
    "file_path": FILE_PATH,
    "crypto_metadata": CRYPTO_METADATA,
    "encrypted_column_metadata": ENCRYPTED_COLUMN_METADATA,
    **{f"meta_data.{name}": slot for name, slot in _OF_META_DATA.items()},
}
#: The slots of the extents that a column chunk names: where each is, and then its length.
EXTENT_SLOTS: Final = 10
_EXTENTS_OF: Final = {
    "meta_data.data_page_offset": 0,
    "meta_data.dictionary_page_offset": 1,
    "meta_data.total_compressed_size": 2,
    "meta_data.index_page_offset": 3,
    "meta_data.bloom_filter_offset": 4,
    "meta_data.bloom_filter_length": 5,
    "offset_index_offset": 6,
    "offset_index_length": 7,
    "column_index_offset": 8,
    "column_index_length": 9,
}
#: The slots of a page header; those of each kind of page come together in the first two.
PAGE_TYPE: Final = 0
PAGE_PLAIN_SIZE: Final = 1
PAGE_STORED_SIZE: Final = 2
PAGE_VALUES: Final = 3
PAGE_ENCODING: Final = 4
PAGE_IS_COMPRESSED: Final = 9
PAGE_LEVELS: Final = 10
PAGE_START: Final = 12
PAGE_BODY: Final = 13
PAGE_SLOTS: Final = 14
#: Type of a page -> the slot of its number of values; that of its encoding follows.
PAGE_COUNTS: Final = {
    PageType.DATA_PAGE: PAGE_VALUES,
    PageType.DICTIONARY_PAGE: 5,
    PageType.DATA_PAGE_V2: 7,
}
_OF_PAGE_HEADER: Final = {
    "type": PAGE_TYPE,
    "uncompressed_page_size": PAGE_PLAIN_SIZE,
    "compressed_page_size": PAGE_STORED_SIZE,
    "data_page_header.num_values": PAGE_VALUES,
    "data_page_header.encoding": PAGE_ENCODING,
    "dictionary_page_header.num_values": PAGE_COUNTS[PageType.DICTIONARY_PAGE],
    "dictionary_page_header.encoding": PAGE_COUNTS[PageType.DICTIONARY_PAGE] + 1,
    "data_page_header_v2.num_values": PAGE_COUNTS[PageType.DATA_PAGE_V2],
    "data_page_header_v2.encoding": PAGE_COUNTS[PageType.DATA_PAGE_V2] + 1,
    "data_page_header_v2.is_compressed": PAGE_IS_COMPRESSED,
    "data_page_header.definition_level_encoding": PAGE_LEVELS,
    "data_page_header.repetition_level_encoding": PAGE_LEVELS + 1,
}
_WIRE_TYPES: Final = {
    TType.BOOL: WireType.TRUE,
    TType.I16: WireType.I16,
    TType.I32: WireType.I32,
    TType.I64: WireType.I64,
    TType.STRING: WireType.BINARY,
    TType.LIST: WireType.LIST,
    TType.STRUCT: WireType.STRUCT,
}
#: Field ids of a structure in a table of the extension.
_FIELD_IDS: Final = 32


def _table(view: Any, wanted: Mapping[str, int], end: int | None = None) -> bytes:
    """Return the table that maps fields of ``view``, by dotted path, to their slots.

    ``end`` is the slot for where a structure ends.

    For each field id of each structure, the table has a wire type and an action: see ``footers.c``.
    """
    structures = [array("h", bytes(4 * _FIELD_IDS))]
    known = {"": (0, view)}
    for path, slot in wanted.items():
        names = path.split(".")
        for depth, name in enumerate(names):
            above, owner = known[".".join(names[:depth])]
            field = owner.FIELDS[name]
            action = slot + 1
            if depth + 1 < len(names):
                below = ".".join(names[: depth + 1])
                if below not in known:
                    known[below] = len(structures), field.kind.inner
                    structures.append(array("h", bytes(4 * _FIELD_IDS)))
                action = -known[below][0]
            entry = slice(2 * field.id, 2 * field.id + 2)
            structures[above][entry] = array("h", [_WIRE_TYPES[field.kind.ttype], action])
    structures[0][1] = 0 if end is None else end + 1
    return b"".join(structure.tobytes() for structure in structures)


_COLUMN_CHUNK: Final = _table(ColumnChunk, _OF_COLUMN_CHUNK)
_EXTENTS: Final = _table(ColumnChunk, _EXTENTS_OF)
_COLUMN_META_DATA: Final = _table(ColumnMetaData, _OF_META_DATA)
PAGE_HEADER: Final = _table(PageHeader, _OF_PAGE_HEADER, PAGE_BODY)


def read_chunks(plain: bytes, offsets: Any, count: int) -> memoryview | None:
    """Return a row for each ColumnChunk of ``plain``, or None if a chunk is damaged or unusual.

    ``offsets`` has ``count`` 64-bit integers.
    """
    return _read(plain, offsets, count, _COLUMN_CHUNK, is_run=False)


def read_extents(plain: bytes, offsets: Any, count: int) -> memoryview | None:
    """Return one row of offsets and lengths for each ColumnChunk encoded in ``plain``.

    An absent field is -2**63. Return None without the C extension, or for damaged or unusual
    chunks.
    """
    return _read(plain, offsets, count, _EXTENTS, is_run=False, slots=EXTENT_SLOTS)


def read_meta_data(plain: bytes, bounds: Any, count: int) -> memoryview | None:
    """Return a row for each ColumnMetaData, or None if one is damaged or unusual.

    ``bounds`` has start and end of each: the first is ``plain[bounds[0]:bounds[1]]``.
    """
    return _read(plain, bounds, count, _COLUMN_META_DATA, is_run=True)


def _read(
    plain: bytes, offsets: Any, count: int, table: bytes, *, is_run: bool, slots: int = SLOTS
) -> memoryview | None:
    if extension.native is None:
        return None
    rows = memoryview(bytearray(8 * slots * count)).cast("q")
    end = extension.native.read_fields(plain, offsets, is_run, table, slots, rows)
    return rows if end >= 0 else None
