"""Rule out the row groups of a file together: by their bounds, then by their Bloom filters.

This serves lookups: conditions that can each rule a row group out alone.  The C extension checks
all chunks of a column in one call, without a Python object for each.  It decides only the usual
cases.  Row groups that it does not decide go through the steps, so both ways give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from secure_bloom.errors import KeyUnavailableError
from secure_bloom.kernels import extension
from secure_bloom.parquet.value_order import has_ordered_bounds
from secure_bloom.reading.pruning.batch.lookup_fields import ChunkFields, read_chunk_fields
from secure_bloom.reading.pruning.bounds import has_signed_order
from secure_bloom.reading.pruning.column_predicates import ColumnPredicate, ProbeValues, StoredValue
from secure_bloom.reading.pruning.file_pruner import FilePruner
from secure_bloom.reading.pruning.filter_reads import ask_together, read_filters_at

#: Survivors by their index among the row groups looked at, each with the conditions whose Bloom
#: filter was checked and may have a value.
_Survivors = dict[int, frozenset[int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ColumnSurvivors:
    """The values that the bounds of each chunk of a column leave: ``runs`` of (start, end).

    A start below 0 means that the steps must check the chunk.
    """

    predicate: ColumnPredicate
    chunks: ChunkFields
    runs: NDArray[np.int64]

    @property
    def may_match(self) -> NDArray[np.bool_]:
        """A mask of the chunks that may still match."""
        return np.not_equal(self.runs[:, 0], self.runs[:, 1])

    def with_filter(self, indices: Iterable[int]) -> list[int]:
        """Return the chunks among ``indices`` whose Bloom filter is checked here."""
        starts = self.runs[:, 0].tolist()
        return [index for index in indices if starts[index] >= 0]

    def values(self, index: int) -> tuple[StoredValue, ...]:
        """Return the values that the bounds of one chunk leave."""
        values = self.predicate.values or ()
        start, end = self.runs[index].tolist()
        # All of them are the very same tuple: its hashes are known already.
        return values if end - start == len(values) else values[start:end]


#: For each column the chunks whose filters are still to be checked.
_Unchecked = Sequence[tuple[_ColumnSurvivors, list[int]]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchSurvivors:
    """The row groups of a file that bounds leave. Filters may rule out more of them."""

    row_groups: Sequence[int]
    columns: Sequence[_ColumnSurvivors]
    _survivors: _Survivors

    def __bool__(self) -> bool:
        return bool(self._survivors)

    def prune_by_filters(self, pruner: FilePruner) -> None:
        """Rule out by Bloom filters, and give the rest to ``pruner``, whose file is open."""
        unchecked = [(column, column.with_filter(self._survivors)) for column in self.columns]
        if len(self.columns) == 1:
            column, indices = unchecked[0]
            unchecked = [(column, self._check_together(pruner, column, indices))]
        self._check_one_by_one(pruner, unchecked)
        pruner.keep({self.row_groups[i]: checked for i, checked in self._survivors.items()})

    def _check_together(
        self, pruner: FilePruner, column: _ColumnSurvivors, indices: list[int]
    ) -> list[int]:
        """Check the filters of a column in one call.

        Return the row groups that it does not decide.
        """
        if not indices:
            return []
        chunks = column.chunks
        hashes = pruner.context.hashes(column.predicate, column.predicate.values or ())
        answers = ask_together(
            pruner.file,
            chunks.filters[indices],
            hashes.array,
            column.runs[indices],
            chunks.cipher,
            [chunks.ordinals[index] for index in indices],
        )
        if answers is None:
            return indices
        undecided = []
        for index, may_have in zip(indices, answers, strict=True):
            if may_have is None:
                undecided.append(index)
            else:
                self._enter(index, column, may_have=may_have)
        return undecided

    def _check_one_by_one(self, pruner: FilePruner, unchecked: _Unchecked) -> None:
        """Check filters that are encrypted or far apart. All are read first, in few requests."""
        pairs = [(index, column) for column, indices in unchecked for index in indices]
        if not pairs:
            return
        locations = [
            location
            for column, indices in unchecked
            for location in column.chunks.filter_locations(indices)
        ]
        filters = read_filters_at(pruner.file, locations)
        for (index, column), bloom_filter in zip(pairs, filters, strict=True):
            if index in self._survivors:
                hashes = pruner.context.hashes(column.predicate, column.values(index))
                self._enter(index, column, may_have=hashes.any_in(bloom_filter))

    def _enter(self, index: int, column: _ColumnSurvivors, *, may_have: bool) -> None:
        """Record a filter's answer: drop the row group, or note that the condition was checked."""
        if may_have:
            self._survivors[index] |= {column.predicate.condition.ordinal}
        else:
            del self._survivors[index]


def prune_together(pruner: FilePruner) -> BatchSurvivors | None:
    """Rule row groups out by the bounds in the footer. Return None if only the steps can do it."""
    # To explain a read, every row group needs notes of its own, which only the steps write.
    probes = [] if pruner.explain or extension.native is None else _probes(pruner)
    if not probes:
        return None
    row_groups = [index for index, count in enumerate(pruner.footer.rows) if count > 0]
    every = (_prune_by_bounds(pruner, row_groups, *probe) for probe in probes if row_groups)
    columns = [column for column in every if column is not None]
    mask = np.ones(len(row_groups), np.bool_)
    for column in columns:
        mask &= column.may_match
    survivors = dict.fromkeys(np.flatnonzero(mask).tolist(), frozenset[int]())
    return BatchSurvivors(row_groups=row_groups, columns=columns, _survivors=survivors)


def _probes(pruner: FilePruner) -> list[tuple[ColumnPredicate, ProbeValues]]:
    """Return the file's conditions with their values.

    Return [] unless each of them alone can rule a row group out.
    """
    found = []
    ruled_out = pruner.context.ruled_out(pruner.ruled_out)
    for predicate in pruner.predicates.values():
        probe = pruner.context.probe_values(predicate)
        condition = predicate.condition.ordinal
        if probe is None or not ruled_out.would_decide([condition]):
            return []
        found.append((predicate, probe))
    return found if pruner.context.can_match(pruner.ruled_out) else []


def _prune_by_bounds(
    pruner: FilePruner, row_groups: Sequence[int], predicate: ColumnPredicate, probe: ProbeValues
) -> _ColumnSurvivors | None:
    """Return the chunks that the bounds of a column leave.

    Return None if the steps must check each chunk.
    """
    try:
        chunks = read_chunk_fields(pruner.footer, predicate.ordinal, row_groups)
    except KeyUnavailableError:
        # The steps know whether that is an error or a condition to leave out.
        return None
    if chunks is None:
        return None
    rows = np.array([pruner.footer.rows[index] for index in row_groups], np.int64)
    orders = pruner.footer.metadata.column_orders
    has_order = has_ordered_bounds(orders, predicate.ordinal, predicate.leaf)
    runs = left_by_bounds(chunks, rows, predicate, probe, has_order=has_order)
    return _ColumnSurvivors(predicate=predicate, chunks=chunks, runs=runs)


class _Chunks(Protocol):
    """Fields of chunks, with the bytes that they are places in."""

    @property
    def plain(self) -> bytes: ...
    @property
    def fields(self) -> NDArray[np.int64]: ...


def left_by_bounds(
    chunks: _Chunks,
    rows: NDArray[np.int64],
    predicate: ColumnPredicate,
    probe: ProbeValues,
    *,
    has_order: bool,
) -> NDArray[np.int64]:
    """Return the run of values, (start, end), that the bounds of each chunk leave.

    A start below 0 means that the steps must check the chunk.  ``has_order`` says whether bounds
    are in the order of the type.
    """
    runs, leaf = np.empty((len(rows), 2), np.int64), predicate.leaf
    bits = (
        probe.order.is_little,
        probe.order.is_signed,
        has_order,
        has_signed_order(leaf),
        not leaf.is_required,
    )
    flags = sum(1 << place for place, is_set in enumerate(bits) if is_set)
    extension.native.leave(
        chunks.plain,
        chunks.fields,
        rows,
        probe.path,
        probe.values,
        probe.offsets,
        probe.order.width,
        flags,
        runs,
    )
    return runs
