"""Skip row groups whose Bloom filters have none of the values of a lookup."""

from __future__ import annotations

from collections.abc import Sequence

from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.parquet.schema import Leaf, require_filterable
from secure_bloom.predicates.tree import LOOKUPS
from secure_bloom.reading.pruning.column_predicates import ColumnPredicate, StoredValue
from secure_bloom.reading.pruning.file_pruner import FilePruner, Lookup, RowGroupState
from secure_bloom.reading.pruning.filter_reads import has_filter, read_filters
from secure_bloom.reading.pruning.plan import Reason, Step, percent


def prune_by_filters(pruner: FilePruner) -> None:
    """Check the filters that could skip a row group. All are read first, in few requests."""
    if pruner.context.ignores_filters:
        return
    groups = pruner.alive()
    lookups = [(group, found) for group in groups if (found := pruner.lookups(group, has_filter))]
    chunks = {
        (group.index, predicate.ordinal): chunk
        for group, found in lookups
        for predicate, chunk, _ in found
    }
    filters = read_filters(pruner.file, chunks) if chunks else {}
    if pruner.explain:
        _note_unasked(pruner, groups)
    for group, found in lookups:
        for lookup in found:
            if _ends(pruner, group, lookup, filters[group.index, lookup[0].ordinal]):
                break


def _ends(
    pruner: FilePruner, group: RowGroupState, lookup: Lookup, bloom_filter: SplitBlockBloomFilter
) -> bool:
    """Return whether the filter's answer to one lookup skips the row group."""
    predicate, _, values = lookup
    if not pruner.context.hashes(predicate, values).any_in(bloom_filter):
        return pruner.rule_out(group, Step.BLOOM_FILTER, predicate.condition.ordinal)
    if pruner.explain:
        fpp = bloom_filter.fpp()
        chance = 1 - (1 - fpp) ** len(values)
        pruner.note(
            group,
            predicate,
            Step.BLOOM_FILTER,
            _maybe(chance, values),
            reason=Reason.FILTER_MAYBE,
            fpp=fpp,
            chance=chance,
        )
    return False


def _maybe(chance: float, values: Sequence[StoredValue]) -> str:
    of = "" if len(values) == 1 else f" for {len(values)} values together"
    return f"maybe: the filter's false-positive probability is {percent(chance)} %{of}"


def _note_unasked(pruner: FilePruner, groups: Sequence[RowGroupState]) -> None:
    """Note for each column why its filter was not checked."""
    for group in groups:
        for ordinal, predicate in pruner.predicates.items():
            if predicate.ordinal in group.chunks and ordinal not in group.ruled_out:
                reason = _reason(pruner, group, predicate)
                if reason is not None:
                    text = _UNASKED[reason].format(operator=predicate.condition.operator)
                    pruner.note(group, predicate, Step.BLOOM_FILTER, text, reason=reason)


_UNASKED = {
    Reason.NO_LOOKUP: "not asked: filters answer = and in, not {operator}",
    Reason.NO_FILTER: "no filter",
    Reason.NEVER_A_FILTER: "no filter: columns of this type have none",
    Reason.NO_SINGLE_FORM: "not asked: the value has no single form in this column",
    Reason.OTHER_PARTS: "not asked: another part of the `or` may be true all the same",
}


def _is_filterable(leaf: Leaf) -> bool:
    try:
        require_filterable(leaf)
    except UnsupportedFeatureError:
        return False
    return True


def _reason(pruner: FilePruner, group: RowGroupState, predicate: ColumnPredicate) -> Reason | None:
    """Return why the filter was not asked, or None if it was."""
    if predicate.condition.operator not in LOOKUPS:
        return Reason.NO_LOOKUP
    if predicate.values is None:
        return Reason.NO_SINGLE_FORM
    if not has_filter(group.chunks[predicate.ordinal]):
        return Reason.NO_FILTER if _is_filterable(predicate.leaf) else Reason.NEVER_A_FILTER
    if not pruner.could_help(group, [predicate.condition.ordinal]):
        return Reason.OTHER_PARTS
    return None
