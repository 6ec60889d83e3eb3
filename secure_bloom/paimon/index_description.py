"""Describe an index: its columns, its filters, and their bits. Needs no key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.errors import FormatError, SecureBloomError, failure_of, located
from secure_bloom.lakes.paimon.names import table_folder
from secure_bloom.paimon.bloom_filter64 import BloomFilter64
from secure_bloom.paimon.container import BLOOM_FILTER, FileIndex, Index
from secure_bloom.paimon.index_files import (
    find_indexed,
    is_index,
    listed_path,
    read_listed,
    read_whole,
    table_alone,
)
from secure_bloom.reports.base import Report, counted_files
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import InputFile, files_at_once, open_input
from secure_bloom.storage.paths import Paths, as_paths
from secure_bloom.storage.storage_options import with_storage_options

if TYPE_CHECKING:
    from secure_bloom.lakes.paimon.table import PaimonFile


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexInspection:
    """One index of one column. ``bytes`` is 0 for EMPTY, the index of a column without any value.

    A Bloom filter also has its number of hash functions and the share of its bits that are set
    (``fill``).  Its false-positive probability and the estimated number of distinct ``values`` are
    computed from the bits.
    """

    column: str
    type: str
    bytes: int
    hash_functions: int | None = None
    fill: float | None = None
    fpp: float | None = None
    values: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonInspection:
    """The index of one data file, or the ``error`` of a damaged index."""

    path: str
    bytes: int | None = None
    indexes: tuple[IndexInspection, ...] = ()
    error: str | None = None
    hint: str | None = None
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ShowReport(Report):
    """The indexes that were found. ``without`` are the data files without an index."""

    indexes: tuple[PaimonInspection, ...]
    without: tuple[str, ...] = ()

    ROWS: ClassVar = ("indexes", "indexes")

    @property
    def failed(self) -> tuple[PaimonInspection, ...]:
        """The indexes that are damaged."""
        return tuple(index for index in self.indexes if index.error is not None)

    def _document(self) -> dict[str, Any]:
        return asdict(self)

    def _summary(self) -> str:
        return counted_files(
            ["with an index"] * len(self.indexes) + ["without"] * len(self.without)
        )


@checked_arguments
@with_storage_options
def show(
    paths: Paths,
    *,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> ShowReport:
    """Describe the indexes at ``paths``.  No key is needed.

    A damaged index is reported with its error and does not stop the others.

    Args:
        paths: Data files, or index files themselves; or one Paimon table.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report with a record for each index.

    Raises:
        PolicyError: A path leads to no file.
    """
    # Imported here: only a table needs it, and every inspection needs this module.
    from secure_bloom.lakes.paimon.table import paimon_table

    given = as_paths(paths)
    table = table_alone(given)
    found = find_indexed(given) if table is None else ()
    listed = {} if table is None else paimon_table(table_folder(table)).files
    every = list(listed) or list(found)
    shown, without = [], []
    described = in_order(
        lambda path: _describe_at(path, listed.get(path)), every, files_at_once(every)
    )
    for path, description in zip(every, described, strict=True):
        if description is None:
            without.append(path)
        else:
            shown.append(description)
    return ShowReport(indexes=tuple(shown), without=tuple(without))


def describe_of(file: InputFile, listed: PaimonFile | None = None) -> PaimonInspection | None:
    """Return the description of the index of a data file, or None if there is none.

    ``listed`` is what a table says of the file.
    """
    path = listed_path(file, listed)
    try:
        index = read_listed(file, listed)
    except SecureBloomError as error:
        return PaimonInspection(path=path, **failure_of(error))
    return None if index is None else describe_index(path, index)


def describe_index(path: str, index: FileIndex) -> PaimonInspection:
    """Describe one index file."""
    return PaimonInspection(
        path=path, bytes=len(index.to_bytes()), indexes=tuple(_describe_all(index))
    )


def _describe_at(path: str, listed: PaimonFile | None) -> PaimonInspection | None:
    try:
        with located(path=path), open_input(path) as file:
            if listed is not None or not is_index(file):
                return describe_of(file, listed)
            return describe_index(path, read_whole(file))
    except SecureBloomError as error:
        return PaimonInspection(path=path, **failure_of(error))


def _describe_all(index: FileIndex) -> Iterator[IndexInspection]:
    for column in index.columns:
        for each in column.indexes:
            yield _describe(column.name, each)


def _describe(column: str, index: Index) -> IndexInspection:
    size = len(index.body or b"")
    if index.type != BLOOM_FILTER or index.body is None:
        note = "EMPTY: the column has no value" if index.body is None else None
        return IndexInspection(column=column, type=index.type, bytes=size, note=note)
    try:
        bloom_filter = BloomFilter64.from_bytes(index.body)
    except FormatError as error:
        return IndexInspection(column=column, type=index.type, bytes=size, note=error.message)
    return IndexInspection(
        column=column,
        type=index.type,
        bytes=size,
        hash_functions=bloom_filter.hash_functions,
        fill=bloom_filter.fill(),
        fpp=bloom_filter.fpp(),
        values=bloom_filter.estimated_values(),
    )
