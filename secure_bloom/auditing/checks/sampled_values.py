"""Checks that read the values of a chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np

from secure_bloom.auditing.checks.subjects import ChunkSubject, Findings
from secure_bloom.auditing.rules.filter_rules import FILTER_WRONG
from secure_bloom.auditing.rules.unchecked_rules import UNCHECKED_VALUES
from secure_bloom.bloom.entries import count_missed, insert_entries
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.column_values import read_encoded, read_entries, read_items, read_sample
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.logical_arrays import logical_array
from secure_bloom.parquet.pages import read_pages
from secure_bloom.parquet.value_arrays import Entries, as_entries
from secure_bloom.storage import InputFile

#: A chunk with more bytes, stored or decompressed, is not searched for a zero.
_MOST_READ = 64 * 1024 * 1024


def check_values(
    subject: ChunkSubject, chunk: Chunk, bloom_filter: SplitBlockBloomFilter
) -> Findings:
    """Check that the filter has all values of the chunk."""
    file = subject.of.file
    try:
        # Rarely are values missed, and entries of a dictionary need not be values of a row.
        is_wrong = _misses_any(bloom_filter, read_entries(file, chunk).entries) and _misses_any(
            bloom_filter, _of_rows(file, chunk)
        )
    except SecureBloomError as error:
        yield subject.finding(UNCHECKED_VALUES, error.message)
        return
    if is_wrong:
        yield subject.finding(FILTER_WRONG, "the filter does not have values of its column")


def _misses_any(bloom_filter: SplitBlockBloomFilter, values: Iterable[Entries]) -> bool:
    # A zero of the other sign is no value of the column: its absence is a finding of its own.
    return any(count_missed(bloom_filter, one, both_zeros=False) for one in values)


def _of_rows(file: InputFile, chunk: Chunk) -> Iterator[Entries]:
    for items in read_items(file, chunk):
        yield as_entries(chunk.leaf, items.drop_null())


def has_foreign_bits(file: InputFile, chunk: Chunk, bloom_filter: SplitBlockBloomFilter) -> bool:
    """Return whether a filter has bits that no value of its chunk sets, in any of its forms.

    Raises the errors of reading the values.
    """
    made = SplitBlockBloomFilter(bloom_filter.block_count)
    for entries in read_encoded(file, chunk).entries:
        insert_entries(made, chunk.leaf, entries)
    bits, explained = (np.frombuffer(it.to_bytes(), np.uint64) for it in (bloom_filter, made))
    return bool((bits & ~explained).any())


def first_texts(file: InputFile, chunk: Chunk) -> Iterator[str]:
    """Yield the texts of the chunk's first page that are UTF-8, and its numbers as texts."""
    for entries in read_sample(file, chunk):
        for value in logical_array(chunk.leaf, entries).to_pylist():
            with suppress(UnicodeDecodeError):
                yield value.decode() if isinstance(value, bytes) else str(value)


def has_zero(file: InputFile, chunk: Chunk) -> bool | None:
    """Return whether the chunk holds a zero.

    Return None if its values cannot be read, or are too many.
    """
    if chunk.meta_data.total_compressed_size > _MOST_READ:
        return None
    try:
        pages = read_pages(file, chunk)
        if sum(page.uncompressed_size for page in pages) > _MOST_READ:
            return None
        entries = read_entries(file, chunk).entries
        return any(isinstance(part, np.ndarray) and bool((part == 0).any()) for part in entries)
    except SecureBloomError:
        return None
