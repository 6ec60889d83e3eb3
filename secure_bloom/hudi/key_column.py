"""The record keys of a file: the values of its key column, row by row, without nulls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.errors import FormatError, UnsupportedFeatureError, located
from secure_bloom.hudi.record_keys.footer_entry import RECORD_KEY, KeyRange
from secure_bloom.hudi.record_keys.packed_keys import FROM_JAVA_ORDER, TO_JAVA_ORDER, PackedKeys
from secure_bloom.parquet.column_values import read_items
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.schema import select, unknown_column
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.storage import InputFile

#: What Arrow takes for the offset of a text.
_OFFSET_SIZE = 4


def key_ordinal(footer: Footer, column: str) -> int:
    """Return the ordinal of the key column.

    Raises an error for an unknown column, and for one that cannot hold record keys.
    """
    ordinals = select(footer.leaves, column)
    if not ordinals:
        raise unknown_column(column, (leaf.name for leaf in footer.leaves))
    leaf = footer.leaves[ordinals[0]]
    # A name may also select a struct with a single field: that is no key column.
    if leaf.name != column or leaf.type is not Type.BYTE_ARRAY or leaf.is_repeated:
        raise UnsupportedFeatureError(
            "the column cannot hold record keys: wanted one text in each row",
            hint="name a column of texts",
            column=column,
        )
    return ordinals[0]


def key_chunks(footer: Footer, column: str) -> Iterator[Chunk]:
    """Yield the key column's chunk of each row group."""
    ordinal = key_ordinal(footer, column)
    for row_group in range(len(footer.row_groups)):
        yield footer.chunk(row_group, ordinal)


def read_keys(file: InputFile, chunk: Chunk) -> Iterator[pa.Array]:
    """Yield the keys of one chunk, read from its data pages: dictionary arrays, or plain ones.

    The dictionary is not used alone, because it may have values that no row has. Raises
    UnsupportedFeatureError if Hudi's own key column has a null.
    """
    with located(row_group=chunk.row_group, column=chunk.leaf.name):
        # A key that is missed here would be missed by each lookup, so no count is taken on trust.
        if chunk.meta_data.num_values != chunk.num_rows:
            raise FormatError(
                f"ColumnMetaData.num_values is {chunk.meta_data.num_values}, "
                f"the row group has {chunk.num_rows} rows"
            )
    for items in read_items(file, chunk, as_dictionaries=True):
        if items.null_count and chunk.leaf.name == RECORD_KEY:
            raise _no_record_key(chunk)
        yield items.drop_null()


def distinct(keys: pa.Array) -> pa.Array:
    """Return each key of a dictionary array once. Return a plain array unchanged."""
    return keys.unique().dictionary_decode() if pa.types.is_dictionary(keys.type) else keys


def decoded_size(keys: pa.Array) -> int:
    """Return the bytes that the keys take without a dictionary."""
    if not pa.types.is_dictionary(keys.type):
        return int(keys.nbytes)
    lengths = pc.binary_length(keys.dictionary).take(keys.indices)
    return int(pc.sum(lengths).as_py() or 0) + len(keys) * _OFFSET_SIZE


def _no_record_key(chunk: Chunk) -> UnsupportedFeatureError:
    # Hudi tables may leave meta fields empty, and then the keys are in columns of the table alone.
    return UnsupportedFeatureError(
        "rows have no record key: the column is null",
        hint="name the column that has the keys: --column NAME; a key that is made of several "
        "columns is in none of them",
        row_group=chunk.row_group,
        column=RECORD_KEY,
    )


def packed(array: pa.Array) -> PackedKeys:
    """Return the keys of an array without nulls. Raises FormatError if a key is not UTF-8."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    try:
        # The second cast checks UTF-8; what it gives is not needed.
        array.cast(pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        # The cause is left out: its text quotes the key.
        raise FormatError("a record key is not UTF-8") from None
    _, offsets, data = array.cast(pa.large_binary()).buffers()
    every = np.frombuffer(offsets, "<i8")[array.offset : array.offset + len(array) + 1]
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return PackedKeys(offsets=every, data=content)


def key_range(parts: list[PackedKeys]) -> KeyRange | None:
    """Return the smallest and the largest of all keys, or None if there is no key."""
    ends = [end for keys in parts if len(keys) for end in _ends(keys)]
    if not ends:
        return None
    # Compared as Java compares strings, and only then turned back into UTF-8.
    smallest, largest = (end.translate(FROM_JAVA_ORDER).decode() for end in (min(ends), max(ends)))
    return KeyRange(min_key=smallest, max_key=largest)


def _ends(keys: PackedKeys) -> tuple[bytes, bytes]:
    """Return the smallest and the largest key in the order of ``java_order``."""
    ordered = np.frombuffer(TO_JAVA_ORDER, np.uint8)[keys.data]
    buffers = [None, pa.py_buffer(keys.offsets), pa.py_buffer(ordered)]
    # Arrow compares bytes as unsigned numbers, so with the bytes exchanged this is Java's order.
    ends = pc.min_max(pa.Array.from_buffers(pa.large_binary(), len(keys), buffers))
    return ends["min"].as_py(), ends["max"].as_py()
