"""Decode columns of row groups: whole, or only rows in ranges, or some rows at a time.

pyarrow decodes most pages, from its own view of the file.  This module decrypts pages itself and
gives them to pyarrow one by one if only rows in ranges are wanted, if the file was not verified, or
if pyarrow cannot decrypt them.

Decoded columns of a file become rows in the schema of the table (:func:`conformed`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

import pyarrow as pa

from secure_bloom.errors import FormatError, KeyUnavailableError, UnsupportedFeatureError, located
from secure_bloom.lakes.hive_partitions import partition_scalar
from secure_bloom.parquet.decoded_bounds import harmless_size
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.pages import chunk_extent, read_pages
from secure_bloom.parquet.structures.metadata import CompressionCodec
from secure_bloom.predicates.bound_request import Request
from secure_bloom.reading.pruning.plan import FilePlan, RowGroupPlan
from secure_bloom.reading.rows.decoded_sizes import DecodedSize, DictionaryStrings, decoded_size
from secure_bloom.reading.rows.opened_file import OpenedFile
from secure_bloom.reading.rows.page_reads import (
    Ranges,
    ReadWholeError,
    Rows,
    check_indices,
    read_column,
)
from secure_bloom.reading.rows.stored_column import StoredColumn
from secure_bloom.reading.table.coalesced_reads import read_extents, read_pooled
from secure_bloom.reading.table.type_promotion import with_leaves
from secure_bloom.running.memory_budget import refuse_beyond, reserved
from secure_bloom.storage import is_object_uri
from secure_bloom.storage.inputs import Extent

Columns = Mapping[str, pa.ChunkedArray]

#: With more runs of matching rows than this, columns are decoded whole, not page by page.
_MAX_RUNS = 1000
#: Rows of a column that is decoded to find what is wrong.
_BLAMED = 64 * 1024
_UNDECODABLE = "pyarrow cannot decode the column's pages"
_REPORT = "if other readers can read the file, please report its writer and version"
#: pyarrow cannot filter view types, also inside others; cast to these first.
_SELECTED = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


class DecodeInPartsError(Exception):
    """Columns would take too much memory if they were decoded whole."""


class ColumnDecoder:
    """Decodes top-level columns of one file.

    ``threads``: pyarrow may use its own threads.  ``extents`` are the chunks that pyarrow read,
    recorded with ``count_bytes``.
    """

    def __init__(self, opened: OpenedFile, *, threads: bool, count_bytes: bool) -> None:
        self.extents: list[Extent] = []
        self._opened = opened
        self._footer = opened.footer
        self._threads = threads
        self._count_bytes = count_bytes

    def decoded_size(self, row_groups: Sequence[int], names: Sequence[str]) -> int:
        """Return an upper bound of the decoded size of whole columns in bytes."""
        return sum(size.most for row_group in row_groups for size in self._sizes(row_group, names))

    def _sizes(self, row_group: int, names: Sequence[str]) -> Iterator[DecodedSize]:
        """Yield the decoded size of each leaf of the columns."""
        file, footer = self._opened.file(), self._footer
        for ordinal in (i for name in names for i in footer.columns.below(name)):
            yield decoded_size(file, footer.chunk_to_read(row_group, ordinal))

    def rows(self, groups: Sequence[RowGroupPlan], names: Sequence[str]) -> Columns:
        """Return whole columns of the row groups or, for a group with ranges, only those rows."""
        if groups[0].ranges is not None:
            return self.slices(groups[0], names, groups[0].ranges)
        return self._whole([group.row_group for group in groups], names)

    def checked_rows(self, groups: Sequence[RowGroupPlan], names: Sequence[str]) -> Columns:
        """Return the predicate's columns as :meth:`rows` does, and check their ranges.

        Raises ReadWholeError if an index lists other rows for pages than they have, because
        ranges made from that index miss rows.
        """
        group = groups[0]
        if group.ranges is None:
            return self.rows(groups, names)
        if len(group.ranges) > _MAX_RUNS:
            raise ReadWholeError
        rows = Rows.of(group.ranges)
        columns = self._columns(group, names, rows)
        taken = {name: first.take(rows, others) for name, (first, *others) in columns.items()}
        found = {name: taken.get(name) for name in names}
        left = [name for name, column in found.items() if column is None]
        whole = self._rows_of_whole(group, left, rows)
        return whole | {n: selectable(column) for n, column in found.items() if column is not None}

    def slices(self, group: RowGroupPlan, names: Sequence[str], ranges: Ranges) -> Columns:
        """Return rows in ``ranges`` of a row group, from single pages if that reads less."""
        found, rows = dict[str, pa.ChunkedArray](), Rows.of(ranges)
        columns = self._columns(group, names if len(ranges) <= _MAX_RUNS else (), rows)
        for name, (first, *others) in columns.items():
            try:
                taken = first.take(rows, others)
            except ReadWholeError:
                continue
            if taken is not None:
                found[name] = selectable(taken)
        return found | self._rows_of_whole(group, [n for n in names if n not in found], rows)

    def pieces(
        self, group: RowGroupPlan, names: Sequence[str], rows: int
    ) -> Iterator[tuple[Columns, int]]:
        """Yield the columns of a row group, ``rows`` rows at a time, with the number of rows."""
        if not self._footer.is_verified and self._is_sealed([group.row_group], *names):
            # pyarrow would want its signature, and what is decoded here is decoded whole.
            raise UnsupportedFeatureError(
                "a row group is too large to be decoded whole, and the file's signature was not "
                "checked"
            )
        if not names:
            yield {}, group.rows
            return
        self._check_sizes([group.row_group], names)
        batches, seen = self._batches(group.row_group, names, rows), 0
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError, KeyUnavailableError):
                if self._some_levels_are_clear([group.row_group], names):
                    # Whole, as far as the budget goes: these pages are not pyarrow's to cut.
                    yield self._of_pages([group.row_group], names), group.rows
                    return
                self._blame(group.row_group, names)
            if batch is None:
                break
            if not seen and self._count_bytes:
                # Not at the end: a caller may stop at any piece.
                self.extents += stored_extents(self._footer, group.row_group, names)
            seen += batch.num_rows
            table = pa.Table.from_batches([batch])
            for name in names:
                with located(row_group=group.row_group, column=name):
                    check_indices(table.column(name))
            yield {name: selectable(table.column(name)) for name in names}, batch.num_rows
        if seen != group.rows:
            self._some_levels_are_clear([group.row_group], names)
            self._blame(group.row_group, names)

    def _columns(
        self, group: RowGroupPlan, names: Sequence[str], rows: Rows
    ) -> dict[str, list[StoredColumn]]:
        """Return the leaves of each column, and fetch their bytes together.

        For an object, the pages with the rows are located first, then all of them are fetched. On
        a disk, chunks that are read whole and lie together are read together.
        """
        below, column = self._footer.columns.below, self._opened.column
        named = {n: [column(group.row_group, i) for i in below(n)] for n in names if below(n)}
        columns, file = [it for leaves in named.values() for it in leaves], self._opened.file()
        if is_object_uri(file.path):
            file.read_ahead([it.index_extent for it in columns if it.index_extent is not None])
            file.read_ahead([extent for it in columns for extent in it.extents(rows)])
            return named
        whole = {it: extent for it in columns if (extent := it.walked_extent(rows)) is not None}
        # A column whose chunk leaves the file is read by itself, which says so.
        with suppress(FormatError):
            source = self._opened.pages() if self._count_bytes else file
            for leaf, stored in read_extents(source, whole, read_pooled).items():
                leaf.hold(stored)
        return named

    def _rows_of_whole(
        self, group: RowGroupPlan, names: Sequence[str], rows: Rows
    ) -> dict[str, pa.ChunkedArray]:
        if not names:
            return {}
        indices = pa.array(rows.positions)
        whole = self._whole([group.row_group], names)
        return {name: selectable(column).take(indices) for name, column in whole.items()}

    def _whole(self, row_groups: Sequence[int], names: Sequence[str]) -> Columns:
        if not self._footer.is_verified:
            sealed = [name for name in names if self._is_sealed(row_groups, name)]
            clear = [name for name in names if name not in sealed]
            return {**self._of_pages(row_groups, sealed), **self._decoded(row_groups, clear)}
        return self._decoded(row_groups, names)

    def _is_sealed(self, row_groups: Sequence[int], *names: str) -> bool:
        """Return whether one of the columns is encrypted."""
        footer = self._footer
        return any(
            footer.row_groups[row_group].columns[ordinal].crypto_metadata is not None
            for row_group in row_groups
            for name in names
            for ordinal in footer.columns.below(name)
        )

    def _of_pages(self, row_groups: Sequence[int], names: Sequence[str]) -> Columns:
        """Return columns of a file whose signature was not checked, decoded page by page.

        pyarrow does not get the file's footer, because it would check the signature. If we signed
        the footer ourselves, pyarrow would accept a forged footer as authentic.
        """
        file, footer = self._opened.pages(), self._footer
        refuse_beyond(self.decoded_size(row_groups, names), "a part of an unverified file")
        found = {
            name: [read_column(file, footer, row_group, name) for row_group in row_groups]
            for name in names
        }
        return {
            name: selectable(pa.chunked_array([c for part in parts for c in part.chunks]))
            for name, parts in found.items()
        }

    def _decoded(self, row_groups: Sequence[int], names: Sequence[str]) -> Columns:
        """Return columns as pyarrow decodes them. This module decodes some of them itself."""
        if not names:
            return {}
        found: list[Columns] = []
        held = 0
        for row_group in row_groups:
            # The size of what is decoded already is known.  For the next row group there is only a
            # bound, which is often a hundred times too large.
            ours, size = self._by_dictionary(row_group, names, held)
            left = [name for name in names if name not in ours]
            with reserved(size):
                found.append({**ours, **self._by_pyarrow(row_group, left)})
            held += sum(column.nbytes for column in found[-1].values())
        return {name: _joined([columns[name] for columns in found]) for name in names}

    def _by_dictionary(
        self, row_group: int, names: Sequence[str], held: int
    ) -> tuple[dict[str, pa.ChunkedArray], int]:
        """Return the columns that this module decodes itself, and their size in bytes.

        Raises DecodeInPartsError if their size, with ``held`` bytes, is too much.
        """
        found, size, most = {}, held, harmless_size()
        for name in names:
            sizes = list(self._sizes(row_group, [name]))
            bound = sum(of_leaf.most for of_leaf in sizes)
            if size + bound > most:
                raise DecodeInPartsError
            strings = sizes[0].strings if len(sizes) == 1 else None
            column = None if strings is None else self._string_column(name, strings, size + bound)
            if column is not None:
                found[name], bound = column, column.nbytes
            size += bound
        if self._count_bytes:
            self.extents += stored_extents(self._footer, row_group, list(found))
        return found, size

    def _string_column(
        self, name: str, strings: DictionaryStrings, size: int
    ) -> pa.ChunkedArray | None:
        chunk = strings.chunk
        type_ = self._footer.columns.arrow.field(name).type
        with reserved(size), located(row_group=chunk.row_group, column=chunk.leaf.name):
            column = strings.decoded(type_)
        return None if column is None else pa.chunked_array([column])

    def _by_pyarrow(self, row_group: int, names: Sequence[str]) -> Columns:
        """Return columns of one row group.

        If several columns are decoded together and one has too many rows, pyarrow takes them for
        rows of the next.
        """
        if not names:
            return {}
        self._check_sizes([row_group], names)
        source, table = self._opened.source(), None
        with suppress(pa.ArrowException, OSError, KeyUnavailableError):
            table = source.read_row_groups(
                [row_group], columns=self._names_of(names), use_threads=self._threads
            )
        if table is None or table.num_rows != self._footer.row_groups[row_group].num_rows:
            # parquet-java leaves levels of version 2 pages in clear, which pyarrow does not expect.
            if self._some_levels_are_clear([row_group], names):
                return self._of_pages([row_group], names)
            self._blame(row_group, names)
        if self._count_bytes:
            self.extents += stored_extents(self._footer, row_group, names)
        for name in names:
            with located(row_group=row_group, column=name):
                check_indices(table.column(name))
        return {name: selectable(table.column(name)) for name in names}

    def _batches(self, row_group: int, names: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the columns of a row group as pyarrow decodes them, ``rows`` rows at a time."""
        batches: Iterator[pa.RecordBatch] = self._opened.source().iter_batches(
            batch_size=rows,
            row_groups=[row_group],
            columns=self._names_of(names),
            use_threads=False,
        )
        return batches

    def _names_of(self, names: Sequence[str]) -> list[str]:
        """Return the names by which pyarrow reads the columns: leaves, if some are left out."""
        columns = self._footer.columns
        if not columns.left_out:
            return list(names)
        return [".".join(columns.leaves[i].path) for name in names for i in columns.below(name)]

    def _check_sizes(self, row_groups: Sequence[int], names: Sequence[str]) -> None:
        """Raise FormatError for pages without a tag that have a wrong size.

        pyarrow checks only the sizes of compressed pages.
        """
        footer = self._footer
        algorithm = footer.ciphers.algorithm
        if algorithm is None or algorithm.AES_GCM_CTR_V1 is None:
            return
        for row_group in row_groups:
            for ordinal in (i for name in names for i in footer.columns.below(name)):
                chunk = footer.chunk_to_read(row_group, ordinal)
                is_stored = chunk.meta_data.codec == CompressionCodec.UNCOMPRESSED
                if chunk.cipher is not None and is_stored:
                    with located(row_group=row_group, column=chunk.leaf.name):
                        read_pages(self._opened.pages(), chunk)

    def _some_levels_are_clear(self, row_groups: Sequence[int], names: Sequence[str]) -> bool:
        """Return whether levels in clear precede encrypted pages.

        Raises an error for a damaged module.
        """
        file, footer = self._opened.pages(), self._footer
        found = False
        for row_group in row_groups:
            for ordinal in (i for name in names for i in footer.columns.below(name)):
                chunk = footer.chunk_to_read(row_group, ordinal)
                with located(row_group=row_group, column=chunk.leaf.name):
                    for page in read_pages(file, chunk):
                        page.body()
                        found |= page.clear > 0
        return found

    def _blame(self, row_group: int, names: Sequence[str]) -> NoReturn:
        """Raise the error for the first column whose pages authenticate but cannot be decoded.

        Each column is decoded alone: an error of several does not say which one it is.
        """
        expected = self._footer.row_groups[row_group].num_rows
        for name in names:
            with located(row_group=row_group, column=name):
                try:
                    read = sum(it.num_rows for it in self._batches(row_group, [name], _BLAMED))
                except (pa.ArrowException, OSError):
                    # The cause is left out: its text may quote a value.
                    raise FormatError(_UNDECODABLE, hint=_REPORT) from None
                if read != expected:
                    raise FormatError(f"pyarrow read {read} rows, the footer says {expected}")
        with located(row_group=row_group):
            raise FormatError(f"{_UNDECODABLE} of {', '.join(names)}", hint=_REPORT) from None


def _joined(parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return one column of consecutive row groups."""
    return pa.chunked_array([c for part in parts for c in part.chunks], type=parts[0].type)


def selectable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column in a type that pyarrow can filter. It gets its own type back later."""
    selected = _selected_type(column.type)
    return column if selected == column.type else column.cast(selected)


@functools.lru_cache(maxsize=256)
def _selected_type(of: pa.DataType) -> pa.DataType:
    return with_leaves(of, lambda leaf: _SELECTED.get(leaf, leaf))


def stored_extents(footer: Footer, row_group: int, names: Sequence[str]) -> list[Extent]:
    """Return the extents of the chunks of top-level columns, as far as they are known."""
    found = []
    for ordinal in (i for name in names for i in footer.columns.below(name)):
        # This is also called for skipped row groups, whose keys the read does not need.
        with suppress(KeyUnavailableError, FormatError):
            start, length = chunk_extent(footer.chunk_to_read(row_group, ordinal))
            found.append((start, min(start + length, footer.size)))
    return found


def with_read_columns(plan: FilePlan, request: Request, whole: Sequence[str] = ()) -> FilePlan:
    """Return the plan of a file whose footer has only the members that the request reads.

    The columns ``whole`` keep all members.
    """
    columns = request.reads(plan.footer.columns, whole)
    if columns is plan.footer.columns:
        return plan
    return replace(plan, footer=plan.footer.with_columns(columns))


def conformed(
    plan: FilePlan, request: Request, columns: Columns, count: int, schema: pa.Schema
) -> pa.Table:
    """Return the columns in the types of ``schema``. Columns that the file lacks are filled in."""
    arrays = [_column(plan, request, field, columns.get(field.name), count) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(
    plan: FilePlan, request: Request, field: pa.Field, column: pa.ChunkedArray | None, count: int
) -> pa.ChunkedArray | pa.Array:
    if field.name in request.partitions:
        value = partition_scalar(field, plan.partition)
        return pa.repeat(value, count) if value.is_valid else pa.nulls(count, field.type)
    if column is None:
        is_hidden = field.name in request.hidden.columns
        value = None if is_hidden else plan.fills.get(field.name)
        filled = pa.nulls(count) if value is None else pa.repeat(value, count)
        return filled.cast(field.type)
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowException:
        raise FormatError(
            f"a value does not fit {field.type}, the column's type in the table",
            column=field.name,
        ) from None
