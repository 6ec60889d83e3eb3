"""Find the values of PLAIN pages of flat columns in place, without making Arrow arrays.

Most values of filters are in such pages, and hashing a value needs only its start and its length.
pyarrow decodes all other pages.  These functions return ``None`` for any other page. They never
guess.  Parquet, "Data Pages" and "Encodings".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from secure_bloom.errors import FormatError
from secure_bloom.kernels import extension
from secure_bloom.kernels.loops import DAMAGED, byte_array_offsets, count_level
from secure_bloom.parquet.decompression import decompressed, is_decompressed_here
from secure_bloom.parquet.pages import Page
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import (
    CompressionCodec,
    Encoding,
    FieldRepetitionType,
    PageType,
)
from secure_bloom.parquet.value_arrays import Binary, EncodedValues, Entries, fixed_type

if TYPE_CHECKING:
    import pyarrow as pa

_LENGTH_SIZE = 4
_MAX_BIT_WIDTH = 8
#: The encodings that levels of a page of version 1 may name, if the column has levels, or has none.
_OF_LEVELS, _OF_NO_LEVELS = {Encoding.RLE}, {Encoding.RLE, Encoding.BIT_PACKED}


def plain_entries(leaf: Leaf, codec: CompressionCodec, page: Page) -> Entries | None:
    """Return the values of a page without nulls, or None if pyarrow must decode the page."""
    values = plain_values(leaf, codec, page)
    if values is None:
        return None
    return _arrays(leaf, values)


def as_arrays(leaf: Leaf, values: Entries | EncodedValues) -> Entries:
    """Return the values of :func:`encoded_entries` as arrays."""
    arrays = _arrays(leaf, values) if isinstance(values, EncodedValues) else values
    if arrays is None:
        raise FormatError("the values of a page changed after they were counted")
    return arrays


def _arrays(leaf: Leaf, values: EncodedValues) -> Entries | None:
    entries = _byte_arrays if values.width is None else _fixed
    return entries(leaf, values.content, values.count)


#: Given to the extension if only the end of the values is wanted.
_NO_OFFSETS = np.empty(0, np.int64)


def encoded_entries(
    leaf: Leaf, codec: CompressionCodec, page: Page
) -> Entries | EncodedValues | None:
    """Return the values of a page without nulls, or None if pyarrow must decode the page.

    With the C extension the values stay encoded. They are counted and checked, so that the
    extension can insert them into a filter in place.
    """
    native = extension.native
    if native is None:
        return plain_entries(leaf, codec, page)
    values = plain_values(leaf, codec, page)
    if values is None:
        return None
    if values.width is None:
        end = native.byte_array_offsets(values.content, values.count, _NO_OFFSETS)
    else:
        end = values.count * values.width
    # Bytes that are left would be values that the page's header does not count.
    return values if end == len(values.content) else None


def plain_values(leaf: Leaf, codec: CompressionCodec, page: Page) -> EncodedValues | None:
    """Return the values of a data page or a dictionary page, as they are encoded.

    Return None where :func:`plain_entries` does.
    """
    return encoded_values(leaf, codec, page) if is_plain(page) else None


def encoded_values(leaf: Leaf, codec: CompressionCodec, page: Page) -> EncodedValues | None:
    """Return what :func:`plain_values` returns, for a page of any encoding."""
    body = page_body(leaf, codec, page)
    if body is None:
        return None
    return EncodedValues(content=body[1], count=body[2], width=leaf.width)


#: A page of a flat column, decompressed: its definition levels, its values as they are encoded, and
#: the number of these.  Null values are not among them.
PageBody = tuple[NDArray[np.uint8], NDArray[np.uint8], int]


def page_body(leaf: Leaf, codec: CompressionCodec, page: Page) -> PageBody | None:
    """Return the decompressed page, or None for a page of an unexpected form."""
    if not is_decompressed_here(codec) or leaf.is_repeated:
        return None
    body, values = page.body(), page.num_values
    try:
        if page.type == PageType.DICTIONARY_PAGE:
            content = np.frombuffer(decompressed(codec, body, page.uncompressed_size), np.uint8)
            return _NO_LEVELS, content, values
        parts = _levels_and_values(leaf, codec, page, body)
    except FormatError:
        # pyarrow then decodes the page, or says what is wrong with it.
        return None
    count = None if parts is None else _count_defined(leaf.max_definition_level, parts[0], values)
    return None if parts is None or count is None else (*parts, count)


_NO_LEVELS = np.empty(0, np.uint8)


def begun_rows(leaf: Leaf, codec: CompressionCodec, page: Page) -> tuple[int, bool] | None:
    """Return how many rows begin in a data page of a repeated column, and whether it starts so.

    In a page of version 1 the first values may belong to a row of the page before.  Return None for
    a page of an unexpected form.
    """
    levels = _repetition_levels(codec, page)
    width = leaf.repetitions.count(FieldRepetitionType.REPEATED).bit_length()
    if levels is None or width > _MAX_BIT_WIDTH:
        return None
    # A row begins with repetition level 0.
    rows = count_level(levels, width, 0, page.num_values)
    return None if rows == DAMAGED else (rows, count_level(levels, width, 0, 1) == 1)


def _repetition_levels(codec: CompressionCodec, page: Page) -> NDArray[np.uint8] | None:
    """Return the repetition levels of a data page, which come first in its body."""
    body = page.body()
    if page.type == PageType.DATA_PAGE_V2:
        detail = page.header.data_page_header_v2
        length = -1 if detail is None else detail.repetition_levels_byte_length
        return _bytes(body[:length]) if 0 <= length <= len(body) else None
    encodings = page.level_encodings
    if encodings is None or encodings[1] != Encoding.RLE or not is_decompressed_here(codec):
        return None
    content = _bytes(decompressed(codec, body, page.uncompressed_size))
    end = _LENGTH_SIZE + int.from_bytes(content[:_LENGTH_SIZE].tobytes(), "little")
    return content[_LENGTH_SIZE:end] if end <= len(content) else None


def is_plain(page: Page) -> bool:
    """Return whether the page's values are in PLAIN encoding."""
    # In dictionary pages PLAIN_DICTIONARY is the older name of PLAIN (Encodings.md).
    return page.encoding is Encoding.PLAIN or (
        page.is_dictionary and page.encoding is Encoding.PLAIN_DICTIONARY
    )


def _levels_and_values(
    leaf: Leaf, codec: CompressionCodec, page: Page, body: bytes | memoryview
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]] | None:
    """Return the definition levels and the values of a page, both decompressed.

    Return None if the page has an unexpected form.
    """
    size, detail = page.uncompressed_size, None
    if page.type != PageType.DATA_PAGE:
        detail = page.header.data_page_header_v2
    if detail is None:
        encodings, is_required = page.level_encodings, leaf.max_definition_level == 0
        if encodings is None or encodings[1] not in _OF_NO_LEVELS:
            return None
        # Writers name either encoding for levels that a column does not have.
        if encodings[0] not in (_OF_NO_LEVELS if is_required else _OF_LEVELS):
            return None
        content = np.frombuffer(decompressed(codec, body, size), np.uint8)
        if is_required:
            return _NO_LEVELS, content
        end = _LENGTH_SIZE + int.from_bytes(content[:_LENGTH_SIZE].tobytes(), "little")
        return (content[_LENGTH_SIZE:end], content[end:]) if end <= len(content) else None
    # A flat column has a row for each value, and pyarrow takes a page without either number for
    # damage.
    if detail.num_rows != page.num_values or detail.num_nulls < 0:
        return None
    levels = detail.definition_levels_byte_length
    # A flat column has no repetition levels, so bytes for some contradict the schema.
    if detail.repetition_levels_byte_length != 0 or not 0 <= levels <= len(body):
        return None
    # Absent means true (parquet.thrift, DataPageHeaderV2).
    is_compressed = detail.is_compressed is not False
    # Levels of a version 2 page are never compressed.
    values = body[levels:]
    # A page of nulls has no values, and an empty body is not what a codec wrote.
    if is_compressed and len(values):
        return _bytes(body[:levels]), _bytes(decompressed(codec, values, size - levels))
    return _bytes(body[:levels]), _bytes(values)


def _bytes(buffer: bytes | memoryview | pa.Buffer) -> NDArray[np.uint8]:
    return np.frombuffer(buffer, dtype=np.uint8)


def _count_defined(highest: int, levels: NDArray[np.uint8], values: int) -> int | None:
    """Return the number of a page's values that are not null, by the highest definition level."""
    if highest == 0:
        return values
    # The kernel reads levels of one byte; pyarrow decodes columns that nest deeper.
    if highest.bit_length() > _MAX_BIT_WIDTH:
        return None
    # Levels are packed in as many bits as the highest one needs (Encodings.md, "RLE").
    count = count_level(levels, highest.bit_length(), highest, values)
    return None if count == DAMAGED else count


def _fixed(leaf: Leaf, values: NDArray[np.uint8], count: int) -> Entries | None:
    dtype = fixed_type(leaf)
    # If bytes are left, the page holds values that its header does not count.
    if len(values) != count * dtype.itemsize:
        return None
    return np.frombuffer(values, dtype=dtype, count=count)


def _byte_arrays(_leaf: Leaf, values: NDArray[np.uint8], count: int) -> Entries | None:
    # Checked before an array is made for ``count`` values: each takes its length's bytes at least.
    if len(values) < count * _LENGTH_SIZE:
        return None
    offsets = np.empty(count + 1, np.int64)
    end = byte_array_offsets(values, offsets)
    # Bytes that are left would be values that the header does not count.
    if end != len(values):
        return None
    return Binary(offsets=offsets, data=values, prefix=_LENGTH_SIZE)
