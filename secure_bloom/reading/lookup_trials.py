"""Explain many lookups in the same few files, as they are or as they would be with filters.

The footers are read once. For the column that is looked up, the planner and the reader of
ordinary reads do the work, so the bytes are those that ``explain`` reports. For the other
columns, the bytes that a lookup reads where it finds rows are measured once for each row group.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import SecureBloomError, located
from secure_bloom.lakes.hive_partitions import Values
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import Footer, read_footer
from secure_bloom.parquet.members import Member, below, restricted
from secure_bloom.predicates.bound_request import Request, request, whole_schema
from secure_bloom.predicates.from_tuples import from_structure
from secure_bloom.reading.file_reports import FileReadReport, file_report
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.pruning.plan import FilePlan, RowGroupPlan
from secure_bloom.reading.pruning.plan_table import Planner
from secure_bloom.reading.rows.column_decoder import selectable
from secure_bloom.reading.rows.file_reader import FileReader, Parts
from secure_bloom.reading.rows.pyarrow_source import SourceOpener
from secure_bloom.reading.rows.units import Unit, tables_of, units
from secure_bloom.reading.rows.value_scan import ValueScan
from secure_bloom.running.memory_budget import MemoryShare, memory_budget
from secure_bloom.storage import CountedFile, InputFile, open_input
from secure_bloom.storage.column_mapping import ColumnMapping

#: Row groups of files, by path.
RowGroups = Mapping[str, Sequence[int]]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialTable:
    """The table that the files belong to: its schema, and the partition values of the files.

    ``output`` are the columns that a read returns, or None for all.  ``names`` maps the table's
    column names to the names or ids in its files, or is None if files have the table's names.
    """

    schema: pa.Schema
    output: tuple[str, ...] | None = None
    partition_fields: tuple[pa.Field, ...] = ()
    partitions: Mapping[str, Values] = field(default_factory=dict)
    names: ColumnMapping | None = None

    @cached_property
    def whole(self) -> pa.Schema:
        """All columns of the table."""
        return whole_schema(self.schema, self.partition_fields)

    def request(self, columns: Sequence[str] | None, where: object) -> Request:
        """Return a request for these columns. Raises PolicyError for an invalid one."""
        return request(self.whole, self.partition_fields, columns, from_structure(where), ())


class _Alone:
    """One column of a table, handled without the other columns.

    The other columns, which may be thousands, are left out of its schema and of the footers, so
    that lookups spend no time on them.
    """

    def __init__(self, table: TrialTable, path: Member) -> None:
        column = table.whole.field(path[0])
        kept = restricted(column, lambda member: below(member, [path]))
        self.path, self.schema = path, pa.schema([kept or column])
        self._read = replace(request(table.whole, (), None, None, ()), output_schema=self.schema)
        self._footers: dict[str, Footer] = {}

    def request(self, where: object) -> Request:
        """Return the request for the column. Raises PolicyError for an invalid condition."""
        predicate = None if where is None else from_structure(where)
        return request(self.schema, (), None, predicate, ())

    def footer(self, footer: Footer) -> Footer:
        """Return the footer of a file with this column alone."""
        if footer.path not in self._footers:
            columns = self._read.reads(footer.columns)
            self._footers[footer.path] = footer.with_columns(columns)
        return self._footers[footer.path]


#: Bytes that a distinct value takes while it is counted, beside copies of the value itself.
_DISTINCT, _COPIES = 256, 16
#: Bytes of parsed footers that stay in memory.
_PARSED = 64 * 1024 * 1024


class OtherColumns:
    """Estimates the bytes of the other columns that a lookup reads where it finds rows.

    The share of these bytes is measured once for each row group and order of magnitude of the
    number of rows found. All trials use it.
    """

    def __init__(self) -> None:
        self._sizes: dict[tuple[str, int], dict[Member, int]] = {}
        self._shares: dict[tuple[str, int, int], float] = {}

    def bytes(
        self, footer: Footer, found: RowGroupPlan, beside: Member, measure: Callable[[], int]
    ) -> int:
        """Return about how many bytes a lookup reads of all columns except ``beside``.

        ``measure`` returns the exact number for this lookup.
        """
        rows, place = found.rows_found or 0, (footer.path, found.row_group)
        if place not in self._sizes:
            self._sizes[place] = _chunk_sizes(footer, found.row_group)
        sizes = self._sizes[place]
        size = sizes[()] - sizes.get(beside, 0)
        key = (*place, rows.bit_length())
        if key not in self._shares:
            self._shares[key] = measure() / max(1, size)
        return round(self._shares[key] * size)


def _chunk_sizes(footer: Footer, row_group: int) -> dict[Member, int]:
    """Return the sizes of the columns of a row group and of their members, as its footer says.

    The size of all columns is at the empty path.
    """
    found: dict[Member, int] = {(): 0}
    for ordinal, leaf in enumerate(footer.leaves):
        # A column without a key, or with wrong offsets, is left to whoever reads it.
        with suppress(SecureBloomError):
            meta_data = footer.chunk_to_read(row_group, ordinal).meta_data
            size = max(0, meta_data.total_compressed_size)
            for depth in range(len(leaf.path) + 1):
                above = leaf.path[:depth]
                found[above] = found.get(above, 0) + size
    return found


class _Lookup:
    """One request, and what is kept while its row groups are checked.

    ``footer`` returns the footer of a file with the columns that the request knows.
    """

    def __init__(
        self, asked: Request, footer: Callable[[str], Footer], ignores_filters: bool
    ) -> None:
        context = PruningContext(asked, ignores_filters=ignores_filters, explain=True)
        self.asked, self.footer = asked, footer
        self.value_scan, self.planner = ValueScan(context), Planner(context)


class LookupTrials:
    """Reads of files of one table, for one condition after another. ``open_file`` opens them.

    With ``ignores_filters`` files are read as if they had no Bloom filters. ``like`` are trials
    of the same table, whose schemas are reused.
    """

    def __init__(
        self,
        table: TrialTable,
        resolver: KeyResolver,
        *,
        open_file: Callable[[str], InputFile] = open_input,
        ignores_filters: bool = False,
        like: LookupTrials | None = None,
    ) -> None:
        self._table = table
        self._ignores_filters = ignores_filters
        self._resolver = resolver
        self._open_file = open_file
        # What pyarrow has parsed of plain files stays: each lookup opens them anew.
        self._opener = SourceOpener(resolver, MemoryShare(_PARSED).account())
        # What is known of the table's schemas and other columns is shared with ``like``.
        self._schemas: SchemaCache = SchemaCache(table.names) if like is None else like._schemas
        self._others: OtherColumns = OtherColumns() if like is None else like._others
        self._footers: dict[str, Footer] = {}
        self._alone: _Alone | None = None

    def explain(
        self, column: Sequence[str], value: pa.Scalar, row_groups: RowGroups
    ) -> list[FileReadReport]:
        """Return a report for each file on a lookup of a value in these row groups."""
        where = (tuple(column), "=", value)
        lookup = self._lookup(column, where)
        reports = []
        for path, groups in row_groups.items():
            with located(path=path):
                report = self._report(lookup, path, groups)
                others = sum(
                    self._beside(path, group, where)
                    for group in report.row_groups
                    if group.rows_found
                )
                reports.append(replace(report, bytes_pages=report.bytes_pages + others))
        return reports

    def _lookup(self, column: Sequence[str], where: object) -> _Lookup:
        alone = self._column(column)
        return _Lookup(
            alone.request(where),
            lambda path: alone.footer(self._footer(path)),
            self._ignores_filters,
        )

    def _column(self, path: Sequence[str]) -> _Alone:
        # Columns are tried one after the other.
        if self._alone is None or self._alone.path != tuple(path):
            self._alone = _Alone(self._table, tuple(path))
        return self._alone

    def _report(self, lookup: _Lookup, path: str, groups: Sequence[int]) -> FileReadReport:
        plan = self._plan(lookup, path, groups)
        reader = self._reader(plan, lookup.asked, lookup.value_scan)
        for _ in _tables(reader, _until_found):
            # Rows are not kept: a common value has nearly all of them.
            pass
        needed = lookup.asked.needed
        return file_report(plan, reader.row_groups, reader.extents, needed, describes_file=False)

    def _beside(
        self, path: str, found: RowGroupPlan, where: tuple[tuple[str, ...], str, pa.Scalar]
    ) -> int:
        """Return about how many bytes of the other columns a lookup reads in a row group."""
        column = where[0]

        def measured() -> int:
            every = self._table.request(self._table.output, where)
            lookups = (
                _Lookup(every, self._footer, self._ignores_filters),
                self._lookup(column, where),
            )
            whole, own = (self._report(it, path, [found.row_group]).bytes_pages for it in lookups)
            return whole - own

        return self._others.bytes(self._footer(path), found, column, measured)

    def values(self, path: str, row_group: int, column: Sequence[str]) -> pa.ChunkedArray:
        """Return values, without nulls, of the column at a path in one row group.

        The values of a list are its elements.  Of a large row group a part is returned, whose rows
        are evenly spaced: callers sort the values and count distinct ones, which takes many times
        their size.
        """
        alone = self._column(column)
        footer = alone.footer(self._footer(path))
        group = RowGroupPlan(row_group=row_group, rows=footer.rows[row_group])
        plan = FilePlan(
            path=path, footer=footer, partition=self._table.partitions[path], row_groups=(group,)
        )
        reader = self._reader(plan, alone.request(None), None)
        parts = [_values_at(reader.no_rows, column[1:])]
        with located(path=path, row_group=row_group), closing(_tables(reader)) as tables:
            parts += (
                _some(_values_at(part, column[1:]), len(part) / group.rows)
                for part in filter(len, tables)
            )
        return pa.chunked_array([c for part in parts for c in part.chunks], parts[0].type)

    def _footer(self, path: str) -> Footer:
        if path not in self._footers:
            with located(path=path), self._open_file(path) as file:
                footer = read_footer(file, self._resolver, self._schemas)
            self._footers[path] = footer
        return self._footers[path]

    def _plan(self, lookup: _Lookup, path: str, row_groups: Sequence[int]) -> FilePlan:
        planner, footer = lookup.planner, lookup.footer(path)
        left = dict.fromkeys(row_groups, frozenset[int]())
        started = planner.begin(footer, self._table.partitions[path], left=left)
        plan = planner.plan_by_footer(started)
        if plan is not None:
            return plan
        with self._open_file(path) as file:
            return planner.plan(started, lambda: CountedFile(file))

    def _reader(self, plan: FilePlan, asked: Request, value_scan: ValueScan | None) -> FileReader:
        return FileReader(
            plan,
            asked,
            self._opener,
            value_scan=value_scan,
            # One column of a row group: to wake other threads takes longer.
            threads=False,
            count_bytes=True,
            open_file=self._open_file,
        )


def _values_at(part: pa.Table, members: Sequence[str]) -> pa.ChunkedArray:
    """Return the values, without nulls, of the first column, or of a member of it."""
    found = part.column(0)
    for member in members:
        found = pc.struct_field(found, member)
    if pa.types.is_list(found.type) or pa.types.is_large_list(found.type):
        found = pc.list_flatten(found)
    return selectable(found).drop_null()


def _some(found: pa.ChunkedArray, share: float) -> pa.ChunkedArray:
    """Return evenly spaced values: as many as this share of a row group may have in memory."""
    most = share * memory_budget()
    step = math.ceil(max(len(found) * _DISTINCT, found.nbytes * _COPIES, 1) / most)
    return found if step == 1 else found.take(pa.array(np.arange(0, len(found), step)))


def _tables(
    reader: FileReader, taken: Callable[[pa.Table | Parts], Iterator[pa.Table]] = tables_of
) -> Generator[pa.Table, None, None]:
    """Yield the rows that the plan of a file leaves, and close the file at the end."""
    try:
        for unit in filter(None, map(Unit.narrowed, units(reader))):
            yield from taken(unit.read())
    finally:
        reader.close()


def _until_found(rows: pa.Table | Parts) -> Iterator[pa.Table]:
    """Yield the tables of a unit's rows: of each row group up to the first with a row.

    A row group that is decoded in parts is read whole in any case, and a few bytes of it may hold
    a common value millions of times.
    """
    if isinstance(rows, Parts):
        with closing(rows.groups):
            for tables in rows.groups:
                yield from itertools.islice(filter(len, tables), 1)
