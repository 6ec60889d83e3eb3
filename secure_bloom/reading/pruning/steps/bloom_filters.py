"""Row groups whose Bloom filters have none of the values asked for."""

from __future__ import annotations

from collections.abc import Sequence

from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.parquet.schema import Leaf, require_filterable
from secure_bloom.predicates.tree import LOOKUPS
from secure_bloom.reading.pruning.column_predicates import Question, StoredValue
from secure_bloom.reading.pruning.file_pruner import FileJudge, Group, Lookup
from secure_bloom.reading.pruning.filter_reads import has_filter, read_filters
from secure_bloom.reading.pruning.plan import Reason, Step, percent


def judge_filters(file: FileJudge) -> None:
    """Rule out by filters: all that could help are read first, in few requests."""
    groups = file.alive()
    lookups = [(group, found) for group in groups if (found := file.lookups(group, has_filter))]
    filters = read_filters(
        file.file,
        {
            (group.index, asked.ordinal): chunk
            for group, found in lookups
            for asked, chunk, _ in found
        },
    )
    if file.explain:
        _note_unasked(file, groups)
    for group, found in lookups:
        for lookup in found:
            if _ends(file, group, lookup, filters[group.index, lookup[0].ordinal]):
                break


def _ends(
    file: FileJudge, group: Group, lookup: Lookup, bloom_filter: SplitBlockBloomFilter
) -> bool:
    """Whether the answer to one question ends the row group."""
    asked, _, values = lookup
    if not file.inquiry.hashes(asked, values).any_in(bloom_filter):
        return file.rule_out(group, Step.BLOOM_FILTER, asked.condition.ordinal)
    if file.explain:
        fpp = bloom_filter.fpp()
        chance = 1 - (1 - fpp) ** len(values)
        file.note(
            group,
            asked,
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


def _note_unasked(file: FileJudge, groups: Sequence[Group]) -> None:
    """Say of each column why its filter was not asked, where it has none or could not help."""
    for group in groups:
        for ordinal, asked in file.questions.items():
            if asked.ordinal in group.chunks and ordinal not in group.ruled_out:
                reason = _reason(file, group, asked)
                if reason is not None:
                    text = _UNASKED[reason].format(operator=asked.condition.operator)
                    file.note(group, asked, Step.BLOOM_FILTER, text, reason=reason)


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


def _reason(file: FileJudge, group: Group, asked: Question) -> Reason | None:
    """Why the filter was not asked; None where it was."""
    if asked.condition.operator not in LOOKUPS:
        return Reason.NO_LOOKUP
    if asked.values is None:
        return Reason.NO_SINGLE_FORM
    if not has_filter(group.chunks[asked.ordinal]):
        return Reason.NO_FILTER if _is_filterable(asked.leaf) else Reason.NEVER_A_FILTER
    if not file.could_help(group, [asked.condition.ordinal]):
        return Reason.OTHER_PARTS
    return None
