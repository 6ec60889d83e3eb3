"""Scan the row groups that pruning leaves for the values of lookups, before they are decoded.

A Bloom filter lets some row groups pass that do not have the value, and most of them if it checks
many values.  Scanning the pages for hashes is cheaper than decoding a column and filtering it.  So
values are searched first.  The search is given up for a condition that does not rule out most row
groups.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.kernels import extension
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.logical_types import Kind
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.predicates.binding import BoundCondition, BoundPredicate, bound_conditions
from secure_bloom.predicates.bound_request import Request
from secure_bloom.predicates.decided import Decided, PredicateShape
from secure_bloom.predicates.tree import LOOKUPS
from secure_bloom.reading.pruning.column_predicates import encodings_of
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.rows.probe_values import ProbeBytes, ProbeHashes
from secure_bloom.storage import InputFile

#: More values take too long to encode; so few are looked for without the C extension.
_TOO_MANY, _FEW = 10_000, 8
#: A condition must rule out this share of the row groups to be scanned on.  It starts with a credit
#: of this many ruled out, so that the first few do not decide.
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


@dataclass(slots=True, kw_only=True, eq=False)
class _ScannedCondition:
    """One condition on one column: its hashes, computed once, and how often it ruled something out.

    ``condition`` and ``column`` are ordinals.  ``leaf`` is kept so that its id, which identifies
    it, is not given to another object.  Without ``probe`` nothing is scanned.  Several threads
    count without a lock, so the counts may miss some simultaneous additions.
    """

    condition: int
    column: int
    leaf: Leaf
    probe: ProbeHashes | ProbeBytes | None
    tried: int = 0
    ruled_out: int = 0

    @property
    def is_worth_it(self) -> bool:
        if self.probe is None:
            return False
        return self.ruled_out + _CREDIT >= _WORTH * (self.tried + _CREDIT)

    def may_be_in(self, file: InputFile, chunk: Chunk) -> bool:
        """Return whether the condition may be true in the chunk."""
        try:
            found = self.probe is None or self.probe.may_be_in(file, chunk)
        except (FormatError, UnsupportedFeatureError):
            # Decoding may understand the chunk, or will say what is wrong with it.
            found = True
        # Count when it is done: a scan that still runs in another thread says nothing yet.
        self.tried += 1
        self.ruled_out += not found
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

    def may_match(
        self, file: InputFile, footer: Footer, predicate: BoundPredicate, row_group: int
    ) -> bool:
        """Return whether the predicate may be true for a row of the row group. False is certain.

        Raises IntegrityError for a page that does not authenticate, with row group and column.
        """
        lookups = self._worth_scanning(footer)
        if not lookups:
            return True
        # A condition whose key is missing was taken out of this predicate.
        checked = {condition.ordinal for condition in bound_conditions(predicate)}
        left = [
            a
            for a in self._scanned_conditions(footer, lookups)
            if a.condition in checked and a.is_worth_it
        ]
        shape = PredicateShape.of(predicate)
        ruled_out = Decided.false(shape)
        # Row groups that are not scanned stay, and those where a value is found.
        possible = Decided.possible(shape, checked - {it.condition for it in left})
        for scanned in left:
            if possible.is_decided or ruled_out.is_decided:
                break
            found = scanned.may_be_in(file, footer.chunk_to_read(row_group, scanned.column))
            (possible if found else ruled_out).add(scanned.condition)
        return not ruled_out.is_decided

    def _worth_scanning(self, footer: Footer) -> list[BoundCondition]:
        """Return all lookups or, without the C extension, only those on members of structures.

        A member is scanned in any case.  Decoding takes the whole structure, so otherwise the bytes
        of a read would depend on the extension.
        """
        if not self._lookups:
            return []
        if extension.native is not None:
            return self._lookups
        return [condition for condition in self._lookups if _is_few_of_member(condition, footer)]

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
        leaf, probe = footer.columns.leaves[column], None
        if predicate and predicate.values is not None and _has_known_bytes(leaf):
            encodings = encodings_of(predicate.values)
            probe = (
                ProbeBytes(encodings=tuple(encodings))
                if _is_few_of_member(condition, footer)
                else ProbeHashes.of(encodings)
            )
        return _ScannedCondition(condition=condition.ordinal, column=column, leaf=leaf, probe=probe)


def _is_lookup(condition: BoundCondition, request: Request) -> bool:
    # For a partition column the folder's name counts, whatever the file has.
    return (
        condition.operator in LOOKUPS
        and len(condition.values) <= _TOO_MANY
        and condition.path[0] not in request.partitions
    )


def _is_few_of_member(condition: BoundCondition, footer: Footer) -> bool:
    """Return whether few values of a member are looked up in a structure with other members."""
    return len(condition.values) <= _FEW and len(footer.columns.below(condition.path[0])) > 1


def _has_known_bytes(leaf: Leaf) -> bool:
    """Return whether all possible bytes of equal values are known."""
    is_decimal = leaf.logical.kind is Kind.DECIMAL
    # A BYTE_ARRAY decimal may have any number of leading bytes that only repeat its sign.
    return leaf.type in _TYPES and not (is_decimal and leaf.type is Type.BYTE_ARRAY)
