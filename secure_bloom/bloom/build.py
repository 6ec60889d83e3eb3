"""Build the filter of a column chunk's values, or check an existing filter against them.

A filter is built large enough for as many distinct values as there are values.  Then it is folded
in halves as long as the exact false-positive probability of its bits stays within the request.
Hence nobody has to count distinct values first.
"""

from __future__ import annotations

from dataclasses import dataclass

from secure_bloom.bloom.entries import count_missed, forms, insert_entries
from secure_bloom.bloom.sizing import block_count_for
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.calling.options import BloomFilterOptions
from secure_bloom.parquet.column_values import ChunkEntries
from secure_bloom.parquet.plain_pages import as_arrays
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.value_arrays import EncodedValues, Entries


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltFilter:
    """A filter, the number of values inserted into it, and their source.

    ``missed`` counts the values that the replaced filter lacked.  If there are any, queries lost
    rows because of the old filter.
    """

    filter: SplitBlockBloomFilter
    values: int
    source: str
    missed: int


def build_filter(
    leaf: Leaf,
    values: ChunkEntries[Entries | EncodedValues],
    options: BloomFilterOptions,
    *,
    old: SplitBlockBloomFilter | None = None,
) -> BuiltFilter:
    """Return the smallest filter of ``values`` that stays within ``options``.

    Consumes ``values.entries``.
    """
    # An upper bound of the distinct values: a filter that is too large is folded below, one that is
    # too small cannot be unfolded.
    bound = values.upper_bound * forms(leaf)
    blocks = block_count_for(bound, options.fpp, options.max_bytes)
    bloom_filter = SplitBlockBloomFilter(blocks)
    count = missed = 0
    for entries in values.entries:
        insert_entries(bloom_filter, leaf, entries)
        count += len(entries)
        # While the values are in memory: to read them again would cost as much as building.
        missed += 0 if old is None else count_missed(old, as_arrays(leaf, entries))
    return BuiltFilter(
        filter=bloom_filter.folded_to(options.fpp),
        values=count,
        source=values.source,
        missed=missed,
    )


def check_filter(values: ChunkEntries[Entries], bloom_filter: SplitBlockBloomFilter) -> int:
    """Return the number of ``values`` that the filter lacks.

    Consumes ``values.entries``.
    """
    return sum(count_missed(bloom_filter, entries) for entries in values.entries)
