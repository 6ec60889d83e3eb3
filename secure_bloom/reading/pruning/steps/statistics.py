"""Skip row groups whose bounds and counts of nulls rule every value of a condition out."""

from __future__ import annotations

from secure_bloom.parquet.value_order import has_ordered_bounds
from secure_bloom.reading.pruning.bounds import chunk_bounds, remaining
from secure_bloom.reading.pruning.column_predicates import ColumnPredicate
from secure_bloom.reading.pruning.file_pruner import FilePruner, RowGroupState
from secure_bloom.reading.pruning.plan import Step


def prune_by_statistics(pruner: FilePruner) -> None:
    """Compare with the statistics of the chunks, and keep the values that they leave."""
    orders = pruner.footer.metadata.column_orders
    predicates = [
        (it, has_ordered_bounds(orders, it.ordinal, it.leaf)) for it in pruner.predicates.values()
    ]
    for group in pruner.alive():
        for predicate, has_order in predicates:
            if _ends(pruner, group, predicate, has_order=has_order):
                break


def _ends(
    pruner: FilePruner, group: RowGroupState, predicate: ColumnPredicate, *, has_order: bool
) -> bool:
    """Return whether the bounds of one column skip the row group."""
    chunk = pruner.chunk(group, predicate)
    if chunk is None:
        return False
    bounds = chunk_bounds(predicate, chunk, has_order=has_order)
    left = remaining(predicate, bounds)
    if left is None:
        return pruner.rule_out(group, Step.STATISTICS, predicate.condition.ordinal)
    group.left[predicate.condition.ordinal] = left
    if pruner.explain:
        text = "there are no bounds" if bounds.low is None else "do not exclude it"
        pruner.note(group, predicate, Step.STATISTICS, text)
    return False
