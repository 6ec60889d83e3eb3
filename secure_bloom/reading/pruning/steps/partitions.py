"""Conditions whose answer is one for a whole file: on its folders, on columns that it lacks."""

from __future__ import annotations

import pyarrow as pa

from secure_bloom.predicates.binding import BoundCondition
from secure_bloom.predicates.evaluation import true_rows
from secure_bloom.reading.pruning.file_pruner import FileJudge
from secure_bloom.reading.table.hive_partitions import partition_scalar


def judge_partition(file: FileJudge) -> None:
    """Rule out what the file's folders say; the other conditions become its questions."""
    out = []
    for condition in file.inquiry.conditions:
        value = _value(file, condition)
        if value is None:
            found = file.inquiry.question(condition, file.footer)
            if found is not None:
                file.questions[condition.ordinal] = found
        elif not _is_true(condition, value):
            out.append(condition.ordinal)
    file.ruled_out = frozenset(out)


def _value(file: FileJudge, condition: BoundCondition) -> pa.Scalar | None:
    """What all rows of the file have in the condition's column; None where that may differ."""
    column, request = condition.path[0], file.inquiry.request
    if column in request.partitions:
        return partition_scalar(request.schema.field(column), file.partition)
    if column in file.footer.columns.arrow.names:
        return None
    return pa.scalar(None, request.schema.field(column).type)


def _is_true(condition: BoundCondition, value: pa.Scalar) -> bool:
    """Whether the condition holds for rows that all have this value in its top-level column."""
    table = pa.table({condition.path[0]: pa.array([value.as_py()], value.type)})
    return bool(true_rows(condition, table)[0].as_py())
