"""Row groups that are left to be read, less those that turn out to have none of the values probe.

A filter lets some row groups pass that do not have the value, and most of them if it is asked for
many.  To decode a column, and to look its rows up, costs more than to hold the values against
fingerprints where they lie.  So that is tried before a row group is decoded, and given up for a
condition that does not rule out most of what it is asked of.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.kernels.loading import compiled_code
from secure_bloom.parquet.footer import Chunk
from secure_bloom.parquet.logical_types import Kind, logical_type
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.predicates.binding import BoundCondition, BoundPredicate, bound_conditions
from secure_bloom.predicates.request import Request
from secure_bloom.predicates.tree import LOOKUPS
from secure_bloom.reading.pruning.column_predicates import encodings_of
from secure_bloom.reading.pruning.context import PruningContext, can_match
from secure_bloom.reading.rows.fingerprints import ProbeFingerprints
from secure_bloom.reading.table.footer import FileFooter
from secure_bloom.storage import InputFile

#: Of more values their own encoding takes too long.
_TOO_MANY = 10_000
#: Seconds that it takes longer to decode a row and look it up.
_SAVED = 0.1e-6
#: The share of row groups that a condition must rule out to be asked on, and how many it is taken
#: to have ruled out at first, so that one row group does not decide.
_WORTH, _CREDIT = 0.75, 8
#: Others are not compared as they are stored (INT96), or not stored in bytes.
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
    """One condition on one column: what is probe, made once, and what came of it.

    ``condition`` and ``column`` are ordinals; ``leaf`` is held because it is known by its id.
    Without ``sought`` it is not asked.  The counts are those of several threads, and may be off by
    what they do at the same time.
    """

    condition: int
    column: int
    leaf: Leaf
    probe: ProbeFingerprints | None
    tried: int = 0
    ruled_out: int = 0

    @property
    def is_worth_it(self) -> bool:
        if self.probe is None:
            return False
        return self.ruled_out + _CREDIT >= _WORTH * (self.tried + _CREDIT)

    def may_be_in(self, file: InputFile, chunk: Chunk) -> bool:
        """Whether the condition may be true in the chunk."""
        try:
            found = self.probe is None or self.probe.may_be_in(file, chunk)
        except (FormatError, UnsupportedFeatureError):
            # Who decodes the chunk may be able to, or says what is wrong.
            found = True
        # Now, not before: what other threads are still looking at says nothing.
        self.tried += 1
        self.ruled_out += not found
        return found


class ValueScan:
    """The values that one read looks for, for all of its files and threads.

    ``context`` may be that of the planner, which has worked out most of it.
    """

    def __init__(self, context: PruningContext) -> None:
        self._context = context
        self._lookups = [c for c in context.conditions if _is_lookup(c, context.request)]
        self._asked: dict[tuple[int, int], _ScannedCondition] = {}
        self._lock = threading.Lock()

    def may_match(
        self, file: InputFile, footer: FileFooter, predicate: BoundPredicate, row_group: int
    ) -> bool:
        """Whether the predicate may be true for a row of the row group; False is certain.

        Raises IntegrityError for a page that does not authenticate, with row group and column.
        """
        rows = footer.row_groups.rows[row_group]
        if not self._lookups or not compiled_code.is_worth(rows * _SAVED):
            return True
        # A condition that is left out for want of a key is none of the predicate's.
        checked = {condition.ordinal for condition in bound_conditions(predicate)}
        left = [a for a in self._of(footer) if a.condition in checked and a.is_worth_it]
        ruled_out: set[int] = set()
        # Nothing is asked that could not rule the row group out together with what is left.
        while not can_match(predicate, ruled_out.union(asked.condition for asked in left)):
            if not can_match(predicate, ruled_out):
                return False
            asked = left.pop(0)
            if not asked.may_be_in(file, footer.chunk(row_group, asked.column)):
                ruled_out.add(asked.condition)
        return True

    def _of(self, footer: FileFooter) -> Iterator[_ScannedCondition]:
        """The conditions, as the columns of a file understand them."""
        for condition in self._lookups:
            column = footer.columns.ordinals.get(condition.path)
            if column is None:
                continue
            # Files with the same schema share their leaves.
            place = (condition.ordinal, id(footer.columns.leaves[column]))
            with self._lock:
                if place not in self._asked:
                    self._asked[place] = self._ask(condition, column, footer)
            yield self._asked[place]

    def _ask(self, condition: BoundCondition, column: int, footer: FileFooter) -> _ScannedCondition:
        asked, leaf = (
            self._context.column_predicate(condition, footer),
            footer.columns.leaves[column],
        )
        told = asked is not None and asked.values is not None and _is_told_by_bytes(leaf)
        return _ScannedCondition(
            condition=condition.ordinal,
            column=column,
            leaf=leaf,
            probe=ProbeFingerprints.of(encodings_of(asked.values or ()))
            if asked and told
            else None,
        )


def _is_lookup(condition: BoundCondition, request: Request) -> bool:
    # Of a partition column the folder's name counts, whatever stands in the file.
    return (
        condition.operator in LOOKUPS
        and len(condition.values) <= _TOO_MANY
        and condition.path[0] not in request.partitions
    )


def _is_told_by_bytes(leaf: Leaf) -> bool:
    """Whether equal values have the same bytes, or some that are all known."""
    is_decimal = logical_type(leaf.element).kind is Kind.DECIMAL
    # Of a BYTE_ARRAY decimal any number of leading bytes may only repeat its sign.
    return leaf.type in _TYPES and not (is_decimal and leaf.type is Type.BYTE_ARRAY)
