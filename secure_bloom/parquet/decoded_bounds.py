"""Compute, from pages, an upper bound of the decoded size of their values.

In some encodings a few bytes expand to many: a run of a billion equal values, a dictionary with an
entry of a megabyte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from secure_bloom.parquet.dictionary_pages import DICTIONARY_ENCODINGS
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.pages import Page
from secure_bloom.parquet.plain_pages import plain_entries
from secure_bloom.parquet.structures.metadata import Encoding
from secure_bloom.parquet.value_arrays import Binary
from secure_bloom.running.memory_budget import memory_budget

if TYPE_CHECKING:
    from secure_bloom.parquet.page_rows import PageRows

#: This part of the budget, 256 MiB by default, is decoded in one piece without a closer look.
_HARMLESS = 4
#: What a text takes beside its bytes: where it starts.
OFFSET_SIZE = 8


def harmless_size(budget: int | None = None) -> int:
    """Return how many bytes may be decoded in one piece.

    ``budget`` is the memory budget, if known.
    """
    return (memory_budget() if budget is None else budget) // _HARMLESS


def size_of_pages(chunk: Chunk, pages: Sequence[Page]) -> int:
    """Return an upper bound of the decoded size of these pages, with the dictionary page first."""
    return measured(chunk, pages, harmless_size())[0]


def size_of_rows(chunk: Chunk, pages: Iterable[PageRows]) -> int:
    """Return an upper bound of the decoded size of pages that are rows of numbers.

    An entry of a dictionary counts as long as the whole dictionary.
    """
    size = largest = entry = 0
    for rows in pages:
        content, values = rows.plain_sizes, rows.values
        largest = max(largest, int(content.max()))
        if not rows.is_data[0]:
            entry = int(content[0])
        if chunk.leaf.width is not None:
            longest = np.full_like(content, chunk.leaf.width + 1)
        else:
            # See `_values_size`; each product fits, as sizes are within the budget.
            repeated = np.isin(rows.encodings, [it.value for it in DICTIONARY_ENCODINGS])
            begun = rows.encodings == Encoding.DELTA_BYTE_ARRAY
            longest = np.where(repeated, entry, np.where(begun, content, 0)) + OFFSET_SIZE
            size += sum(content[rows.is_data & ~repeated & ~begun].tolist())
        size += sum((values * longest)[rows.is_data].tolist())
    return largest + size


def measured(chunk: Chunk, pages: Sequence[Page], harmless: int) -> tuple[int, Binary | None]:
    """Return the size of the pages, and the dictionary's entries if they were decompressed.

    They are decompressed if the length of one entry could make the size larger than ``harmless``.
    """
    size = _sum(chunk, pages, None)
    entries = _entries(chunk, pages) if size > harmless else None
    if entries is None:
        return size, None
    return _sum(chunk, pages, entries.longest), entries


def heaviest_value(chunk: Chunk, pages: Sequence[Page], harmless: int) -> int:
    """Return about how many bytes a value takes at most when decoded.

    The size of a value is the average over its page. A dictionary is decompressed if the length of
    an entry could be more than ``harmless``.
    """
    found = _heaviest(chunk, pages, None)
    entries = _entries(chunk, pages) if found > harmless else None
    if entries is None:
        return found
    return _heaviest(chunk, pages, entries.longest)


def _heaviest(chunk: Chunk, pages: Sequence[Page], longest: int | None) -> int:
    sizes = _sizes(chunk, pages, longest)
    return max((-(-size // max(count, 1)) for count, size in sizes), default=0)


def _sizes(chunk: Chunk, pages: Sequence[Page], longest: int | None) -> Iterator[tuple[int, int]]:
    """Yield for each data page the number of its values and their largest possible size."""
    entry = 0
    for page in pages:
        content = max(page.uncompressed_size, 0)
        if page.is_dictionary:
            entry = content if longest is None else longest
        else:
            yield page.num_values, _values_size(chunk, page, content, entry)


def _sum(chunk: Chunk, pages: Sequence[Page], longest: int | None) -> int:
    """Return an upper bound of the decoded size of the pages.

    No entry of the dictionary is longer than ``longest``. If that is None, an entry may be as long
    as the whole dictionary.
    """
    largest = max((max(page.uncompressed_size, 0) for page in pages), default=0)
    return largest + sum(size for _, size in _sizes(chunk, pages, longest))


def _values_size(chunk: Chunk, page: Page, content: int, entry: int) -> int:
    width = chunk.leaf.width
    if width is not None:
        return page.num_values * (width + 1)
    offsets = page.num_values * OFFSET_SIZE
    if page.encoding in DICTIONARY_ENCODINGS:
        return page.num_values * entry + offsets
    if page.encoding is Encoding.DELTA_BYTE_ARRAY:
        # Each value may begin with all of the one before it.
        return page.num_values * content + offsets
    return content + offsets


def _entries(chunk: Chunk, pages: Sequence[Page]) -> Binary | None:
    """Return the entries of the only dictionary page, or None if they cannot be read here."""
    dictionaries = [page for page in pages if page.is_dictionary]
    if len(dictionaries) != 1:
        return None
    # A dictionary page has no levels, also of a list.
    entries = plain_entries(chunk.leaf.required, chunk.meta_data.codec, dictionaries[0])
    return entries if isinstance(entries, Binary) and len(entries) else None
