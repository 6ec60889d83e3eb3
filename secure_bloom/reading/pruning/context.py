"""What one read asks of every file: what two files have in common is worked out once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from secure_bloom.predicates.binding import (
    BoundAll,
    BoundCondition,
    BoundPredicate,
    bound_conditions,
)
from secure_bloom.predicates.request import Request
from secure_bloom.reading.pruning.column_predicates import (
    Question,
    StoredValue,
    encodings_of,
    question,
)
from secure_bloom.reading.pruning.filter_reads import Hashes
from secure_bloom.reading.table.footer import FileFooter


class Inquiry:
    """One request, with its conditions as the files' columns understand them.

    With ``without_filter_keys`` a condition on a column whose key is not to be had is left out.
    Safe for threads: what two of them work out at a time is the same.
    """

    def __init__(
        self, request: Request, *, without_filter_keys: bool = False, explain: bool = False
    ) -> None:
        self.request = request
        self.without_filter_keys = without_filter_keys
        self.explain = explain
        self.conditions = bound_conditions(request.predicate)
        self._questions: dict[tuple[int, int], Question] = {}
        self._hashes: dict[int, Hashes] = {}
        self._possible: dict[frozenset[int], bool] = {}

    def question(self, condition: BoundCondition, footer: FileFooter) -> Question | None:
        """What the condition asks of the file; None where that is no single leaf of it."""
        ordinal = footer.columns.ordinals.get(condition.path)
        if ordinal is None:
            return None
        leaf = footer.columns.leaves[ordinal]
        if leaf.is_repeated:
            # Of a list its leaf knows no nulls: an empty one counts as one there.
            return None
        # Files with the same schema share their leaves.
        known = self._questions.get((condition.ordinal, id(leaf)))
        if known is None:
            known = question(condition, ordinal, leaf)
            self._questions[condition.ordinal, id(leaf)] = known
        return known

    def hashes(self, asked: Question, values: tuple[StoredValue, ...]) -> Hashes:
        """The hashes of values, a run of those that are asked for; made once for all of them."""
        known = self._hashes.get(id(asked))
        if known is None:
            known = self._hashes[id(asked)] = Hashes.of(encodings_of(asked.values or ()))
        if values is asked.values:
            return known
        if len(known.hashes) != len(asked.keys):
            # Some value has two forms, so places do not tell.
            return Hashes.of(encodings_of(values))
        return known.run(bisect_left(asked.keys, values[0].key), len(values))

    def can_match(self, ruled_out: frozenset[int]) -> bool:
        """Whether the predicate can be true while the conditions ``ruled_out`` are not."""
        known = self._possible.get(ruled_out)
        if known is None:
            predicate = self.request.predicate
            known = predicate is None or can_match(predicate, ruled_out)
            self._possible[ruled_out] = known
        return known


def can_match(predicate: BoundPredicate, ruled_out: Iterable[int]) -> bool:
    """Whether the predicate can be true while the conditions ``ruled_out`` are not."""
    if isinstance(predicate, BoundCondition):
        return predicate.ordinal not in ruled_out
    parts = (can_match(part, ruled_out) for part in predicate.parts)
    return all(parts) if isinstance(predicate, BoundAll) else any(parts)
