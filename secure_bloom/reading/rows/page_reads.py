"""Decode pages of one column of a row group with pyarrow, without the others.

The pages are decrypted here and put into a Parquet file in memory that has this one column.  It has
the schema of the original file, so pyarrow decodes the same values from both.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from secure_bloom.errors import FormatError, located
from secure_bloom.parquet.decoded_bounds import size_of_pages
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.memory_files import MemoryColumn, memory_file, stored_plain
from secure_bloom.parquet.pages import Page, read_pages
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import CompressionCodec, KeyValue, SchemaElement
from secure_bloom.parquet.structures.splices import encoded
from secure_bloom.running.memory_budget import refuse_beyond
from secure_bloom.storage import InputFile

#: The first row, and the row after the last one.
Span = tuple[int, int]
#: Spans, or an array with a row of start and end for each.
Ranges = Sequence[Span] | NDArray[np.int64]


def as_array(ranges: Ranges) -> NDArray[np.int64]:
    """Return a row of start and end for each range."""
    return np.asarray(ranges, np.int64).reshape(-1, 2)


def positions_in(ranges: Ranges) -> NDArray[np.int64]:
    """Return the rows of the ranges, one by one."""
    if len(ranges) == 1:
        return np.arange(*ranges[0])
    starts, ends = as_array(ranges).T
    lengths = ends - starts
    # What was counted before a range is taken off its start, so that one count serves all ranges.
    return np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The wanted rows of a row group in ascending order: as ranges, and as positions."""

    ranges: NDArray[np.int64]
    positions: NDArray[np.int64]
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, ranges: Ranges) -> Rows:
        """Return the rows of the given ranges. All columns of the row group share the result."""
        array = as_array(ranges)
        starts, ends = array.T.tolist()
        return cls(array, positions_in(ranges), starts, ends)

    def __len__(self) -> int:
        return len(self.positions)

    def are_in(self, start: int, end: int) -> bool:
        """Return whether some of the rows are from ``start`` to before ``end``."""
        # The first range that ends after the start.
        found = bisect_right(self.ends, start)
        return start < end and found < len(self.ends) and self.starts[found] < end

    def within(self, start: int, end: int) -> NDArray[np.int64]:
        """Return the rows from ``start`` to before ``end``, counted from ``start``."""
        if start <= self.starts[0] and self.ends[-1] <= end:
            return self.positions - start if start else self.positions
        low, high = np.searchsorted(self.positions, (start, end))
        return self.positions[low:high] - start


class ReadWholeError(Exception):
    """A column has a page index, but must be read whole.

    Either most of its pages are wanted, or one of them contradicts the index.
    """


def read_column(file: InputFile, footer: Footer, row_group: int, name: str) -> pa.ChunkedArray:
    """Return all rows of a top-level column. pyarrow does not get the file's footer for this.

    Errors carry row group and column.
    """
    columns = []
    for ordinal in footer.columns.below(name):
        chunk = footer.chunk_to_read(row_group, ordinal)
        with located(path=footer.path, row_group=row_group, column=chunk.leaf.name):
            columns.append((chunk, read_pages(file, chunk)))
    rows = footer.row_groups[row_group].num_rows
    with located(path=footer.path, row_group=row_group, column=name):
        return _read(_file(footer, name, columns, rows), rows)


def decoded_rows(
    footer: Footer,
    columns: Sequence[tuple[Chunk, Sequence[Page]]],
    spans: Sequence[Span],
    ranges: Ranges,
) -> pa.ChunkedArray:
    """Return the rows in ``ranges`` from the data pages with the rows ``spans``.

    ``columns`` are leaves of one top-level column. If some are missing, the rows lack them too. The
    dictionary page comes first, if a data page refers to it.  Raises FormatError for pages that
    pyarrow cannot decode, and MemoryBudgetError for pages that are too large.
    """
    refuse_beyond(sum(size_of_pages(*column) for column in columns), "its pages")
    rows = sum(end - start for start, end in spans)
    leaves = [chunk.leaf for chunk, _ in columns]
    content = _file(footer, leaves[0].path[0], columns, rows)
    return _cut(_read(content, rows, [leaf.name for leaf in leaves]), spans, ranges)


def _read(content: bytes, rows: int, leaves: Sequence[str] | None = None) -> pa.ChunkedArray:
    try:
        column = (
            pq.ParquetFile(
                pa.BufferReader(content), pre_buffer=False, coerce_int96_timestamp_unit="us"
            )
            .read(columns=leaves, use_threads=False)
            .column(0)
        )
    except (pa.ArrowException, OSError):
        # The cause is left out: its text may quote a value.
        raise FormatError("pyarrow cannot decode the column's pages") from None
    if len(column) != rows:
        raise FormatError(f"the pages hold {len(column)} rows, wanted {rows}")
    check_indices(column)
    return column


def check_indices(column: pa.ChunkedArray) -> None:
    """Raise FormatError if a dictionary of Arrow lacks an entry that a row names."""
    # pyarrow checks indices where it makes values of them, and here it hands over both.
    for part in column.chunks if isinstance(column.type, pa.DictionaryType) else ():
        ends = pc.min_max(part.indices)
        low, high = ends["min"].as_py(), ends["max"].as_py()
        if low is not None and not 0 <= low <= high < len(part.dictionary):
            raise FormatError("an index of the column's dictionary has no entry")


def _cut(column: pa.ChunkedArray, spans: Sequence[Span], ranges: Ranges) -> pa.ChunkedArray:
    """Return the rows in ``ranges`` from a column that has only the rows of ``spans``."""
    parts, seen = [], 0
    for first, last in spans:
        for start, end in ranges:
            low, high = max(start, first), min(end, last)
            if low < high:
                parts.append(column.slice(seen + low - first, high - low))
        seen += last - first
    return pa.chunked_array([c for part in parts for c in part.chunks], column.type)


def _file(
    footer: Footer,
    name: str,
    columns: Sequence[tuple[Chunk, Sequence[Page]]],
    rows: int,
) -> bytes:
    given = {chunk.column: (chunk, pages) for chunk, pages in columns}
    chunks = [
        _memory_column(*given[ordinal]) if ordinal in given else _without_pages(leaf)
        for ordinal in footer.columns.below(name)
        for leaf in [footer.columns.leaves[ordinal]]
    ]
    return memory_file(_schema(footer, name), chunks, rows, marks=[_arrow_mark(footer, name)])


def _memory_column(chunk: Chunk, pages: Sequence[Page]) -> MemoryColumn:
    with located(row_group=chunk.row_group, column=chunk.leaf.name):
        stored = [stored_plain(page) for page in pages]
    return MemoryColumn(
        path=chunk.leaf.path,
        type=chunk.meta_data.type,
        codec=chunk.meta_data.codec,
        values=sum(page.num_values for page in pages if not page.is_dictionary),
        pages=stored,
        has_dictionary=bool(pages) and pages[0].is_dictionary,
    )


def _without_pages(leaf: Leaf) -> MemoryColumn:
    """Return a leaf that is not decoded. The schema has all leaves of the column."""
    return MemoryColumn(
        path=leaf.path,
        type=leaf.type,
        codec=CompressionCodec.UNCOMPRESSED,
        values=0,
        pages=(),
        has_dictionary=False,
    )


def _arrow_mark(footer: Footer, name: str) -> bytes:
    """Return the entry with the writer's Arrow type, which the Parquet schema lacks in part."""
    arrow = pa.schema([footer.columns.arrow.field(name)]).serialize().to_pybytes()
    return encoded(KeyValue, key="ARROW:schema", value=base64.b64encode(arrow))


def _schema(footer: Footer, name: str) -> list[bytes]:
    """Return the schema's root, and the nodes of one top-level column."""
    root = encoded(SchemaElement, name="schema", num_children=1)
    return [root, *(node.encoded for node in footer.columns.nodes[name])]
