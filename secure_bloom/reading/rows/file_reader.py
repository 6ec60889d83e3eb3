"""Read the rows of planned row groups: first the predicate's columns, then the others.

A unit is a run of row groups of one file that is decoded together:

    1. Drop row groups whose values turn out not to match (``value_scan``); nothing is decoded.
    2. Decode the predicate's columns, and evaluate the predicate.  Without a match, stop.
    3. Decode the other columns: if few rows match, only the pages that have them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from secure_bloom.errors import (
    FileChangedError,
    FormatError,
    KeyUnavailableError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.parquet.memory_budget import refuse_beyond, reserved
from secure_bloom.parquet.pages import chunk_extent, read_pages
from secure_bloom.parquet.structures.metadata import CompressionCodec
from secure_bloom.predicates.binding import BoundCondition, BoundPredicate
from secure_bloom.predicates.binding import bound_conditions as conditions_of
from secure_bloom.predicates.evaluation import true_rows
from secure_bloom.predicates.request import Request
from secure_bloom.predicates.tree import AllOf, AnyOf
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.pruning.plan import FilePlan, RowGroupPlan, Step
from secure_bloom.reading.rows.decoded_sizes import decoded_size, harmless_size
from secure_bloom.reading.rows.page_reads import (
    Ranges,
    ReadWholeError,
    read_column,
    read_slices,
)
from secure_bloom.reading.rows.pyarrow_source import SourceOpener
from secure_bloom.reading.rows.value_scan import ValueScan
from secure_bloom.reading.table.footer import FileFooter
from secure_bloom.reading.table.hive_partitions import partition_scalar
from secure_bloom.storage import CountedFile, InputFile, open_input
from secure_bloom.storage.counted_file import Extent

Columns = Mapping[str, pa.ChunkedArray]

#: Row groups are decoded together up to so many uncompressed bytes.
_UNIT_BYTES = 64 * 1024 * 1024
#: A row group that is too large for memory is cut into so many parts: of 32 MiB by default.
_PARTS = 8
#: If more than this share of the rows match, the other columns are decoded whole.
_DENSE = 0.1
#: With more runs of matching rows than this, columns are decoded whole, not page by page.
_MAX_RUNS = 1000
#: pyarrow cannot filter view types; cast to these first.
_SELECTED = {pa.string_view().id: pa.large_string(), pa.binary_view().id: pa.large_binary()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Row groups of one file that are decoded together; one that has ranges is alone."""

    reader: FileReader
    row_groups: tuple[RowGroupPlan, ...]
    is_narrowed: bool = False

    def narrowed(self) -> Unit | None:
        """The unit without row groups whose values turn out not to match; None if none is left."""
        if self.is_narrowed:
            return self
        left = self.reader.narrowed(self.row_groups)
        return replace(self, row_groups=tuple(left), is_narrowed=True) if left else None

    def read(self) -> pa.Table | Parts:
        """The rows for which the predicate is true, in the schema of the result.

        If all of them would take too much memory, they come in parts that are decoded later.
        """
        unit = self.narrowed()
        return self.reader.no_rows if unit is None else self.reader.read(unit.row_groups)


class Parts:
    """Rows that are decoded as they are taken, a part at a time."""

    #: What waits here takes no memory.
    nbytes = 0

    def __init__(self, tables: Generator[pa.Table, None, None]) -> None:
        self.tables = tables


class _InPartsError(Exception):
    """Decoded whole, columns would take too much memory."""


def tables_of(rows: pa.Table | Parts) -> Generator[pa.Table, None, None]:
    """What a unit gives, whichever it is."""
    if isinstance(rows, Parts):
        with closing(rows.tables):
            yield from rows.tables
    else:
        yield rows


def units(reader: FileReader) -> list[Unit]:
    """The row groups that the plan of a file leaves, in units."""
    runs = list(_runs(reader.plan))
    reader.units_left = len(runs)
    return [Unit(reader=reader, row_groups=tuple(run)) for run in runs]


def _runs(plan: FilePlan) -> Iterator[list[RowGroupPlan]]:
    run: list[RowGroupPlan] = []
    size = 0
    for group in plan.surviving:
        group_size = plan.footer.row_groups[group.row_group].total_byte_size
        alone = group.ranges is not None or any(before.ranges is not None for before in run)
        if run and (alone or size + group_size > _UNIT_BYTES):
            yield run
            run, size = [], 0
        run.append(group)
        size += group_size
    if run:
        yield run


class FileReader:
    """Reads row groups of one file, a unit at a time; opened with the first, closed by the last.

    ``threads``: pyarrow may use its own.  ``extents`` are what was read, kept with ``count_bytes``.
    ``value_scan`` are those of the whole read, which learn from file to file.  ``open_file`` opens
    a path: the file itself, or one as it might become, with the same pages.
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
    ) -> None:
        self.plan = plan
        self.units_left = 0
        self.is_begun = False
        self.extents: list[Extent] = []
        self._ruled_out: set[int] = set()
        self._found: dict[int, int] = {}
        self._request = request
        self._value_scan = value_scan or ValueScan(PruningContext(request))
        self._opener = opener
        self._open_input = open_file
        self._threads = threads
        self._count_bytes = count_bytes
        self._lock = threading.Lock()
        self._file: InputFile | None = None
        self._pages: CountedFile | None = None
        self._source: pq.ParquetFile | None = None
        self._predicate = _checkable(request.predicate, plan.unchecked)
        present = set(plan.footer.columns.arrow.names) - set(request.partitions)
        looked_at = dict.fromkeys(c.path[0] for c in conditions_of(self._predicate))
        self._filtered = [name for name in looked_at if name in present]
        self._others = [n for n in request.output if n in present and n not in looked_at]
        self._looked_at = tuple(looked_at)

    @property
    def no_rows(self) -> pa.Table:
        """A result without rows."""
        return self._request.no_rows

    def narrowed(self, groups: Sequence[RowGroupPlan]) -> list[RowGroupPlan]:
        """The row groups of a unit that may have matches; if there are none, the unit is done."""
        self.is_begun = True
        with located(path=self.plan.path):
            left = self._left(groups)
        if not left:
            with self._lock:
                self._done_with_unit()
        return left

    def read(self, groups: Sequence[RowGroupPlan]) -> pa.Table | Parts:
        """The matching rows of ``groups``; errors carry path, row group and column."""
        with located(path=self.plan.path), self._lock:
            try:
                table = self._read(groups)
            except _InPartsError:
                return Parts(self._parts(groups))
            self._done_with_unit()
            return table

    def _decoded_size(self, row_groups: Sequence[int], names: Sequence[str]) -> int:
        """The bytes that whole columns take decoded, at most."""
        file, footer = self._open_file(), self.plan.footer
        return sum(
            decoded_size(file, footer.chunk(row_group, ordinal))
            for row_group in row_groups
            for name in names
            for ordinal in footer.columns.below(name)
        )

    def _parts(self, groups: Sequence[RowGroupPlan]) -> Generator[pa.Table, None, None]:
        """As :meth:`_read`, in tables of few rows: a few bytes can stand for gigabytes of them."""
        names = [*self._filtered, *self._others]
        with located(path=self.plan.path), self._lock:
            for group in groups:
                size = max(self._decoded_size([group.row_group], names), 1)
                rows = max(1, harmless_size() // _PARTS * group.rows // size)
                start = self._found[group.row_group] = 0
                for columns, count in self._pieces(group, rows):
                    table = self._kept(columns, count)
                    start += count
                    self._found[group.row_group] += table.num_rows
                    yield table
                if start != group.rows:
                    raise FormatError(f"pyarrow read {start} rows, the footer says {group.rows}")
            self._done_with_unit()

    def _pieces(self, group: RowGroupPlan, rows: int) -> Iterator[tuple[Columns, int]]:
        """The columns of a row group, so many rows at a time, and how many those are."""
        names = [*self._filtered, *self._others]
        if not self.plan.footer.is_verified and self._is_sealed([group.row_group], *names):
            # pyarrow would want its signature, and what is decoded here is decoded whole.
            raise UnsupportedFeatureError("a large row group of a file that was not verified")
        if not names:
            yield {}, group.rows
            return
        self._check_sizes([group.row_group], names)
        batches = self._open_source().iter_batches(
            batch_size=rows, row_groups=[group.row_group], columns=names, use_threads=False
        )
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError, KeyUnavailableError):
                if self._some_levels_are_clear([group.row_group], names):
                    # Whole, as far as the budget goes: these pages are not pyarrow's to cut.
                    yield self._of_pages([group.row_group], names), group.rows
                    return
                self._blame(names)
            if batch is None:
                break
            table = pa.Table.from_batches([batch])
            yield {name: _selectable(table.column(name)) for name in names}, batch.num_rows
        if self._count_bytes:
            self.extents += stored_extents(self.plan.footer, group.row_group, names)

    def _kept(self, columns: Columns, count: int) -> pa.Table:
        """The rows for which the predicate is true; of whole columns it is asked for each row."""
        if self._predicate is None:
            return self._conformed(columns, count, self._request.output)
        keep = self._matches(self._predicate, columns, count)
        mask = pa.array(keep)
        left = {name: column.filter(mask) for name, column in columns.items()}
        return self._conformed(left, int(np.count_nonzero(keep)), self._request.output)

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
        if self._pages is not None:
            self.extents += self._pages.extents
        for opened in (self._source, self._file):
            if opened is not None:
                opened.close()
        self._file = self._pages = self._source = None

    def _left(self, groups: Sequence[RowGroupPlan]) -> list[RowGroupPlan]:
        """The row groups that may have matches; several units of a file may do this at a time."""
        # With ranges only some pages are decoded; a scan would read all of them.
        if self._predicate is None or groups[0].ranges is not None:
            return list(groups)
        with self._lock:
            file = CountedFile(self._open_file())
        out = {
            group.row_group
            for group in groups
            if not self._value_scan.may_match(
                file, self.plan.footer, self._predicate, group.row_group
            )
        }
        with self._lock:
            self.extents += file.extents
            self._ruled_out |= out
        return [group for group in groups if group.row_group not in out]

    def _read(self, groups: Sequence[RowGroupPlan]) -> pa.Table:
        try:
            return self._read_as_planned(groups)
        except ReadWholeError:
            # The ranges come from an index, which costs nothing here not to believe.
            return self._read_as_planned([replace(group, ranges=None) for group in groups])

    def _read_as_planned(self, groups: Sequence[RowGroupPlan]) -> pa.Table:
        count = sum(map(_count, groups))
        columns = self._predicate_columns(groups)
        if self._predicate is None:
            others = self._columns(groups, self._others)
            self._found |= {group.row_group: _count(group) for group in groups}
            return self._conformed({**columns, **others}, count, self._request.output)
        keep = self._matches(self._predicate, columns, count)
        found = self._count_found(groups, keep)
        if found == 0:
            return self.no_rows
        others = self._others_of(groups, keep, found)
        if found < count:
            mask = pa.array(keep)
            columns = {name: column.filter(mask) for name, column in columns.items()}
        return self._conformed({**columns, **others}, found, self._request.output)

    def _matches(
        self, predicate: BoundPredicate, columns: Columns, count: int
    ) -> NDArray[np.bool_]:
        """For which rows the predicate is true."""
        table = self._conformed(columns, count, self._looked_at)
        matches: NDArray[np.bool_] = (
            true_rows(predicate, table).fill_null(False).to_numpy(zero_copy_only=False)
        )
        return matches

    def _count_found(self, groups: Sequence[RowGroupPlan], keep: NDArray[np.bool_]) -> int:
        """How many rows match; the count of each row group is kept."""
        start = 0
        for group in groups:
            end = start + _count(group)
            self._found[group.row_group] = int(np.count_nonzero(keep[start:end]))
            start = end
        return sum(self._found[group.row_group] for group in groups)

    def _others_of(
        self, groups: Sequence[RowGroupPlan], keep: NDArray[np.bool_], found: int
    ) -> Columns:
        """The rows to keep, of the columns that are not the predicate's."""
        if not self._others:
            return {}
        if found > _DENSE * len(keep):
            whole = self._columns(groups, self._others)
            mask = pa.array(keep)
            return {n: c.filter(mask) if found < len(keep) else c for n, c in whole.items()}
        parts, start = [], 0
        for group in groups:
            rows = np.flatnonzero(keep[start : start + _count(group)])
            start += _count(group)
            if len(rows):
                parts.append(self._slices(group, self._others, _runs_of(group, rows)))
        return {
            name: pa.chunked_array([c for part in parts for c in part[name].chunks])
            for name in self._others
        }

    def _predicate_columns(self, groups: Sequence[RowGroupPlan]) -> Columns:
        """The columns that the predicate is evaluated on; ReadWholeError where ranges may be wrong.

        An index that says that pages have other rows than they do makes ranges that miss rows.
        """
        group = groups[0]
        if group.ranges is None:
            return self._columns(groups, self._filtered)
        if len(group.ranges) > _MAX_RUNS:
            raise ReadWholeError
        found = {name: self._read_slices(group, name, group.ranges) for name in self._filtered}
        left = [name for name, column in found.items() if column is None]
        whole = self._rows_of_whole(group, left, group.ranges)
        return whole | {name: column for name, column in found.items() if column is not None}

    def _columns(self, groups: Sequence[RowGroupPlan], names: Sequence[str]) -> Columns:
        """Whole columns of the row groups, or the rows in its ranges of a group that has them."""
        if groups[0].ranges is not None:
            return self._slices(groups[0], names, groups[0].ranges)
        return self._whole([group.row_group for group in groups], names)

    def _slices(self, group: RowGroupPlan, names: Sequence[str], ranges: Ranges) -> Columns:
        """Rows in ``ranges`` of a row group, from single pages where that reads less."""
        found = {}
        for name in names if len(ranges) <= _MAX_RUNS else ():
            with suppress(ReadWholeError):
                column = self._read_slices(group, name, ranges)
                if column is not None:
                    found[name] = column
        return found | self._rows_of_whole(group, [n for n in names if n not in found], ranges)

    def _read_slices(
        self, group: RowGroupPlan, name: str, ranges: Ranges
    ) -> pa.ChunkedArray | None:
        column = read_slices(self._open_pages(), self.plan.footer, group.row_group, name, ranges)
        return None if column is None else _selectable(column)

    def _rows_of_whole(
        self, group: RowGroupPlan, names: Sequence[str], ranges: Ranges
    ) -> dict[str, pa.ChunkedArray]:
        if not names:
            return {}
        indices = pa.array(np.concatenate([np.arange(start, end) for start, end in ranges]))
        whole = self._whole([group.row_group], names)
        return {name: column.take(indices) for name, column in whole.items()}

    def _whole(self, row_groups: Sequence[int], names: Sequence[str]) -> Columns:
        if not self.plan.footer.is_verified:
            sealed = [name for name in names if self._is_sealed(row_groups, name)]
            clear = [name for name in names if name not in sealed]
            return {**self._of_pages(row_groups, sealed), **self._decoded(row_groups, clear)}
        return self._decoded(row_groups, names)

    def _is_sealed(self, row_groups: Sequence[int], *names: str) -> bool:
        """Whether some of the columns is encrypted."""
        footer = self.plan.footer
        return any(
            footer.row_groups[row_group].columns[ordinal].crypto_metadata is not None
            for row_group in row_groups
            for name in names
            for ordinal in footer.columns.below(name)
        )

    def _of_pages(self, row_groups: Sequence[int], names: Sequence[str]) -> Columns:
        """Columns of a file whose signature was not checked, which pyarrow would want to do.

        A footer that we signed would pass, and say of a forged one that it is right.
        """
        file, footer = self._open_pages(), self.plan.footer
        refuse_beyond(self._decoded_size(row_groups, names), "a part of an unverified file")
        found = {
            name: [read_column(file, footer, row_group, name) for row_group in row_groups]
            for name in names
        }
        return {
            name: _selectable(pa.chunked_array([c for part in parts for c in part.chunks]))
            for name, parts in found.items()
        }

    def _decoded(self, row_groups: Sequence[int], names: Sequence[str]) -> Columns:
        """Columns as pyarrow decodes them."""
        if not names:
            return {}
        size = self._decoded_size(row_groups, names)
        if size > harmless_size():
            raise _InPartsError
        self._check_sizes(row_groups, names)
        with reserved(size):
            return self._by_pyarrow(row_groups, names)

    def _by_pyarrow(self, row_groups: Sequence[int], names: Sequence[str]) -> Columns:
        source = self._open_source()
        tables = []
        for row_group in row_groups:
            # One at a time: of several together pyarrow takes what the pages of one have too many
            # for rows of the next.
            try:
                table = source.read_row_groups(
                    [row_group], columns=list(names), use_threads=self._threads
                )
            except (pa.ArrowException, OSError, KeyUnavailableError):
                # parquet-java leaves levels of version 2 pages in clear, which pyarrow does not
                # expect.
                if self._some_levels_are_clear(row_groups, names):
                    return self._of_pages(row_groups, names)
                self._blame(names)
            expected = self.plan.footer.row_groups[row_group].num_rows
            if table.num_rows != expected:
                raise FormatError(f"pyarrow read {table.num_rows} rows, the footer says {expected}")
            tables.append(table)
        if self._count_bytes:
            for row_group in row_groups:
                self.extents += stored_extents(self.plan.footer, row_group, names)
        table = pa.concat_tables(tables)
        return {name: _selectable(table.column(name)) for name in names}

    def _check_sizes(self, row_groups: Sequence[int], names: Sequence[str]) -> None:
        """Raise FormatError for pages without a tag that have other sizes than they should.

        pyarrow checks those of compressed pages alone.
        """
        footer = self.plan.footer
        algorithm = footer.ciphers.algorithm
        if algorithm is None or algorithm.AES_GCM_CTR_V1 is None:
            return
        for row_group in row_groups:
            for ordinal in (i for name in names for i in footer.columns.below(name)):
                chunk = footer.chunk(row_group, ordinal)
                is_stored = chunk.meta_data.codec == CompressionCodec.UNCOMPRESSED
                if chunk.cipher is not None and is_stored:
                    with located(row_group=row_group, column=chunk.leaf.name):
                        read_pages(self._open_pages(), chunk)

    def _some_levels_are_clear(self, row_groups: Sequence[int], names: Sequence[str]) -> bool:
        """Whether levels stand in front of sealed pages; raises for a damaged module."""
        file, footer = self._open_pages(), self.plan.footer
        found = False
        for row_group in row_groups:
            for ordinal in (i for name in names for i in footer.columns.below(name)):
                chunk = footer.chunk(row_group, ordinal)
                with located(row_group=row_group, column=chunk.leaf.name):
                    for page in read_pages(file, chunk):
                        page.body()
                        found |= page.clear > 0
        return found

    def _blame(self, names: Sequence[str]) -> NoReturn:
        """Raise for pages that authenticate and do not decode."""
        # Without the cause: its text may quote a value.
        raise FormatError(
            f"pyarrow cannot decode column {', '.join(names)}",
            hint="if other readers can read the file, please report its writer and version",
        ) from None

    def _open_file(self) -> InputFile:
        """The file, checked to be the one whose footer was read."""
        if self._file is None:
            footer = self.plan.footer
            file = self._open_input(footer.path)
            if file.identity != footer.identity:
                file.close()
                raise FileChangedError(
                    "the file was changed after its footer was read", hint="read it again"
                )
            self._file = file
        return self._file

    def _open_pages(self) -> CountedFile:
        """The file for single pages."""
        if self._pages is None:
            self._pages = CountedFile(self._open_file())
        return self._pages

    def _open_source(self) -> pq.ParquetFile:
        """The same file for pyarrow."""
        if self._source is None:
            file = self._open_file()
            source = self._opener.open(self.plan.footer, self._ordinals(), self._row_groups())
            file.check_unchanged()
            self._source = source
        return self._source

    def _ordinals(self) -> list[int]:
        """The leaves of all columns that are read."""
        names = (*self._filtered, *self._others)
        return [ordinal for name in names for ordinal in self.plan.footer.columns.below(name)]

    def _row_groups(self) -> list[int]:
        return [group.row_group for group in self.plan.surviving]

    def _conformed(self, columns: Columns, count: int, names: Sequence[str]) -> pa.Table:
        """The columns in the types of the table; columns that the file lacks are filled in."""
        fields = [self._request.schema.field(name) for name in names]
        arrays = [self._conformed_column(field, columns.get(field.name), count) for field in fields]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def _conformed_column(
        self, field: pa.Field, column: pa.ChunkedArray | None, count: int
    ) -> pa.ChunkedArray | pa.Array:
        if field.name in self._request.partitions:
            value = partition_scalar(field, self.plan.partition)
            return pa.repeat(value, count) if value.is_valid else pa.nulls(count, field.type)
        if column is None:
            return pa.nulls(count, field.type)
        if column.type == field.type:
            return column
        try:
            return column.cast(field.type)
        except pa.ArrowException:
            raise FormatError(
                f"a value of the column is none of {field.type}, the type it has in the table",
                column=field.name,
            ) from None


def _selectable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in a type that pyarrow can filter; it gets its own type back later."""
    selected = _SELECTED.get(column.type.id)
    return column if selected is None else column.cast(selected)


def stored_extents(footer: FileFooter, row_group: int, names: Sequence[str]) -> list[Extent]:
    """The extents of the column chunks of top-level columns, as far as they can be found out."""
    found = []
    for ordinal in (i for name in names for i in footer.columns.below(name)):
        # This is also called for skipped row groups, whose keys the read does not need.
        with suppress(KeyUnavailableError, FormatError):
            start, length = chunk_extent(footer.chunk(row_group, ordinal))
            found.append((start, min(start + length, footer.size)))
    return found


def _count(group: RowGroupPlan) -> int:
    """How many rows of a row group are decoded."""
    if group.ranges is None:
        return group.rows
    return sum(end - start for start, end in group.ranges)


def _runs_of(group: RowGroupPlan, looked_at: NDArray[np.intp]) -> Ranges:
    """Positions among the decoded rows -> ranges of rows of the row group."""
    rows = looked_at
    if group.ranges is not None:
        rows = np.concatenate([np.arange(start, end) for start, end in group.ranges])[looked_at]
    breaks = np.flatnonzero(np.diff(rows) != 1)
    starts = rows[np.concatenate([[0], breaks + 1])]
    ends = rows[np.concatenate([breaks, [len(rows) - 1]])] + 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def _checkable(
    predicate: BoundPredicate | None, unchecked: frozenset[int]
) -> BoundPredicate | None:
    """The predicate with ``unchecked`` conditions taken as true; None if nothing is left."""
    if predicate is None or isinstance(predicate, BoundCondition):
        return None if predicate is None or predicate.ordinal in unchecked else predicate
    parts = tuple(_checkable(part, unchecked) for part in predicate.parts)
    left = tuple(part for part in parts if part is not None)
    if isinstance(predicate, AnyOf):
        return AnyOf(parts=left) if len(left) == len(parts) else None
    return AllOf(parts=left) if left else None
