"""Values of a chunk as Arrow arrays, all decoded by pyarrow: what entries are held to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from secure_bloom.parquet import column_values
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.storage import InputFile


class ChunkValues(NamedTuple):
    """Each value at least once, without nulls; at most ``upper_bound`` of them."""

    source: str
    upper_bound: int
    arrays: Iterator[pa.Array]


def read_values(file: InputFile, chunk: Chunk) -> ChunkValues:
    selection = column_values._select(file, chunk)
    arrays = column_values._located(chunk, column_values._arrays(selection))
    return ChunkValues(selection.source, selection.upper_bound, arrays)
