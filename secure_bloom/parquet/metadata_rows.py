"""Read Parquet files that belong to the metadata of a table, within the memory budget.

    for batch in metadata_rows(path, content, decoded, columns=...):    checkpoints, delete files

pyarrow decodes the rows.  The page headers decide how many rows pyarrow decodes at once, and
whether it decodes them at all, because the sizes in a footer may be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.parquet.arrow_schemas import check_arrow_texts
from secure_bloom.parquet.decoded_bounds import OFFSET_SIZE, harmless_size, measured
from secure_bloom.parquet.dictionary_pages import read_headers
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import Footer, read_footer
from secure_bloom.running.memory_budget import DecodedBytes, MemoryBudgetError, refuse_beyond
from secure_bloom.storage.inputs import BytesFile

#: What a row takes at least, and an element of a list, or a member of a row, as a value of Python.
_ROW, _ELEMENT = 64, 64
#: Each member of a row costs time, also where it is null. Rows have a few dozen members; further
#: ones count, with this number of bytes.
_USUAL_MEMBERS, _FURTHER = 64, 16
#: A batch takes this part of what is harmless: readers hold its rows again as values of Python.
_PARTS = 8

Choose = Callable[[pa.Schema], Sequence[str] | None]


def metadata_rows(
    path: str,
    content: bytes,
    decoded: DecodedBytes,
    choose: Choose,
    *,
    most_rows: int = 10_000,
    dictionaries: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches.

    ``choose`` returns the columns to read. If it returns None, the file is not read.  ``decoded``
    counts the bytes of all batches.  The columns ``dictionaries`` stay dictionaries, so that each
    of their texts counts once.

    Raises MemoryBudgetError for rows that take more than the budget, and FormatError for a file
    that cannot be read.
    """
    file = BytesFile(path, content)
    try:
        footer = read_footer(file, KeyResolver(None), SchemaCache())
        check_arrow_texts(mark.value for mark in footer.columns.marks)
        source = pq.ParquetFile(pa.BufferReader(content), read_dictionary=list(dictionaries))
        columns = choose(source.schema_arrow)
        if columns is None:
            return
        leaves = _ordinals(footer, columns)
        of_row = _ROW + _FURTHER * max(0, len(leaves) - _USUAL_MEMBERS)
        for number, rows in enumerate(footer.rows):
            size = rows * len(leaves) * _ELEMENT
            for ordinal in leaves:
                chunk = footer.chunk(number, ordinal)
                size += _chunk_size(file, chunk, is_dictionary=chunk.leaf.name in dictionaries)
            refuse_beyond(size // max(rows, 1), "a row of the metadata")
            at_once = max(1, min(most_rows, harmless_size() // _PARTS * rows // max(size, 1)))
            for batch in source.iter_batches(
                at_once, row_groups=[number], columns=columns, use_threads=False
            ):
                decoded.add(batch.nbytes + of_row * batch.num_rows)
                yield batch
    except MemoryBudgetError:
        raise
    # pyarrow raises KeyError for some maps, and UnicodeDecodeError for a text that is not UTF-8.
    # Without the text, which may quote values.
    except (SecureBloomError, pa.ArrowException, OSError, KeyError, ValueError) as exc:
        raise FormatError(f"{decoded.what} cannot be read as Parquet") from exc


def _ordinals(footer: Footer, columns: Sequence[str]) -> list[int]:
    """Return the ordinals of the leaves in these columns, given by their dotted names."""
    wanted = frozenset(columns)
    return [
        ordinal
        for ordinal, leaf in enumerate(footer.leaves)
        if not wanted.isdisjoint(accumulate(leaf.path, "{}.{}".format))
    ]


def _chunk_size(file: BytesFile, chunk: Chunk, *, is_dictionary: bool) -> int:
    pages = list(read_headers(file, chunk))
    values = sum(page.num_values for page in pages if not page.is_dictionary)
    if is_dictionary:
        return sum(page.uncompressed_size for page in pages) + values * OFFSET_SIZE
    size, _ = measured(chunk, pages, harmless_size())
    if chunk.leaf.is_repeated:
        # The elements of one row are decoded together, however many they are.
        size += values * _ELEMENT
        refuse_beyond(size, "the lists of the metadata")
    return size
