"""Build the Bloom filter of one column of a data file from all its values.

The filter of a map's key is built from the values of that key.

The options and the reports of a build are here too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from secure_bloom.bloom import xxh64
from secure_bloom.calling.arguments import check_fields
from secure_bloom.errors import FormatError, PolicyError
from secure_bloom.kernels.distinct import DistinctNumbers
from secure_bloom.paimon.bloom_filter64 import BloomFilter64, sizing
from secure_bloom.paimon.column_types import IndexedColumn, TopColumns
from secure_bloom.paimon.container import BLOOM_FILTER, Index
from secure_bloom.paimon.data_types import float_bits, hash_longs
from secure_bloom.paimon.physical_values import DAY_MICROS, divisor, is_bytes
from secure_bloom.parquet.column_values import read_entries, read_items
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.logical_types import JULIAN_EPOCH
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.parquet.value_arrays import Binary, Entries, as_entries
from secure_bloom.reports.base import Report, counted_files
from secure_bloom.reports.text import counted
from secure_bloom.storage import InputFile


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """The size of one column's filter: for ``items`` distinct values at ``fpp``, 0 < fpp < 1.

    If ``items`` is None, the values are counted. Paimon's own default is 1,000,000 for every
    file. The default of ``fpp`` is 10 %, as in Paimon. The default for filters in Parquet files
    is 1 %.
    """

    items: int | None = None
    fpp: float = 0.1

    def __post_init__(self) -> None:
        check_fields(self)
        if self.items is not None and self.items < 1:
            raise PolicyError(f"items is {self.items}, it must be at least 1")
        if not 0.0 < self.fpp < 1.0:
            raise PolicyError(f"fpp is {self.fpp}, it must lie between 0 and 1, both excluded")
        sizing(self.items or 0, self.fpp)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReport:
    """The report on one column's filter.

    The filter is sized for ``items`` values, contains ``values`` values, and has a body of
    ``bytes`` bytes. ``fpp`` is computed from the filter's bits. A column without any value has an
    EMPTY index, of no bytes. ``shows`` says what the index reveals about an encrypted column.
    """

    column: str
    items: int
    values: int
    bytes: int
    hash_functions: int | None
    fpp_requested: float
    fpp: float | None
    encrypted: bool
    shows: str | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IndexReport(Report):
    """One data file's index: its path, its size in bytes, and the parts that were built or kept.

    A small index of a file of a table is in the table's manifest: then it has no path.  A file that
    gets no index is ``unchanged``.  ``note`` says why a file or a column gets none.  A signed data
    file whose key is missing is not ``verified``: its content may be forged.
    """

    path: str
    status: Literal["built", "unchanged", "failed"]
    index: str | None = None
    bytes: int | None = None
    columns: tuple[ColumnReport, ...] = ()
    kept: tuple[str, ...] = ()
    verified: bool = True
    note: str | None = None
    error: str | None = None
    hint: str | None = None
    causes: tuple[str, ...] = ()

    ROWS: ClassVar = ("columns",)

    def _document(self) -> dict[str, Any]:
        return asdict(self)

    def _summary(self) -> str:
        return f"{self.status}, {counted(len(self.columns), 'column')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCommit:
    """A snapshot of a table that lists new indexes, and the data files that got them.

    ``snapshot`` is None in a dry run.
    """

    snapshot: int | None
    operation: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BuildReport(Report):
    """The indexes of a run, the ``seconds`` that it took, and the ``commits`` of a run on a table.

    With ``dry_run`` nothing was written. ``table_notes`` are about the table as a whole.
    """

    files: tuple[IndexReport, ...]
    dry_run: bool = False
    seconds: float = 0.0
    commits: tuple[IndexCommit, ...] = ()
    table_notes: tuple[str, ...] = ()

    ROWS: ClassVar = ("files", "columns")

    @property
    def failed(self) -> tuple[IndexReport, ...]:
        """The files that failed. Their indexes are unchanged."""
        return tuple(file for file in self.files if file.status == "failed")

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on encrypted columns whose index everyone can read. Each column is named once."""
        shown = {c.column: c.shows for file in self.files for c in file.columns if c.shows}
        columns = tuple(f"column {name}: {shows}" for name, shows in sorted(shown.items()))
        return columns + self.table_notes

    @property
    def totals(self) -> dict[str, Any]:
        """The number of all files, the number for each status, and the size of the new indexes."""
        return {
            "files": len(self.files),
            "statuses": dict(Counter(file.status for file in self.files)),
            "index_bytes": sum(it.bytes or 0 for it in self.files if it.status == "built"),
        }

    def _document(self) -> dict[str, Any]:
        return {
            "files": [asdict(file) for file in self.files],
            "dry_run": self.dry_run,
            "seconds": self.seconds,
            "totals": self.totals,
            "commits": [asdict(commit) for commit in self.commits],
            "notes": list(self.notes),
        }

    def _summary(self) -> str:
        return counted_files((file.status for file in self.files), dry_run=self.dry_run)


#: A timestamp of Parquet: nanoseconds of the day, then the Julian day.
_INT96 = np.dtype([("nanos", "<i8"), ("days", "<i4")])


def column_hashes(leaf: Leaf, entries: Entries) -> NDArray[np.int64]:
    """Return the hash of each value of ``leaf``, shape (n,)."""
    if isinstance(entries, Binary):
        hashes = xxh64.hash_binary(entries.offsets, entries.data, prefix=entries.prefix)
        return hashes.view(np.int64)
    if is_bytes(leaf):
        return xxh64.hash_fixed(entries).view(np.int64)
    return hash_longs(_numbers(leaf, entries))


def _numbers(leaf: Leaf, entries: NDArray[Any]) -> NDArray[np.int64]:
    """Return the numbers to be hashed."""
    if leaf.type is Type.INT96:
        parts = entries.view(_INT96)
        micros: NDArray[np.int64] = parts["nanos"] // 1000
        micros += (parts["days"].astype(np.int64) - JULIAN_EPOCH) * DAY_MICROS
        return micros
    if entries.dtype.kind == "f":
        width = entries.dtype.itemsize
        bits = entries.view(f"<i{width}").astype(np.int64)
        # Java has one NaN in `floatToIntBits`, and a column may hold many.
        bits[np.isnan(entries)] = float_bits(np.nan, width=width)
        return bits
    whole = divisor(leaf.logical)
    # Rounded down before 1970 too, as the value of a probe is (`hashed_content`).
    numbers = entries.astype(np.int64)
    return numbers // whole if whole > 1 else numbers


def read_map_values(file: InputFile, key: Chunk, value: Chunk, map_key: str) -> Iterator[pa.Array]:
    """Yield the values of ``map_key`` without nulls, as one Arrow array for each batch."""
    wanted = pa.scalar(map_key.encode(), pa.binary())
    # The pages of keys and values end at different rows; their batches of rows do not.
    for keys, values in zip(read_items(file, key), read_items(file, value), strict=True):
        if len(keys) != len(values):
            raise FormatError(
                f"a map has {len(keys)} keys and {len(values)} values",
                row_group=value.row_group,
                column=value.leaf.name,
            )
        yield values.filter(pc.equal(keys, wanted)).drop_null()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSource:
    """A column of a data file and its chunks. For the key of a map, also the chunks of the keys."""

    column: IndexedColumn
    options: IndexOptions
    chunks: tuple[tuple[Chunk, ...], ...]

    @property
    def is_encrypted(self) -> bool:
        """Whether any of the chunks is encrypted."""
        return any(chunk.cipher is not None for group in self.chunks for chunk in group)


def column_sources(footer: Footer, columns: Mapping[str, IndexOptions]) -> Iterator[ColumnSource]:
    """Yield the columns by their names, with their chunks opened.

    Raises an error for a column that cannot have a filter.
    """
    known = TopColumns(footer.leaves)
    for name, options in columns.items():
        column = known.indexed(name)
        chunks = tuple(
            tuple(footer.chunk(row_group, ordinal) for ordinal in column.ordinals)
            for row_group in range(len(footer.row_groups))
        )
        yield ColumnSource(column=column, options=options, chunks=chunks)


def build_filter(file: InputFile, source: ColumnSource) -> tuple[ColumnReport, Index]:
    """Build the index of one column. The index is EMPTY if the column has no value."""
    options = source.options
    hashes = _Hashes(column_hashes_of(file, source))
    if options.items is None:
        distinct = hashes.distinct()
        items, batches = len(distinct), iter((distinct,))
    else:
        items, batches = options.items, iter(hashes)
    bloom_filter = BloomFilter64.sized(items, options.fpp)
    for batch in batches:
        bloom_filter.insert_hashes(batch)
    # EMPTY, and not a filter without bits: it also rules out ranges and IS NOT NULL.
    body = bloom_filter.to_bytes() if hashes.count else None
    report = ColumnReport(
        column=source.column.name,
        items=items,
        values=hashes.count,
        bytes=0 if body is None else len(body),
        hash_functions=None if body is None else bloom_filter.hash_functions,
        fpp_requested=options.fpp,
        fpp=None if body is None else bloom_filter.fpp(),
        encrypted=source.is_encrypted,
        shows=_shows(bloom_filter) if source.is_encrypted else None,
    )
    return report, Index(type=BLOOM_FILTER, body=body)


def _shows(bloom_filter: BloomFilter64) -> str:
    """Return a text that says what a filter in clear reveals."""
    fpp = bloom_filter.fpp()
    certain = "" if fpp == 0 else f", wrong for one absent value in {max(1, round(1 / fpp)):,}"
    return (
        "in clear for everyone who can read the index: whether the file has a value they think "
        f"of{certain}; and about how many distinct values it has"
    )


class _Hashes:
    """Batches of hashes, which are counted while they are read."""

    def __init__(self, batches: Iterator[NDArray[np.int64]]) -> None:
        self._batches = batches
        self.count = 0

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        for batch in self._batches:
            self.count += len(batch)
            yield batch

    def distinct(self) -> NDArray[np.int64]:
        """Return the distinct hashes. They are collected batch by batch, to save memory."""
        gathered = DistinctNumbers(np.int64)
        for batch in self:
            gathered.add(batch)
        return gathered.found()


def column_hashes_of(file: InputFile, source: ColumnSource) -> Iterator[NDArray[np.int64]]:
    """Yield the hashes of a column's values without nulls, row group by row group."""
    map_key = source.column.map_key
    for chunks in source.chunks:
        # For a key of a map there are two chunks, of the map's keys and values; else there is one.
        value = chunks[-1]
        if map_key is None:
            for entries in read_entries(file, value).entries:
                yield column_hashes(value.leaf, entries)
            continue
        for array in read_map_values(file, chunks[0], value, map_key):
            yield column_hashes(value.leaf, as_entries(value.leaf, array))
