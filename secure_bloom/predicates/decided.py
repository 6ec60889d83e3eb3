"""Track whether the conditions decided so far make a predicate false, or certainly possible.

Conditions are decided one by one. A row group is skipped once enough conditions are false to make
the predicate false.  The whole cost is linear in the number of conditions, while evaluating the
predicate after each of thousands of conditions would be quadratic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from secure_bloom.predicates.binding import BoundPredicate
from secure_bloom.predicates.tree import AllOf, AnyOf

_ROOT = 0


@dataclass(frozen=True, slots=True)
class PredicateShape:
    """The tree of a predicate as numbered nodes, each before its parts.

    A node is false once ``until_false`` of its parts are false. It is certainly possible, whatever
    the other parts are, once ``until_possible`` of its parts are possible.
    """

    parents: list[int] = field(default_factory=list)
    until_false: list[int] = field(default_factory=list)
    until_possible: list[int] = field(default_factory=list)
    nodes: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, predicate: BoundPredicate | None) -> PredicateShape:
        """Return the shape of a predicate. Without a predicate nothing is ever decided."""
        shape = cls()
        if predicate is not None:
            shape._add(predicate, -1)
        return shape

    def _add(self, predicate: BoundPredicate, parent: int) -> None:
        node = len(self.parents)
        parts = predicate.parts if isinstance(predicate, AllOf | AnyOf) else ()
        needs_all = isinstance(predicate, AnyOf)
        self.parents.append(parent)
        self.until_false.append(len(parts) if needs_all else 1)
        self.until_possible.append(1 if needs_all or not parts else len(parts))
        if not isinstance(predicate, AllOf | AnyOf):
            self.nodes[predicate.ordinal] = node
        for part in parts:
            self._add(part, node)


class Decided:
    """Conditions that are all decided in the same way, false or possible, by their ordinals.

    ``is_decided`` says whether together they decide the predicate in that way.
    """

    __slots__ = ("_conditions", "_left", "_shape", "is_decided")

    def __init__(self, shape: PredicateShape, until: list[int]) -> None:
        self._shape = shape
        self._left = until.copy()
        self._conditions: set[int] = set()
        self.is_decided = False

    @classmethod
    def false(cls, shape: PredicateShape, conditions: Iterable[int] = ()) -> Decided:
        """Return a record of conditions that no row fulfils."""
        return cls(shape, shape.until_false)._with(conditions)

    @classmethod
    def possible(cls, shape: PredicateShape, conditions: Iterable[int] = ()) -> Decided:
        """Return a record of conditions that some row may fulfil, after all checks."""
        return cls(shape, shape.until_possible)._with(conditions)

    def __contains__(self, condition: int) -> bool:
        return condition in self._conditions

    def __iter__(self) -> Iterator[int]:
        return iter(self._conditions)

    def add(self, condition: int) -> None:
        """Add one more condition."""
        if condition not in self._conditions:
            self._conditions.add(condition)
            changed: dict[int, int] = {}
            self.is_decided |= self._reaches_root(condition, changed)
            for node, left in changed.items():
                self._left[node] = left

    def would_decide(self, conditions: Iterable[int]) -> bool:
        """Return whether adding these conditions would decide the predicate."""
        changed: dict[int, int] = {}
        decides = self.is_decided
        for condition in set(conditions) - self._conditions:
            # Without a short cut: the counts of one go into those of the next.
            decides |= self._reaches_root(condition, changed)
        return decides

    def _with(self, conditions: Iterable[int]) -> Decided:
        for condition in conditions:
            self.add(condition)
        return self

    def _reaches_root(self, condition: int, changed: dict[int, int]) -> bool:
        """Count a condition at its parent nodes, up to the first node that it does not decide.

        Return whether the root is decided.
        """
        node = self._shape.nodes.get(condition, -1)
        while node >= _ROOT:
            left = changed[node] = changed.get(node, self._left[node]) - 1
            if left != 0:
                return False
            if node == _ROOT:
                return True
            node = self._shape.parents[node]
        return False
