"""Decide conditions by partition values and by statistics: by what needs no byte but the footer's.

Partition values and missing columns decide for a whole file.  A row group is skipped if its bounds
and counts of nulls rule every value of a condition out.
"""

from __future__ import annotations

import pyarrow as pa

from secure_bloom.lakes.hive_partitions import partition_scalar
from secure_bloom.parquet.value_order import has_ordered_bounds
from secure_bloom.predicates.binding import BoundCondition
from secure_bloom.predicates.evaluation import true_rows
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


def prune_by_partition(pruner: FilePruner) -> None:
    """Rule out what the partition values decide, and the values of columns that the file lacks.

    The other conditions become the file's predicates.
    """
    out = []
    for condition in pruner.context.conditions:
        value = _value(pruner, condition)
        if value is None:
            found = pruner.context.column_predicate(condition, pruner.footer.columns)
            if found is not None:
                pruner.predicates[condition.ordinal] = found
        elif not _is_true(condition, value):
            out.append(condition)
    pruner.ruled_out = frozenset(condition.ordinal for condition in out)
    partitions = pruner.context.request.partitions
    pruner.partitioned_out = frozenset(it.ordinal for it in out if it.path[0] in partitions)


def _value(pruner: FilePruner, condition: BoundCondition) -> pa.Scalar | None:
    """Return the value that all rows of the file share in the condition's column, or None."""
    column, request = condition.path[0], pruner.context.request
    if column in request.partitions:
        return partition_scalar(request.schema.field(column), pruner.partition)
    if column in pruner.footer.columns.names:
        return None
    kind = request.schema.field(column).type
    return pruner.fills[column].cast(kind) if column in pruner.fills else pa.scalar(None, kind)


def _is_true(condition: BoundCondition, value: pa.Scalar) -> bool:
    """Return whether the condition holds for rows with this value in the column."""
    table = pa.table({condition.path[0]: pa.array([value.as_py()], value.type)})
    return bool(true_rows(condition, table)[0].as_py())
