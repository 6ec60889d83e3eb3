"""Values of a chunk as Arrow arrays, all decoded by pyarrow: what entries are held to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from secure_bloom.parquet import column_values
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.memory_files import StoredPages
from secure_bloom.storage import InputFile


class ChunkValues(NamedTuple):
    """Each value at least once, without nulls; at most ``upper_bound`` of them."""

    source: str
    upper_bound: int
    arrays: Iterator[pa.Array]


def read_values(file: InputFile, chunk: Chunk) -> ChunkValues:
    selection = column_values._select(file, chunk, takes_small=False)
    arrays = column_values._located(chunk, _arrays(chunk, selection))
    return ChunkValues(selection.source, selection.upper_bound, arrays)


def _arrays(chunk: Chunk, selection: column_values._Selection) -> Iterator[pa.Array]:
    if selection.is_whole:
        yield from column_values._whole(selection)
        return
    yield from column_values._dictionary_arrays(chunk, selection.dictionary)
    groups = column_values._groups(selection.data)
    yield from column_values._flat_arrays(chunk, map(StoredPages.of, groups))
