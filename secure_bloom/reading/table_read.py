"""One read of a table: its batches or its plan, and a report at the end.

The schema of a table is made from all footers.  After that, some files at a time are planned,
decoded and filtered exactly.  Batches are in the order of the files and their rows.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Protocol, Self

import pyarrow as pa

from secure_bloom.calling.options import MissingKeys
from secure_bloom.encryption.access import Access, GivenKeys
from secure_bloom.errors import FileChangedError, located
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import read_footer
from secure_bloom.parquet.members import Member
from secure_bloom.predicates.bound_request import HiddenColumns, request, with_hidden, without
from secure_bloom.predicates.tree import leaves
from secure_bloom.reading.file_reports import FileReadReport, file_report
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.pruning.kept_columns import KeptColumns
from secure_bloom.reading.pruning.plan import FilePlan, PlannedFile, ReadPlan
from secure_bloom.reading.pruning.plan_table import PlannedFiles, PlannedRun
from secure_bloom.reading.read_report import ReadReport
from secure_bloom.reading.read_request import Question
from secure_bloom.reading.rows.column_decoder import stored_extents, with_read_columns
from secure_bloom.reading.rows.file_reader import FileReader
from secure_bloom.reading.rows.pyarrow_source import SourceOpener
from secure_bloom.reading.rows.units import BATCH_ROWS, Unit, tables_of, units
from secure_bloom.reading.rows.value_scan import ValueScan
from secure_bloom.reading.table.table_files import TableFiles
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import open_input

_DECODERS = min(8, os.cpu_count() or 1)
#: Search values early if a plan leaves at most this many units per file; and in how many units at
#: once.
_FEW, _NARROWED_TOGETHER = 0.25, 16
#: Bytes of decoded rows that may wait for the rows before them; the least that a table counts for.
_WAITING_BYTES, _LEAST_BYTES = 64 * 1024 * 1024, 256 * 1024


class AskedTable(Protocol):
    """The part of an open table that the scans of Polars and DuckDB use; see :class:`.Table`."""

    def ask(self, question: Question, *, unused: frozenset[Member] = frozenset()) -> TableRead:
        """Return one read, without the ``unused`` members of structures."""

    def countable(self, names: Sequence[str]) -> str:
        """Return a column by which rows are counted."""

    def hidden(self, missing_keys: MissingKeys) -> HiddenColumns:
        """Return the columns whose key is missing, as a read sees them."""

    def intervals(self) -> frozenset[str]:
        """Return the columns that are an INTERVAL in Parquet."""

    def missing_keys(self, given: str | None) -> MissingKeys:
        """Return how hidden columns are read."""

    def shown_schema(self, hidden: HiddenColumns) -> pa.Schema:
        """Return the schema of a read: hidden columns are null or left out."""


class TableRead:
    """One read of a table: take its batches or its plan, then its report."""

    def __init__(
        self,
        files: TableFiles,
        access: Access,
        asked: Question,
        kept: KeptColumns | None = None,
        *,
        missing_keys: MissingKeys = MissingKeys.ERROR,
        explain: bool = False,
        unused: frozenset[Member] = frozenset(),
    ) -> None:
        self._access = access
        self._limit = asked.whole_limit()
        wanted = asked.wanted_columns()
        self._predicate = asked.predicate()
        self._files, self._kept = files, kept
        self._explain = explain
        self._clock = _Clock()
        self._reports: dict[str, FileReadReport] = {}
        self._open_readers: list[FileReader] = []
        self._rows = 0
        with self._clock("footers"):
            schema = files.whole_schema
        if files.united is not None:
            tested = () if self._predicate is None else leaves(self._predicate)
            names = schema.names if wanted is None else wanted
            files.united.check([*names, *(condition.column for condition in tested)])
        asked_for = request(schema, files.partition_fields, wanted, self._predicate, files.paths)
        if unused:
            asked_for = with_hidden(asked_for, without(unused), by_name=False)
        elif missing_keys is not MissingKeys.ERROR:
            hidden = HiddenColumns(mode=missing_keys, members=files.hidden(asked_for.needed))
            asked_for = with_hidden(asked_for, hidden, by_name=wanted is not None)
        self.request = asked_for
        self._workers = 1 if files.are_tiny else _DECODERS
        self._context = PruningContext(
            self.request, without_filter_keys=asked.without_filter_keys, explain=explain
        )

    @property
    def paths(self) -> list[str]:
        """The files of the table."""
        return list(self._files.paths)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self.request.output_schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in the order of the files. Can be iterated once."""
        left = self._limit
        for table in self._tables():
            part = table if left is None else table.slice(0, min(left, table.num_rows))
            left = None if left is None else left - part.num_rows
            self._rows += part.num_rows
            yield from part.to_batches(max_chunksize=BATCH_ROWS)
            if left == 0:
                return

    def stream(self) -> pa.RecordBatchReader:
        """Return the rows as an Arrow stream, which other libraries take. Can be read once."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def rows(self) -> pa.Table:
        """Return all rows, in the order of the files."""
        return pa.Table.from_batches(self.batches(), schema=self.schema)

    def explained(self) -> ReadReport:
        """Take all batches, drop them, and return a report on what was read."""
        for _ in self.batches():
            pass
        return self.report()

    def plan(self) -> ReadPlan:
        """Return the row groups that may have rows. No row group is read."""
        files = [
            PlannedFile(
                path=plan.path,
                size=plan.footer.size,
                written=plan.footer.written,
                digest=plan.footer.digest,
                row_groups=plan.surviving,
                partition=plan.partition,
                unchecked=plan.unchecked,
                deleted=plan.deleted,
                equality=plan.equality,
                fills=plan.fills,
            )
            for found in self._runs()
            for plan in found.plans
            if plan.surviving
        ]
        return ReadPlan(
            schema=self.schema,
            files=tuple(files),
            table=self.request.schema,
            partitions=self.request.partitions,
            predicate=self._predicate,
            # A plan travels to where keys must not.
            access=replace(self._access, keys=None),
            names=self._files.state.names,
            hidden=self.request.hidden,
        )

    def planned(self) -> ReadReport:
        """Return a report on what would be read.

        No row is read, and whole row groups count as read.
        """
        for found in self._runs():
            for plan in found.plans:
                plan = with_read_columns(plan, self.request)
                pages = [
                    extent
                    for group in plan.surviving
                    for extent in stored_extents(plan.footer, group.row_group, self.request.needed)
                ]
                self._reports[plan.path] = file_report(
                    plan, plan.row_groups, pages, self.request.needed
                )
        return replace(self.report(), rows=None)

    def report(self) -> ReadReport:
        """Return a report on what was read so far, and why."""
        return ReadReport(
            rows=self._rows,
            has_condition=self._predicate is not None,
            files_left=len(self._files) - len(self._reports),
            unverified=tuple(self._files.unverified),
            hidden=self.request.hidden.names,
            files=tuple(self._reports[path] for path in self._files.paths if path in self._reports),
            seconds=dict(self._clock.seconds),
        )

    @functools.cached_property
    def _planned(self) -> PlannedFiles:
        return PlannedFiles(self._files, self._context, self._kept)

    def _runs(self) -> Iterator[PlannedRun]:
        runs = iter(self._planned)
        while True:
            with self._clock("planning"):
                found = next(runs, None)
            if found is None:
                return
            yield found

    def _tables(self) -> Iterator[pa.Table]:
        """Yield the matching rows, unit by unit."""
        if self._limit == 0:
            return
        with self._clock("planning"):
            if self._planned.are_none:
                return
            if self._planned.are_few:
                self._workers = 1
        tables = in_order(
            Unit.read,
            self._units(),
            self._workers,
            size=lambda rows: max(rows.nbytes, _LEAST_BYTES),
            room=_WAITING_BYTES,
        )
        try:
            while True:
                with self._clock("rows"):
                    rows = next(tables, None)
                if rows is None:
                    return
                # Closed before files are: what is decoded as it is taken holds its file.
                with closing(tables_of(rows)) as parts:
                    yield from parts
        finally:
            tables.close()
            for reader in tuple(self._open_readers):
                self._finish(reader)

    def _units(self) -> Iterator[Unit]:
        """Yield the units that the plans leave, in order.

        Decoding many units runs well in parallel with planning the next files.  Searching values in
        few units does not: both need Python's lock and slow each other down.  So if plans leave few
        units, they are searched before the next files are planned.
        """
        opener, value_scan = self._files.opener, ValueScan(self._context)
        for run in self._runs():
            readers = [
                FileReader(
                    plan,
                    self.request,
                    opener,
                    value_scan=value_scan,
                    threads=len(self._files) < self._workers,
                    count_bytes=self._explain,
                    open_file=partial(self._files.reopen, plan.footer),
                    kept=self._files.chunks,
                )
                for plan in run.plans
            ]
            self._open_readers += readers
            found = [unit for reader in readers for unit in units(reader)]
            yield from self._narrowed(found) if len(found) <= _FEW * run.files else found
            for done in [reader for reader in self._open_readers if reader.units_left == 0]:
                self._finish(done)

    def _narrowed(self, found: Sequence[Unit]) -> Iterator[Unit]:
        """Yield the units without the row groups whose values do not match."""
        for start in range(0, len(found), _NARROWED_TOGETHER):
            some = found[start : start + _NARROWED_TOGETHER]
            # Yield one by one: an error in a unit must come after the units before it.
            yield from filter(None, in_order(Unit.narrowed, some, min(self._workers, len(some))))

    def _finish(self, reader: FileReader) -> None:
        """Close the file, and report on it if that was requested."""
        reader.close()
        self._open_readers.remove(reader)
        # Files after the limit were planned and not read: no report on them.
        if self._explain and (reader.is_begun or reader.units_left == 0):
            self._reports[reader.plan.path] = file_report(
                reader.plan, reader.row_groups, reader.extents, self.request.needed
            )


class _Clock:
    """Adds the time of a block to its pass, and subtracts it from the surrounding pass.

    ``with clock("planning"):`` for a block.
    """

    def __init__(self) -> None:
        self.seconds = {"footers": 0.0, "planning": 0.0, "rows": 0.0}
        self._running: list[tuple[str, float]] = []
        self._next = ""

    def __call__(self, step: str) -> Self:
        self._next = step
        return self

    def __enter__(self) -> None:
        self._running.append((self._next, time.perf_counter()))

    def __exit__(self, *_error: object) -> None:
        step, start = self._running.pop()
        spent = time.perf_counter() - start
        self.seconds[step] += spent
        if self._running:
            self.seconds[self._running[-1][0]] -= spent


def planned_rows(plan: ReadPlan, file: PlannedFile, keys: GivenKeys) -> Iterator[pa.RecordBatch]:
    """Yield the matching rows of one file of a plan, in the plan's schema.

    Raises FileChangedError if the file is not the one that was planned.
    """
    resolver = replace(plan.access, keys=keys).resolver()
    with located(path=file.path), open_input(file.path) as opened:
        footer = read_footer(opened, resolver, SchemaCache(plan.names))
        if (footer.written, footer.digest) != (file.written, file.digest):
            raise FileChangedError(
                "the file was changed after it was planned",
                hint="plan again; if each machine has its own copy of the file, copy it with its "
                "modification time: cp -p",
            )
    planned = FilePlan(
        path=file.path,
        footer=footer,
        partition=file.partition,
        row_groups=file.row_groups,
        unchecked=file.unchecked,
        deleted=file.deleted,
        equality=file.equality,
        fills=file.fills,
    )
    reader = FileReader(planned, plan.request(), SourceOpener(resolver))
    try:
        for unit in filter(None, map(Unit.narrowed, units(reader))):
            for table in tables_of(unit.read()):
                yield from table.to_batches(max_chunksize=BATCH_ROWS)
    finally:
        reader.close()
