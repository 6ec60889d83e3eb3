"""Explain many reads of the same few files, as they are or as they would be with filters.

The footers are read once.  Everything else is done by the planner and the reader of a read of the
whole table, so the bytes are those that ``explain`` reports for these files.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import located
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import Footer, read_footer
from secure_bloom.predicates.bound_request import Request, request, whole_schema
from secure_bloom.predicates.from_tuples import from_structure
from secure_bloom.reading.file_reports import FileReadReport, file_report
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.pruning.plan import FilePlan, RowGroupPlan
from secure_bloom.reading.pruning.plan_file import Planner
from secure_bloom.reading.rows.file_reader import FileReader
from secure_bloom.reading.rows.pyarrow_source import SourceOpener
from secure_bloom.reading.rows.units import Unit, tables_of, units
from secure_bloom.reading.rows.value_scan import ValueScan
from secure_bloom.reading.table.hive_partitions import Values
from secure_bloom.storage import CountedFile, InputFile, open_input
from secure_bloom.storage.column_mapping import ColumnMapping
from secure_bloom.storage.memory_budget import refuse_beyond

#: Row groups of files, by path.
RowGroups = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialTable:
    """The table that the files belong to: its schema, and the partition values of the files.

    ``output`` are the columns that a read returns, or None for all.  ``names`` are the table's
    names of columns, if its files have others.
    """

    schema: pa.Schema
    output: tuple[str, ...] | None = None
    partition_fields: tuple[pa.Field, ...] = ()
    partitions: Mapping[str, Values] = field(default_factory=dict)
    names: ColumnMapping | None = None

    def request(self, columns: Sequence[str] | None, where: object) -> Request:
        """Return a request to the table. Raises PolicyError for an invalid one."""
        predicate = None if where is None else from_structure(where)
        schema = whole_schema(self.schema, self.partition_fields)
        return request(schema, self.partition_fields, columns, predicate, ())


class LookupTrials:
    """Reads of files of one table, for one condition after another. ``open_file`` opens them.

    With ``ignores_filters`` the reads are those of files without Bloom filters.
    """

    def __init__(
        self,
        table: TrialTable,
        resolver: KeyResolver,
        *,
        open_file: Callable[[str], InputFile] = open_input,
        ignores_filters: bool = False,
    ) -> None:
        self._table = table
        self._ignores_filters = ignores_filters
        self._resolver = resolver
        self._open_file = open_file
        self._opener = SourceOpener(resolver)
        self._schemas = SchemaCache(table.names)
        self._footers: dict[str, Footer] = {}

    def explain(self, where: object, row_groups: RowGroups) -> list[FileReadReport]:
        """Return a report for each file on a read of these row groups."""
        asked = self._table.request(self._table.output, where)
        context = PruningContext(asked, ignores_filters=self._ignores_filters, explain=True)
        value_scan, planner = ValueScan(context), Planner(context)
        reports = []
        for path, groups in row_groups.items():
            with located(path=path):
                plan = self._plan(planner, path, groups)
                reader = self._reader(plan, asked, value_scan)
                for _ in _tables(reader):
                    # Rows are not kept: a common value has nearly all of them.
                    pass
                reports.append(file_report(plan, reader.row_groups, reader.extents, asked.needed))
        return reports

    def values(self, path: str, row_group: int, column: Sequence[str]) -> pa.ChunkedArray:
        """Return the values, without nulls, of the column at a path in one row group.

        The values of a list are its elements.  Raises MemoryBudgetError if they would take more
        memory than decoding may.
        """
        asked = self._table.request([column[0]], None)
        footer = self._footer(path)
        group = RowGroupPlan(row_group=row_group, rows=footer.rows[row_group])
        plan = FilePlan(
            path=path, footer=footer, partition=self._table.partitions[path], row_groups=(group,)
        )
        reader = self._reader(plan, asked, None)
        parts, size = [reader.no_rows], 0
        with located(path=path, row_group=row_group), closing(_tables(reader)) as tables:
            for part in tables:
                size += part.nbytes
                # Parts were decoded within the budget one by one, but all of them are held.
                refuse_beyond(size, f"column {column[0]}, as a whole,")
                parts.append(part)
        found = pa.concat_tables(parts).column(0)
        for member in column[1:]:
            found = pc.struct_field(found, member)
        if pa.types.is_list(found.type) or pa.types.is_large_list(found.type):
            found = pc.list_flatten(found)
        return found.drop_null()

    def _footer(self, path: str) -> Footer:
        if path not in self._footers:
            with located(path=path), self._open_file(path) as file:
                footer = read_footer(file, self._resolver, self._schemas)
            self._footers[path] = footer
        return self._footers[path]

    def _plan(self, planner: Planner, path: str, row_groups: Sequence[int]) -> FilePlan:
        footer = self._footer(path)
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
            count_bytes=True,
            open_file=self._open_file,
        )


def _tables(reader: FileReader) -> Generator[pa.Table, None, None]:
    """Yield the rows that the plan of a file leaves, and close the file at the end."""
    try:
        for unit in filter(None, map(Unit.narrowed, units(reader))):
            yield from tables_of(unit.read())
    finally:
        reader.close()
