"""Row groups whose bounds and counts of nulls exclude every value that is asked for."""

from __future__ import annotations

from secure_bloom.reading.pruning.bounds import chunk_bounds, remaining
from secure_bloom.reading.pruning.column_predicates import Question
from secure_bloom.reading.pruning.file_pruner import FileJudge, Group
from secure_bloom.reading.pruning.plan import Step
from secure_bloom.reading.table.schemas import has_type_order


def judge_statistics(file: FileJudge) -> None:
    """Rule out by the chunks' statistics; what they leave of a list of values is kept."""
    orders = file.footer.metadata.column_orders
    asked = [(one, has_type_order(orders, one.ordinal)) for one in file.questions.values()]
    for group in file.alive():
        for one, ordered in asked:
            if _ends(file, group, one, has_order=ordered):
                break


def _ends(file: FileJudge, group: Group, asked: Question, *, has_order: bool) -> bool:
    """Whether the answer to one question ends the row group."""
    chunk = file.chunk(group, asked)
    if chunk is None:
        return False
    meta_data = chunk.meta_data
    bounds = chunk_bounds(
        asked, meta_data.statistics, meta_data.num_values, has_type_order=has_order
    )
    left = remaining(asked, bounds)
    if left is None:
        return file.rule_out(group, Step.STATISTICS, asked.condition.ordinal)
    group.left[asked.condition.ordinal] = left
    if file.explain:
        text = "no bounds to conclude from" if bounds.low is None else "do not exclude it"
        file.note(group, asked, Step.STATISTICS, text)
    return False
