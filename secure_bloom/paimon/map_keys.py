"""The values of one key of a map column: its two leaves read side by side."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.errors import FormatError, located
from secure_bloom.parquet.arrow_decoding import decode_items
from secure_bloom.parquet.footer import Chunk
from secure_bloom.parquet.pages import read_pages
from secure_bloom.storage import InputFile


def read_map_values(file: InputFile, key: Chunk, value: Chunk, map_key: str) -> Iterator[pa.Array]:
    """The values that stand beside ``map_key``, nulls left out, an Arrow array for each batch."""
    wanted = pa.scalar(map_key.encode(), pa.binary())
    # The pages of keys and values end at different rows; their batches of rows do not.
    for keys, values in zip(_items(file, key), _items(file, value), strict=True):
        if len(keys) != len(values):
            raise FormatError(
                f"a map has {len(keys)} keys and {len(values)} values",
                row_group=value.row_group,
                column=value.leaf.name,
            )
        yield values.filter(pc.equal(keys, wanted)).drop_null()


def _items(file: InputFile, chunk: Chunk) -> Iterator[pa.Array]:
    with located(row_group=chunk.row_group, column=chunk.leaf.name):
        if chunk.num_rows == 0:
            return
        # pyarrow takes an empty data page for the end of the chunk.
        pages = [page for page in read_pages(file, chunk) if page.is_dictionary or page.num_values]
        yield from decode_items(
            chunk.leaf,
            chunk.codec,
            pages,
            rows=chunk.num_rows,
            has_dictionary=any(page.is_dictionary for page in pages),
        )
