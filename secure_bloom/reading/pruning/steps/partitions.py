"""Decide conditions that have one answer for a whole file: on partitions and missing columns."""

from __future__ import annotations

import pyarrow as pa

from secure_bloom.lakes.hive_partitions import partition_scalar
from secure_bloom.predicates.binding import BoundCondition
from secure_bloom.predicates.evaluation import true_rows
from secure_bloom.reading.pruning.file_pruner import FilePruner


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
    """Return the one value that all rows of the file have in the condition's column, or None."""
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
