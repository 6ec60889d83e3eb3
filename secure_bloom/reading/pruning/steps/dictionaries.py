"""Skip row groups whose dictionaries have all values of a column, and none of a lookup."""

from __future__ import annotations

from secure_bloom.errors import located
from secure_bloom.parquet.footer import Chunk
from secure_bloom.reading.pruning.column_predicates import encodings_of
from secure_bloom.reading.pruning.dictionary_pages import (
    ChunkDictionary,
    dictionary_size,
    has_all_values,
)
from secure_bloom.reading.pruning.file_pruner import FilePruner, Lookup, RowGroupState
from secure_bloom.reading.pruning.filter_reads import has_filter
from secure_bloom.reading.pruning.plan import Reason, Step


def prune_by_dictionaries(pruner: FilePruner) -> None:
    """Look values up in dictionaries, unless a Bloom filter tells the same for fewer bytes."""
    for group in pruner.alive():
        known: dict[int, ChunkDictionary] = {}
        for lookup in pruner.lookups(group, _is_cheaper):
            if _ends(pruner, group, lookup, known):
                break


def _ends(
    pruner: FilePruner, group: RowGroupState, lookup: Lookup, known: dict[int, ChunkDictionary]
) -> bool:
    """Whether the dictionary's answer to one lookup skips the row group."""
    predicate, chunk, values = lookup
    with located(row_group=group.index, column=predicate.leaf.name):
        if predicate.ordinal not in known:
            known[predicate.ordinal] = ChunkDictionary(pruner.file, chunk)
        found = known[predicate.ordinal].may_have(encodings_of(values))
    if not found and pruner.rule_out(group, Step.DICTIONARY, predicate.condition.ordinal):
        return True
    text = "maybe: the dictionary has it" if found else "the dictionary does not have it"
    reason = Reason.DICTIONARY_MAYBE if found else None
    pruner.note(group, predicate, Step.DICTIONARY, text, reason=reason)
    return False


def _is_cheaper(chunk: Chunk) -> bool:
    """Whether the dictionary has all values, and no filter tells the same for fewer bytes."""
    size = dictionary_size(chunk)
    if size == 0 or (has_filter(chunk) and size >= (chunk.meta_data.bloom_filter_length or 0)):
        return False
    return has_all_values(chunk)
