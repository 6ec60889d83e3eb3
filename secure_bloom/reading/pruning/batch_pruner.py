"""What statistics and filters rule out of a whole file at a time: most row groups of a lookup.

Where a question is but for values of columns with filters, as a lookup is, the row groups of a file
are judged together, by compiled code and without an object for each chunk.  What it leaves, and
whatever is unusual, goes through the steps one by one, which rule out no less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from secure_bloom.errors import KeyUnavailableError
from secure_bloom.kernels.loading import warmth
from secure_bloom.parquet.structures.metadata import ColumnMetaData
from secure_bloom.predicates.tree import LOOKUPS
from secure_bloom.reading.lockstep import Job
from secure_bloom.reading.pruning.bounds import has_signed_order
from secure_bloom.reading.pruning.column_predicates import (
    ByteOrder,
    Question,
    StoredValue,
    byte_order_of,
)
from secure_bloom.reading.pruning.context import Inquiry
from secure_bloom.reading.pruning.file_pruner import FileJudge
from secure_bloom.reading.pruning.filter_reads import read_filters_at
from secure_bloom.reading.table.schemas import has_type_order

if TYPE_CHECKING:
    # It loads compiled code.
    from secure_bloom.reading.pruning.chunk_fields import ChunkFields

#: Seconds that judging one row group takes longer without compiled code.
_SAVED = 20e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sought:
    """A question as compiled code understands it: its values in their order, one behind the other.

    ``path`` is the column's ``path_in_schema`` as metadata have it.
    """

    asked: Question
    order: ByteOrder
    path: NDArray[np.uint8]
    values: NDArray[np.uint8] = field(repr=False)
    offsets: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, asked: Question) -> _Sought | None:
        """None for a question that is none for values, or whose values have more than one form."""
        order = byte_order_of(asked.leaf)
        if asked.condition.operator not in LOOKUPS or order is None or not asked.values:
            return None
        if any(len(value.encodings) != 1 for value in asked.values):
            return None
        encodings = [value.encodings[0] for value in asked.values]
        path = ColumnMetaData.of(path_in_schema=list(asked.leaf.path)).encode()
        return cls(
            asked=asked,
            order=order,
            # Less the field's header and the end of the structure.
            path=np.frombuffer(path[1:-1], np.uint8),
            values=np.frombuffer(b"".join(encodings), np.uint8),
            offsets=np.cumsum([0, *map(len, encodings)], dtype=np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Left:
    """What the bounds of a column's chunks leave: a run of the question's values for each.

    A run that starts below 0 is of a chunk to be looked at by itself.
    """

    asked: Question
    chunks: ChunkFields
    runs: NDArray[np.int64]

    @property
    def is_possible(self) -> NDArray[np.bool_]:
        """Of which chunks something is left."""
        return np.not_equal(self.runs[:, 0], self.runs[:, 1])

    def with_filter(self, indices: Iterable[int]) -> list[int]:
        """Of some of the chunks those whose filter is to be asked."""
        starts = self.runs[:, 0].tolist()
        return [index for index in indices if starts[index] >= 0]

    def values(self, index: int) -> tuple[StoredValue, ...]:
        """What is left of the values for a chunk."""
        values = self.asked.values or ()
        start, end = self.runs[index].tolist()
        return values if end - start == len(values) else values[start:end]


#: The row groups that are left, and the conditions whose filters let each of them pass.
_Passed = dict[int, frozenset[int]]
#: The row groups whose filters are to be asked, column by column.
_Waiting = Sequence[tuple[_Left, list[int]]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sifted:
    """What bounds leave of a file: ``passed`` are places among the row groups ``indices``."""

    indices: Sequence[int]
    left: Sequence[_Left]
    passed: _Passed


class Sieve:
    """One step for all files of a request; safe for threads."""

    def __init__(self, inquiry: Inquiry) -> None:
        self._inquiry = inquiry
        self._known: dict[Question, _Sought | None] = {}

    def sift(self, file: FileJudge) -> Job[Sifted | None]:
        """What the footer's bounds leave; None where row groups are to be looked at one by one."""
        rows = file.footer.row_groups.rows
        # Explained, every row group has notes of its own.
        sought = [] if file.explain else self._all_sought(file)
        if not sought or not warmth.is_worth(len(rows) * _SAVED):
            return None
        indices = [index for index, count in enumerate(rows) if count > 0]
        left = []
        for asked in sought:
            yield
            found = yield from _left_by_bounds(file, indices, asked)
            left += [] if found is None else [found]
        yield
        possible = np.ones(len(indices), np.bool_)
        for one in left:
            possible &= one.is_possible
        passed = dict.fromkeys(np.flatnonzero(possible).tolist(), frozenset[int]())
        return Sifted(indices=indices, left=left, passed=passed)

    def ask(self, file: FileJudge, sifted: Sifted) -> None:
        """Forget what filters rule out too."""
        left, passed = sifted.left, sifted.passed
        waiting = [(one, one.with_filter(passed)) for one in left]
        if len(left) == 1 and left[0].chunks.ciphers is None:
            waiting = [(left[0], self._ask_together(file, *waiting[0], passed))]
        self._ask_one_by_one(file, waiting, passed)
        file.keep({sifted.indices[place]: conditions for place, conditions in passed.items()})

    def _all_sought(self, file: FileJudge) -> list[_Sought]:
        """The file's questions; none unless each of them alone can rule a row group out."""
        found = []
        for asked in file.questions.values():
            if asked not in self._known:
                self._known[asked] = _Sought.of(asked)
            one = self._known[asked]
            condition = asked.condition.ordinal
            if one is None or self._inquiry.can_match(file.ruled_out | {condition}):
                return []
            found.append(one)
        return found if self._inquiry.can_match(file.ruled_out) else []

    def _ask_together(
        self, file: FileJudge, one: _Left, waiting: list[int], passed: _Passed
    ) -> list[int]:
        """Ask the filters of a plain column; those that are unusual wait on."""
        if not waiting:
            return []
        hashes = self._inquiry.hashes(one.asked, one.asked.values or ())
        answers = hashes.ask_together(file.file, one.chunks.filters[waiting], one.runs[waiting])
        if answers is None:
            return waiting
        found = dict(zip(waiting, answers, strict=True))
        for index, may_have in found.items():
            if may_have is not None:
                _enter(passed, index, one, may_have=may_have)
        return [index for index, may_have in found.items() if may_have is None]

    def _ask_one_by_one(self, file: FileJudge, waiting: _Waiting, passed: _Passed) -> None:
        """Ask filters that are decrypted, or stand apart; all are read first, in few requests."""
        asked = [(index, one) for one, where in waiting for index in where]
        if not asked:
            return
        places = [place for one, where in waiting for place in one.chunks.filter_places(where)]
        filters = read_filters_at(file.file, places)
        for (index, one), bloom_filter in zip(asked, filters, strict=True):
            if index in passed:
                hashes = self._inquiry.hashes(one.asked, one.values(index))
                _enter(passed, index, one, may_have=hashes.any_in(bloom_filter))


def _enter(passed: _Passed, index: int, one: _Left, *, may_have: bool) -> None:
    """Note what a filter answered: the row group is forgotten, or its filter was asked."""
    if may_have:
        passed[index] |= {one.asked.condition.ordinal}
    else:
        del passed[index]


def _left_by_bounds(file: FileJudge, indices: Sequence[int], sought: _Sought) -> Job[_Left | None]:
    """What bounds leave in the row groups; None where they are to be looked at one by one."""
    from secure_bloom.kernels import chunks as layout
    from secure_bloom.reading.pruning.chunk_fields import read_chunk_fields

    asked, order = sought.asked, sought.order
    try:
        chunks = yield from read_chunk_fields(file.footer, asked.ordinal, indices)
    except KeyUnavailableError:
        # The next steps know what that means for the condition.
        return None
    if chunks is None:
        return None
    yield
    runs = np.empty((len(indices), 2), np.int64)
    layout.leave(
        np.frombuffer(chunks.plain, np.uint8),
        chunks.fields,
        sought.path,
        sought.values,
        sought.offsets,
        order.width,
        order.is_little,
        order.is_signed,
        has_type_order(file.footer.metadata.column_orders, asked.ordinal),
        has_signed_order(asked.leaf),
        runs,
    )
    return _Left(asked=asked, chunks=chunks, runs=runs)
