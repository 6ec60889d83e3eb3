"""Read the rows of planned row groups: first the predicate's columns, then the others.

A unit is a run of row groups of one file that is decoded together (``units``):

    1. Drop row groups whose values turn out not to match (``value_scan``); nothing is decoded.
    2. Decode the predicate's columns, and evaluate the predicate.  Without a match, stop.
    3. Decode the other columns: if few rows match, only the pages that have them.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.errors import located
from secure_bloom.parquet.decoded_bounds import harmless_size
from secure_bloom.predicates.binding import BoundCondition, BoundPredicate
from secure_bloom.predicates.binding import bound_conditions as conditions_of
from secure_bloom.predicates.bound_request import Request
from secure_bloom.predicates.evaluation import true_rows
from secure_bloom.predicates.tree import AllOf, AnyOf
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.pruning.plan import FilePlan, RowGroupPlan, Step
from secure_bloom.reading.rows.column_decoder import (
    ColumnDecoder,
    Columns,
    DecodeInPartsError,
    conformed,
    with_read_columns,
)
from secure_bloom.reading.rows.equality_deletes import EqualityDeletes
from secure_bloom.reading.rows.opened_file import OpenedFile
from secure_bloom.reading.rows.page_reads import Ranges, ReadWholeError, positions_in
from secure_bloom.reading.rows.pyarrow_source import SourceOpener
from secure_bloom.reading.rows.stored_column import MOST_WALKED
from secure_bloom.reading.rows.value_scan import ValueScan
from secure_bloom.reading.table.kept_chunks import KeptChunks
from secure_bloom.storage import InputFile, open_input
from secure_bloom.storage.inputs import Extent

#: A row group that is too large for memory is cut into this many parts: of 32 MiB by default.
_PARTS = 8
#: If more than this share of the rows match, the other columns are decoded whole.
_DENSE = 0.1
#: Pages that were searched are kept until their rows are read if they have fewer bytes.
_LEAST_DROPPED = 8 * 1024 * 1024

#: Positions of rows in a file or a row group.
Positions = NDArray[np.int64]


class Parts:
    """Rows that are decoded part by part, when they are taken: of each row group its tables.

    Whoever takes the next row group leaves the rest of the one before undecoded.
    """

    #: Parts that wait here take no memory.
    nbytes = 0

    def __init__(self, groups: Generator[Iterator[pa.Table], None, None]) -> None:
        self.groups = groups


class FileReader:
    """Reads row groups of one file, unit by unit. The first unit opens it, the last closes it.

    ``threads``: pyarrow may use its own threads.  ``extents`` are the ranges that were read,
    recorded with ``count_bytes``.  ``value_scan`` belongs to the whole read and learns from file to
    file. ``open_file`` opens a path: the file itself, or a file with the same pages and planned
    filters. ``kept`` is what an open table keeps of chunks.
    """

    def __init__(
        self,
        plan: FilePlan,
        request: Request,
        opener: SourceOpener,
        *,
        value_scan: ValueScan | None = None,
        threads: bool = True,
        count_bytes: bool = False,
        open_file: Callable[[str], InputFile] = open_input,
        kept: KeptChunks | None = None,
    ) -> None:
        self.units_left = 0
        self.is_begun = False
        self.extents: list[Extent] = []
        self._ruled_out: set[int] = set()
        self._found: dict[int, int] = {}
        #: Row groups whose ranges have the rows for which the predicate is true, and no others.
        self._matched: set[int] = set()
        self._request = request
        self._value_scan = value_scan or ValueScan(PruningContext(request))
        self._lock = threading.Lock()
        self._predicate = _checkable(request.predicate, plan.unchecked)
        looked_at = dict.fromkeys(c.path[0] for c in conditions_of(self._predicate))
        self._equality = EqualityDeletes(plan.equality, plan.footer) if plan.equality else None
        keys = () if self._equality is None else self._equality.needed
        plan.footer.refuse_clear(keys)
        self.plan = plan = with_read_columns(plan, request, keys)
        self._looked_at = looked_at
        names = dict.fromkeys([*looked_at, *request.output])
        present = plan.footer.columns.names.intersection(names).difference(request.partitions)
        filtered = dict.fromkeys([*(n for n in looked_at if n in present), *keys])
        self._filtered = list(filtered)
        self._shown = [n for n in request.output if n in present]
        self._others = [n for n in self._shown if n not in filtered]
        decoded, below = self._decoded, plan.footer.columns.below
        self._opened = OpenedFile(
            plan.footer,
            opener,
            # Without this object: a cycle would be left to the garbage collector.
            leaves=lambda: [ordinal for name in decoded for ordinal in below(name)],
            row_groups=[group.row_group for group in plan.surviving],
            count_bytes=count_bytes,
            open_file=open_file,
            kept=kept,
        )
        self._decoder = ColumnDecoder(self._opened, threads=threads, count_bytes=count_bytes)

    @functools.cached_property
    def _first_rows(self) -> Positions:
        """The position in the file of the first row of each row group, and the number of rows."""
        return np.cumsum([0, *self.plan.footer.rows], dtype=np.int64)

    @functools.cached_property
    def _compared(self) -> pa.Schema:
        """The columns of the conditions that are checked."""
        schema = self._request.compared_schema
        if not self.plan.unchecked:
            return schema
        return pa.schema([column for column in schema if column.name in self._looked_at])

    @functools.cached_property
    def _deleted(self) -> Positions | None:
        """The positions of rows that the table has deleted, or None."""
        deleted = self.plan.deleted
        return None if deleted is None else deleted.positions(int(self._first_rows[-1]))

    @property
    def _decoded(self) -> list[str]:
        """The columns that are decoded, the predicate's first."""
        return [*self._filtered, *self._others]

    @property
    def no_rows(self) -> pa.Table:
        """A result without rows."""
        return self._request.no_rows

    def narrowed(self, groups: Sequence[RowGroupPlan]) -> list[RowGroupPlan]:
        """Return the row groups of a unit that may have matches.

        If there is none, the unit is done.
        """
        self.is_begun = True
        with located(path=self.plan.path):
            left = self._left(groups)
        if not left:
            with self._lock:
                self._done_with_unit()
        return left

    def read(self, groups: Sequence[RowGroupPlan]) -> pa.Table | Parts:
        """Return the matching rows of ``groups``. Errors carry path, row group and column."""
        with located(path=self.plan.path), self._lock:
            try:
                table = self._read_each(groups)
            except DecodeInPartsError:
                return Parts(self._parts(groups))
            self._opened.forget([group.row_group for group in groups])
            self._done_with_unit()
            return table

    def _parts(self, groups: Sequence[RowGroupPlan]) -> Generator[Iterator[pa.Table], None, None]:
        """Yield the rows of :meth:`_read` as small tables: a few bytes can expand to gigabytes."""
        with self._lock:
            for group in groups:
                with closing(self._parts_of(group)) as tables:
                    yield tables
            self._done_with_unit()

    def _parts_of(self, group: RowGroupPlan) -> Generator[pa.Table, None, None]:
        with located(path=self.plan.path):
            size = max(self._decoder.decoded_size([group.row_group], self._decoded), 1)
            rows = max(1, harmless_size() // _PARTS * group.rows // size)
            start = self._found[group.row_group] = 0
            for columns, count in self._decoder.pieces(group, self._decoded, rows):
                first = int(self._first_rows[group.row_group]) + start
                table = self._kept(columns, first, count)
                start += count
                self._found[group.row_group] += table.num_rows
                yield table

    def _kept(self, columns: Columns, first: int, count: int) -> pa.Table:
        """Return the matching rows that are not deleted.

        ``first`` is the position of the first row.
        """
        if self._is_kept_whole and self._deleted is None:
            return self._rows_of(columns, count)
        keep = self._kept_by_values(columns, count)
        if self._deleted is not None:
            keep &= _others_than(self._deleted, np.arange(first, first + count))
        mask = pa.array(keep)
        left = {name: column.filter(mask) for name, column in columns.items()}
        return self._rows_of(left, int(np.count_nonzero(keep)))

    def _done_with_unit(self) -> None:
        self.units_left -= 1
        if self.units_left == 0:
            self._close()

    @property
    def row_groups(self) -> tuple[RowGroupPlan, ...]:
        """The file's row groups, with what was found out while they were read."""
        return tuple(
            replace(group, skipped_by=Step.VALUES)
            if group.row_group in self._ruled_out
            else replace(group, rows_found=self._found.get(group.row_group))
            for group in self.plan.row_groups
        )

    def close(self) -> None:
        """Close the file, once no unit is being read."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        self.extents += self._opened.close()
        self.extents += self._decoder.extents
        self._decoder.extents = []

    def _left(self, groups: Sequence[RowGroupPlan]) -> list[RowGroupPlan]:
        """Return the row groups that may have matches, with the ranges of rows if these are few.

        Several units of a file may call this at the same time.
        """
        # With ranges only some pages are decoded; a scan would read all of them.
        if self._predicate is None or groups[0].ranges is not None:
            return list(groups)
        found = [self._searched(self._predicate, group) for group in groups]
        out = {before.row_group for before, now in zip(groups, found, strict=True) if now is None}
        self._opened.forget(out)
        self._opened.forget([group.row_group for group in groups], least=_LEAST_DROPPED)
        with self._lock:
            self._ruled_out |= out
        return [group for group in found if group is not None]

    def _searched(self, predicate: BoundPredicate, group: RowGroupPlan) -> RowGroupPlan | None:
        """Return a row group with the rows that may match, or None if no row does."""
        row_group = group.row_group
        # Chunks are looked at only where their answer counts: each must be decoded for it.
        most_taken = functools.cache(lambda: self._most_taken(group))

        def are_few(count: int) -> bool:
            return count <= min(MOST_WALKED, _DENSE * group.rows) or count <= most_taken()

        rows = self._value_scan.rows(
            lambda ordinal: self._opened.column(row_group, ordinal),
            self.plan.footer,
            predicate,
            are_few,
        )
        if rows is None or not are_few(len(rows.positions)):
            return group
        if not len(rows.positions):
            return None
        if rows.are_exact:
            self._matched.add(row_group)
        return replace(group, ranges=tuple(_runs(rows.positions)))

    def _most_taken(self, group: RowGroupPlan) -> float:
        """Return the most rows that are read one by one, not with their row group."""
        chunks = self.plan.footer.row_groups[group.row_group].columns
        leaves = (i for name in self._decoded for i in self.plan.footer.columns.below(name))
        has_index = any(chunks[ordinal].offset_index_offset is not None for ordinal in leaves)
        return _DENSE * group.rows if has_index else MOST_WALKED

    def _read_each(self, groups: Sequence[RowGroupPlan]) -> pa.Table:
        """Return the matching rows of row groups. Some row groups may have ranges."""
        tables, together = list[pa.Table](), list[RowGroupPlan]()
        for group in groups:
            if group.ranges is None:
                together.append(group)
                continue
            if together:
                tables.append(self._read(together))
                together = []
            tables.append(self._read([group]))
        if together:
            tables.append(self._read(together))
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)

    def _read(self, groups: Sequence[RowGroupPlan]) -> pa.Table:
        try:
            return self._read_as_planned(groups)
        except ReadWholeError:
            # The ranges come from an index, which costs nothing here not to believe.
            return self._read_as_planned([replace(group, ranges=None) for group in groups])

    def _read_as_planned(self, groups: Sequence[RowGroupPlan]) -> pa.Table:
        count = sum(map(_count, groups))
        if self._is_kept_whole or self._is_matched(groups[0]):
            return self._all_rows(groups, count)
        columns = self._decoder.checked_rows(groups, self._filtered)
        keep = self._kept_by_values(columns, count)
        if self._deleted is not None:
            keep = keep & self._lives(self._deleted, groups)
        found = self._count_found(groups, keep)
        if found == 0:
            return self.no_rows
        others = self._others_of(groups, keep, found)
        if found < count:
            mask = pa.array(keep)
            columns = {name: column.filter(mask) for name, column in columns.items()}
        return self._rows_of({**columns, **others}, found)

    def _all_rows(self, groups: Sequence[RowGroupPlan], count: int) -> pa.Table:
        """Return the undeleted rows of row groups in which all undeleted rows match."""
        columns = self._decoder.rows(groups, self._shown)
        if self._deleted is None:
            self._found |= {group.row_group: _count(group) for group in groups}
            return self._rows_of(columns, count)
        keep = self._lives(self._deleted, groups)
        mask, found = pa.array(keep), self._count_found(groups, keep)
        return self._rows_of({n: column.filter(mask) for n, column in columns.items()}, found)

    def _rows_of(self, columns: Columns, count: int) -> pa.Table:
        """Return columns as rows of the result."""
        return conformed(self.plan, self._request, columns, count, self._request.output_schema)

    def _lives(self, deleted: Positions, groups: Sequence[RowGroupPlan]) -> NDArray[np.bool_]:
        """Return a mask of decoded rows that are not ``deleted``, by their position in the file."""
        first = self._first_rows
        rows = np.concatenate([first[group.row_group] + _rows(group) for group in groups])
        return _others_than(deleted, rows)

    def _is_matched(self, group: RowGroupPlan) -> bool:
        """Return whether the ranges of a row group contain exactly the rows that match."""
        has_rows = group.ranges is not None and group.row_group in self._matched
        return has_rows and self._equality is None

    @property
    def _is_kept_whole(self) -> bool:
        """Whether all rows are in the result whatever their values, unless deleted by position."""
        return self._predicate is None and self._equality is None

    def _kept_by_values(self, columns: Columns, count: int) -> NDArray[np.bool_]:
        """Return a mask of the rows that match and that no equality delete removes."""
        keep = np.ones(count, np.bool_)
        if self._predicate is not None:
            keep &= self._matches(self._predicate, columns, count)
        if self._equality is not None and keep.any():
            keep &= self._equality.lives(columns, count)
        return keep

    def _matches(
        self, predicate: BoundPredicate, columns: Columns, count: int
    ) -> NDArray[np.bool_]:
        """Return a mask of the rows for which the predicate is true."""
        table = conformed(self.plan, self._request, columns, count, self._compared)
        matches: NDArray[np.bool_] = (
            true_rows(predicate, table).fill_null(False).to_numpy(zero_copy_only=False)
        )
        return matches

    def _count_found(self, groups: Sequence[RowGroupPlan], keep: NDArray[np.bool_]) -> int:
        """Return the number of rows that match. The number for each row group is recorded."""
        start = 0
        for group in groups:
            end = start + _count(group)
            self._found[group.row_group] = int(np.count_nonzero(keep[start:end]))
            start = end
        return sum(self._found[group.row_group] for group in groups)

    def _others_of(
        self, groups: Sequence[RowGroupPlan], keep: NDArray[np.bool_], found: int
    ) -> Columns:
        """Return the rows to keep of the columns that the predicate does not use."""
        if not self._others:
            return {}
        if found > _DENSE * len(keep):
            whole = self._decoder.rows(groups, self._others)
            mask = pa.array(keep)
            return {n: c.filter(mask) if found < len(keep) else c for n, c in whole.items()}
        parts, start = [], 0
        for group in groups:
            rows = np.flatnonzero(keep[start : start + _count(group)])
            start += _count(group)
            if len(rows):
                parts.append(self._decoder.slices(group, self._others, _runs_of(group, rows)))
        return {
            name: pa.chunked_array([c for part in parts for c in part[name].chunks])
            for name in self._others
        }


def _others_than(deleted: Positions, rows: Positions) -> NDArray[np.bool_]:
    """Return a mask of ``rows`` that are not ``deleted``.

    Both are ascending, so nothing is sorted.
    """
    if not len(deleted):
        return np.ones(len(rows), np.bool_)
    place = np.searchsorted(deleted, rows)
    np.minimum(place, len(deleted) - 1, out=place)
    return np.asarray(deleted[place] != rows)


def _count(group: RowGroupPlan) -> int:
    """Return how many rows of a row group are decoded."""
    if group.ranges is None:
        return group.rows
    return sum(end - start for start, end in group.ranges)


def _rows(group: RowGroupPlan) -> Positions:
    """Return the positions, in its row group, of the rows that are decoded."""
    return positions_in([(0, group.rows)] if group.ranges is None else group.ranges)


def _runs_of(group: RowGroupPlan, looked_at: NDArray[np.intp]) -> Ranges:
    """Return ranges of rows of the row group, from positions among the decoded rows."""
    return _runs(looked_at if group.ranges is None else _rows(group)[looked_at])


def _runs(rows: Positions) -> Ranges:
    """Return ascending rows as ranges."""
    if len(rows) == 1:
        return [(int(rows[0]), int(rows[0]) + 1)]
    breaks = np.flatnonzero(np.diff(rows) != 1)
    starts = rows[np.concatenate([[0], breaks + 1])]
    ends = rows[np.concatenate([breaks, [len(rows) - 1]])] + 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def _checkable(
    predicate: BoundPredicate | None, unchecked: frozenset[int]
) -> BoundPredicate | None:
    """Return the predicate with the conditions numbered in ``unchecked`` taken as true.

    Return None if it is then always true.
    """
    if predicate is None or isinstance(predicate, BoundCondition):
        return None if predicate is None or predicate.ordinal in unchecked else predicate
    parts = tuple(_checkable(part, unchecked) for part in predicate.parts)
    left = tuple(part for part in parts if part is not None)
    if isinstance(predicate, AnyOf):
        return AnyOf(parts=left) if len(left) == len(parts) else None
    return AllOf(parts=left) if left else None
