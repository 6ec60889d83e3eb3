"""Find the rows of lookups in the row groups that pruning leaves, before these are decoded.

A Bloom filter lets some row groups pass that do not have the value, and most of them if it checks
many values.  To search the pages as they are stored is cheaper than to decode a column and filter
it, and only the rows that are found are read.  The search is given up for a condition that leaves
many rows of most row groups.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from secure_bloom.kernels import extension
from secure_bloom.kernels.loops import Sought
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.logical_types import Kind
from secure_bloom.parquet.page_values import Positions
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.predicates.binding import BoundCondition, BoundPredicate
from secure_bloom.predicates.bound_request import Request
from secure_bloom.predicates.tree import LOOKUPS, AnyOf
from secure_bloom.reading.pruning.column_predicates import encodings_of
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.rows.stored_column import StoredColumn

#: More values take too long to encode; so few are looked for without the C extension.
_TOO_MANY, _FEW = 10_000, 8
#: A condition must leave few rows in this share of the row groups to be scanned on.  It starts with
#: a credit of this many row groups, so that the first few do not decide.
_WORTH, _CREDIT = 0.75, 8
#: Physical types that are scanned.  INT96 is not compared as stored; BOOLEANs are single bits.
_TYPES = {
    Type.INT32,
    Type.INT64,
    Type.FLOAT,
    Type.DOUBLE,
    Type.BYTE_ARRAY,
    Type.FIXED_LEN_BYTE_ARRAY,
}

#: Whether a number of rows is read alone, and not with the row group.
AreFew = Callable[[int], bool]


class FoundRows(NamedTuple):
    """Rows that may match, ascending. If they ``are_exact``, the predicate is true for each."""

    positions: Positions
    are_exact: bool


@dataclass(slots=True, kw_only=True, eq=False)
class _ScannedCondition:
    """One condition on one column: its values, encoded once, and how often a search helped.

    ``condition`` and ``column`` are ordinals.  ``leaf`` is kept so that its id, which identifies
    it, is not given to another object.  Without ``sought`` nothing is scanned.  Several threads
    count without a lock, so the counts may miss some simultaneous additions.
    """

    condition: int
    column: int
    leaf: Leaf
    sought: Sought | None
    tried: int = 0
    helped: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether each found row certainly has the value. Values with equal hashes may differ."""
        return self.sought is not None and bool(self.sought.only)

    @property
    def is_worth_it(self) -> bool:
        if self.sought is None:
            return False
        return self.helped + _CREDIT >= _WORTH * (self.tried + _CREDIT)

    def find(self, column: StoredColumn, are_few: AreFew) -> Positions | None:
        """Return the rows for which the condition may be true, or None if they are not known.

        Also count whether the search helped: it does if it finds few rows.
        """
        found = None if self.sought is None else column.find(self.sought)
        # Count when it is done: a scan that still runs in another thread says nothing yet.
        self.tried += 1
        self.helped += found is not None and are_few(len(found))
        return found


class ValueScan:
    """The values of one read's lookups, for all of its files and threads.

    ``context`` may be the planner's, which has already computed most of what is needed.
    """

    def __init__(self, context: PruningContext) -> None:
        self._context = context
        self._lookups = [c for c in context.conditions if _is_lookup(c, context.request)]
        self._scanned: dict[tuple[int, int], _ScannedCondition] = {}
        self._lock = threading.Lock()

    def rows(
        self,
        column_of: Callable[[int], StoredColumn],
        footer: Footer,
        predicate: BoundPredicate,
        are_few: AreFew,
    ) -> FoundRows | None:
        """Return the rows of the row group for which the predicate may be true.

        Other rows do not match.  Return None if any row may match.  ``column_of`` returns a column
        of the row group by its ordinal.  Rows that are not few are read with their row group.
        Raises IntegrityError for a page that does not authenticate, with row group and column.
        """
        lookups = self._worth_scanning(footer)
        if not lookups:
            return None
        left = dict[int, _ScannedCondition]()
        for scanned in self._scanned_conditions(footer, lookups):
            if scanned.is_worth_it:
                left[scanned.condition] = scanned

        def found(condition: BoundCondition) -> Positions | None:
            scanned = left[condition.ordinal]
            return scanned.find(column_of(scanned.column), are_few)

        rows = _rows(predicate, left.keys(), found)
        if rows is None:
            return None
        alone = left[predicate.ordinal] if isinstance(predicate, BoundCondition) else None
        return FoundRows(rows, alone is not None and alone.is_exact)

    def _worth_scanning(self, footer: Footer) -> list[BoundCondition]:
        """Return all lookups.

        Without the C extension, return only lookups on members of structures.

        A member is scanned in any case.  Decoding takes the whole structure, so otherwise the bytes
        of a read would depend on the extension.
        """
        if not self._lookups:
            return []
        if extension.native is not None:
            return self._lookups
        return [
            condition
            for condition in self._lookups
            if len(condition.values) <= _FEW and len(footer.columns.below(condition.path[0])) > 1
        ]

    def _scanned_conditions(
        self, footer: Footer, lookups: Sequence[BoundCondition]
    ) -> Iterator[_ScannedCondition]:
        """Yield the lookups on columns of a file. Files of one schema share them."""
        for condition in lookups:
            column = footer.columns.ordinals.get(condition.path)
            if column is None:
                continue
            # Files with the same schema share their leaves.
            key = (condition.ordinal, id(footer.columns.leaves[column]))
            with self._lock:
                if key not in self._scanned:
                    self._scanned[key] = self._new_scan(condition, column, footer)
            yield self._scanned[key]

    def _new_scan(
        self, condition: BoundCondition, column: int, footer: Footer
    ) -> _ScannedCondition:
        predicate = self._context.column_predicate(condition, footer.columns)
        leaf, sought = footer.columns.leaves[column], None
        if predicate and predicate.values is not None and _has_known_bytes(leaf):
            sought = Sought.of(encodings_of(predicate.values))
        return _ScannedCondition(
            condition=condition.ordinal, column=column, leaf=leaf, sought=sought
        )


def _rows(
    predicate: BoundPredicate,
    scanned: Container[int],
    found: Callable[[BoundCondition], Positions | None],
) -> Positions | None:
    """Return the rows for which a predicate may be true, or None if any row may match.

    ``found`` searches a condition whose ordinal is in ``scanned``.
    """
    if not _is_narrowed(predicate, scanned):
        return None
    if isinstance(predicate, BoundCondition):
        return found(predicate)
    is_any, left = isinstance(predicate, AnyOf), None
    for part in predicate.parts:
        rows = _rows(part, scanned, found)
        if rows is None:
            if is_any:
                return None
        elif left is None:
            left = rows
        else:
            left = np.union1d(left, rows) if is_any else np.intersect1d(left, rows)
        if left is not None and not len(left) and not is_any:
            break
    return left


def _is_narrowed(predicate: BoundPredicate, scanned: Container[int]) -> bool:
    """Return whether the rows of a predicate follow from the conditions that are scanned."""
    if isinstance(predicate, BoundCondition):
        return predicate.ordinal in scanned
    has_all = all if isinstance(predicate, AnyOf) else any
    return has_all(_is_narrowed(part, scanned) for part in predicate.parts)


def _is_lookup(condition: BoundCondition, request: Request) -> bool:
    # For a partition column the folder's name counts, whatever the file has.
    return (
        condition.operator in LOOKUPS
        and len(condition.values) <= _TOO_MANY
        and condition.path[0] not in request.partitions
    )


def _has_known_bytes(leaf: Leaf) -> bool:
    """Return whether all possible bytes of equal values are known."""
    is_decimal = leaf.logical.kind is Kind.DECIMAL
    # A BYTE_ARRAY decimal may have any number of leading bytes that only repeat its sign.
    return leaf.type in _TYPES and not (is_decimal and leaf.type is Type.BYTE_ARRAY)
