"""The context of one read: keeps what several of its files need, computed once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from secure_bloom.parquet.footer.columns import FileColumns
from secure_bloom.predicates.binding import BoundCondition, bound_conditions
from secure_bloom.predicates.bound_request import Request
from secure_bloom.predicates.decided import Decided, PredicateShape
from secure_bloom.reading.pruning.column_predicates import (
    ColumnPredicate,
    ProbeValues,
    StoredValue,
    column_predicate,
    encodings_of,
)
from secure_bloom.reading.pruning.filter_reads import Hashes


class PruningContext:
    """One request, and its conditions as columns of files store them.

    ``without_filter_keys``: a condition on a column whose key is not available is left out.
    ``ignores_filters``: Bloom filters are not used.  Safe for threads: if two of them compute the
    same thing, both results are equal.
    """

    def __init__(
        self,
        request: Request,
        *,
        without_filter_keys: bool = False,
        ignores_filters: bool = False,
        explain: bool = False,
    ) -> None:
        self.request = request
        self.without_filter_keys = without_filter_keys
        self.ignores_filters = ignores_filters
        self.explain = explain
        self.conditions = bound_conditions(request.predicate)
        self._predicates: dict[tuple[int, int], ColumnPredicate] = {}
        self._probe_values: dict[int, ProbeValues | None] = {}
        self._hashes: dict[int, Hashes] = {}
        self._shape = PredicateShape.of(request.predicate)
        self._possible: dict[frozenset[int], bool] = {}
        self._deciding: dict[frozenset[int], frozenset[int]] = {}

    def column_predicate(
        self, condition: BoundCondition, columns: FileColumns
    ) -> ColumnPredicate | None:
        """Return the condition on a column of the file, or None if that is not a single leaf."""
        found = columns.elements if condition.of_elements else columns.ordinals
        ordinal = found.get(condition.path)
        if ordinal is None:
            return None
        leaf = columns.leaves[ordinal]
        if leaf.is_repeated and not condition.of_elements:
            # The leaf of a list counts an empty list as a null, so it says nothing of nulls.
            return None
        # Files with the same schema share their leaves.
        known = self._predicates.get((condition.ordinal, id(leaf)))
        if known is None:
            known = column_predicate(condition, ordinal, leaf)
            self._predicates[condition.ordinal, id(leaf)] = known
        return known

    def probe_values(self, predicate: ColumnPredicate) -> ProbeValues | None:
        """Return the values of a lookup as arrays, made once.

        Return None if the C extension cannot use them.
        """
        if id(predicate) not in self._probe_values:
            self._probe_values[id(predicate)] = ProbeValues.of(predicate)
        return self._probe_values[id(predicate)]

    def hashes(self, predicate: ColumnPredicate, values: tuple[StoredValue, ...]) -> Hashes:
        """Return the hashes of ``values``, which are consecutive values of the predicate.

        All hashes are computed at once, the first time.
        """
        known = self._hashes.get(id(predicate))
        if known is None:
            known = self._hashes[id(predicate)] = Hashes.of(encodings_of(predicate.values or ()))
        if values is predicate.values:
            return known
        if len(known.array) != len(predicate.keys):
            # Some value has two encodings, so positions of keys and hashes differ.
            return Hashes.of(encodings_of(values))
        return known.run(bisect_left(predicate.keys, values[0].key), len(values))

    def ruled_out(self, conditions: Iterable[int] = ()) -> Decided:
        """Return an empty record of false conditions.

        Conditions are added to it, and it says when they make the predicate false.
        """
        return Decided.false(self._shape, conditions)

    def can_match(self, ruled_out: frozenset[int]) -> bool:
        """Return whether the predicate can be true if the conditions ``ruled_out`` are false."""
        known = self._possible.get(ruled_out)
        if known is None:
            known = self._possible[ruled_out] = not self.ruled_out(ruled_out).is_decided
        return known

    def deciding(self, ruled_out: frozenset[int]) -> frozenset[int]:
        """Return each condition that would make the predicate false if it were false too.

        ``ruled_out`` are the conditions that are false already.
        """
        known = self._deciding.get(ruled_out)
        if known is None:
            before = self.ruled_out(ruled_out)
            every = (condition.ordinal for condition in self.conditions)
            known = frozenset(it for it in every if before.would_decide([it]))
            self._deciding[ruled_out] = known
        return known
