"""Building the index of a data file: its values -> filters -> ``<data file>.index``.

The index is in clear, whatever the data file is.  Whoever has it can try any value against it, so a
filter of an encrypted column is refused unless the caller insists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath

import numpy as np
from numpy.typing import NDArray

from secure_bloom.encryption.access import GivenKeys, GivenPolicy, resolver_of, trust_of
from secure_bloom.encryption.keys import FileKeys, KeyResolver
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import (
    FileChangedError,
    FormatError,
    PolicyError,
    SecureBloomError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.paimon.bloom_filter64 import BloomFilter64
from secure_bloom.paimon.build_report import BuildReport, ColumnReport, IndexOptions, IndexReport
from secure_bloom.paimon.column_hashes import column_hashes
from secure_bloom.paimon.container import BLOOM_FILTER, MAGIC, FileIndex, Index
from secure_bloom.paimon.index_files import index_path, read_beside, read_whole
from secure_bloom.paimon.indexed_columns import IndexedColumn, find_column
from secure_bloom.paimon.map_keys import read_map_values
from secure_bloom.parquet.column_values import read_entries
from secure_bloom.parquet.footer import Chunk, Footer, open_chunk, read_tail, unlock_to_read
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.value_arrays import as_entries
from secure_bloom.storage import InputFile, find_unmanaged, open_input, replace_tail
from secure_bloom.storage.paths import Paths, as_paths

#: A build meets others, each of which adds its own columns to the index first.
_TRIES = 10
#: The first bytes of what stands beside indexes too, or is one.
_OTHER_FORMATS = {b"ORC": "an ORC file", b"Obj\1": "an Avro file", MAGIC: "an index itself"}
#: Hashes gathered before the distinct ones among them are told apart.
_GATHERED = 1 << 22


Columns = Mapping[str, IndexOptions] | Iterable[str]


def build_index(
    data_file: str | PathLike[str],
    columns: Columns,
    *,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    allow_clear_index: bool = False,
    replace_damaged: bool = False,
    dry_run: bool = False,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
) -> IndexReport:
    """Write ``<data file>.index`` with a Bloom filter of each of ``columns``.

    A column is a top-level one, or a map's key, ``m[k]``.  What an index that is there holds beside
    these filters stays as it is.  The file is written whole or not at all, and the data file is not
    touched.  ``replace_damaged`` puts a new index in the place of one that cannot be read, whose
    content is lost.  Raises PolicyError for an encrypted column, because the index is in clear,
    unless ``allow_clear_index`` is given; FormatError for a damaged index; and what reading the
    footer, the keys and the pages raises: so for a signed file whose key is not at hand although
    ``keys`` or a ``policy`` are given, unless ``allow_unverified``, and for one that is protected
    less than the policy says, unless ``allow_unprotected``.
    """
    trust = trust_of(policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected)
    builder = _Builder(
        columns, resolver_of(keys, trust), allow_clear_index, replace_damaged, dry_run
    )
    report = builder.build(fspath(data_file))
    warn_unverified(() if report.verified else (report.path,))
    return report


def build_indexes(
    paths: Paths,
    columns: Columns,
    *,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    allow_clear_index: bool = False,
    replace_damaged: bool = False,
    dry_run: bool = False,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
) -> BuildReport:
    """:func:`build_index` of all data files that ``paths`` mean; one that fails stops no other."""
    trust = trust_of(policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected)
    builder = _Builder(
        columns, resolver_of(keys, trust), allow_clear_index, replace_damaged, dry_run
    )
    files = tuple(builder.report(path) for path in find_unmanaged(as_paths(paths)))
    warn_unverified(file.path for file in files if not file.verified)
    return BuildReport(files=files, dry_run=dry_run)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A column of a data file and its chunks, those of keys too for a map's key."""

    column: IndexedColumn
    options: IndexOptions
    chunks: tuple[tuple[Chunk, ...], ...]

    @property
    def is_encrypted(self) -> bool:
        return any(chunk.cipher is not None for group in self.chunks for chunk in group)


class _Builder:
    """Builds the indexes of one run: one request, one set of keys."""

    def __init__(
        self,
        columns: Columns,
        resolver: KeyResolver,
        allow_clear_index: bool,
        replace_damaged: bool,
        dry_run: bool,
    ) -> None:
        self._columns = _as_options(columns)
        self._resolver = resolver
        self._allow_clear_index = allow_clear_index
        self._replace_damaged = replace_damaged
        self._dry_run = dry_run

    def report(self, path: str) -> IndexReport:
        """As :meth:`build`; our errors become a report of a failure."""
        try:
            return self.build(path)
        except SecureBloomError as error:
            return IndexReport(path=path, status="failed", error=str(error), hint=error.hint)

    def build(self, path: str) -> IndexReport:
        """Build one index and write it."""
        with located(path=path), open_input(path) as file:
            _refuse_other_formats(file)
            keys = file_keys(self._resolver, file)
            footer = unlock_to_read(read_tail(file), keys)
            sources = [
                _source(footer, keys, name, options) for name, options in self._columns.items()
            ]
            self._refuse_encrypted(sources)
            built = [_build(file, source) for source in sources]
            indexes = [(report.column, index) for report, index in built]
            merged = self._merge(file, indexes)
            return IndexReport(
                path=path,
                status="built",
                index=index_path(file),
                bytes=len(merged.to_bytes()),
                columns=tuple(report for report, _ in built),
                kept=tuple(_kept(merged, indexes)),
                verified=footer.is_verified,
            )

    def _refuse_encrypted(self, sources: Iterable[_Source]) -> None:
        encrypted = [source.column.name for source in sources if source.is_encrypted]
        if encrypted and not self._allow_clear_index:
            raise PolicyError(
                f"{', '.join(encrypted)}: the data is encrypted, and Paimon's index would be in "
                "clear beside it: anyone could test values against it",
                hint="secure-bloom add puts an encrypted filter into the file itself; "
                "allow_clear_index (--allow-clear-index) builds this one all the same",
            )

    def _merge(self, file: InputFile, indexes: list[tuple[str, Index]]) -> FileIndex:
        """Write the index with what is there already, read anew where another was faster."""
        for _ in range(_TRIES - 1):
            try:
                return self._merge_once(file, indexes)
            except FileChangedError:
                file.check_unchanged()  # the data file itself: then there is nothing to try again
        return self._merge_once(file, indexes)

    def _merge_once(self, file: InputFile, indexes: list[tuple[str, Index]]) -> FileIndex:
        # Of the data file, because the index may not be there yet: builders of this machine come
        # one after the other, whatever they find.
        with file.exclusive():
            return self._merge_alone(file, indexes)

    def _merge_alone(self, file: InputFile, indexes: list[tuple[str, Index]]) -> FileIndex:
        try:
            before = read_beside(file)
        except FormatError as error:
            return self._replace(file, indexes, error)
        merged = (before or FileIndex()).with_indexes(indexes)
        if self._dry_run:
            return merged
        path = index_path(file)
        if before is None:
            replace_tail(file, 0, (merged.to_bytes(),), output=path, must_be_new=True)
            return merged
        file.check_unchanged()
        with open_input(path) as old:
            if read_whole(old) != before:
                raise FileChangedError("the index was changed after it was read", path=path)
            replace_tail(old, 0, (merged.to_bytes(),))
        return merged

    def _replace(
        self, file: InputFile, indexes: list[tuple[str, Index]], damage: FormatError
    ) -> FileIndex:
        """A new index in the place of a damaged one, where that is wanted."""
        if not self._replace_damaged:
            damage.hint = damage.hint or (
                "replace_damaged (--replace-damaged) writes a new one in its place; "
                "name all columns that it shall have"
            )
            raise damage
        merged = FileIndex().with_indexes(indexes)
        if not self._dry_run:
            replace_tail(file, 0, (merged.to_bytes(),), output=index_path(file))
        return merged


def _as_options(columns: Columns) -> dict[str, IndexOptions]:
    """The options of each column; a text alone is the name of one."""
    if not isinstance(columns, Iterable):
        raise PolicyError(f"columns are of type {type(columns).__name__}, wanted names")
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names:
        raise PolicyError("no column is named for an index")
    for name in names:
        if not isinstance(name, str):
            raise PolicyError(f"a column's name is of type {type(name).__name__}, wanted text")
    if not isinstance(columns, Mapping):
        return dict.fromkeys(names, IndexOptions())
    for name, options in columns.items():
        if not isinstance(options, IndexOptions):
            raise PolicyError(
                f"the options of column {name} are of type {type(options).__name__}",
                hint=f'write {{"{name}": IndexOptions(fpp=0.01)}}, or ["{name}"]',
            )
    return dict(columns)


def _refuse_other_formats(file: InputFile) -> None:
    first = file.read_at(0, min(file.size, max(map(len, _OTHER_FORMATS))))
    for magic, name in _OTHER_FORMATS.items():
        if first.startswith(magic):
            raise UnsupportedFeatureError(
                f"{name}, and indexes are built of Parquet files",
                hint="an index that is there can be shown, and asked with the types of its columns",
            )


def _source(footer: Footer, keys: FileKeys, name: str, options: IndexOptions) -> _Source:
    column = find_column(footer.leaves, name)
    chunks = tuple(
        tuple(open_chunk(footer, row_group, ordinal, keys) for ordinal in column.ordinals)
        for row_group in range(len(footer.row_groups))
    )
    return _Source(column=column, options=options, chunks=chunks)


def _build(file: InputFile, source: _Source) -> tuple[ColumnReport, Index]:
    """The index of one column; EMPTY where it has no value."""
    options = source.options
    hashes = _Hashes(_column_hashes(file, source))
    if options.items is None:
        distinct = hashes.distinct()
        items, batches = len(distinct), iter((distinct,))
    else:
        items, batches = options.items, iter(hashes)
    bloom_filter = BloomFilter64.sized(items, options.fpp)
    for batch in batches:
        bloom_filter.insert_hashes(batch)
    body = bloom_filter.to_bytes() if hashes.count else None
    report = ColumnReport(
        column=source.column.name,
        items=items,
        values=hashes.count,
        bytes=len(body or b""),
        hash_functions=bloom_filter.hash_functions if body else None,
        fpp_requested=options.fpp,
        fpp=bloom_filter.fpp() if body else None,
        encrypted=source.is_encrypted,
        shows=_shows(bloom_filter) if source.is_encrypted else None,
    )
    return report, Index(type=BLOOM_FILTER, body=body)


def _shows(bloom_filter: BloomFilter64) -> str:
    fpp = bloom_filter.fpp()
    certain = "" if fpp == 0 else f", wrong for one absent value in {max(1, round(1 / fpp)):,}"
    return (
        "in clear for everyone who can read the index: whether the file has a value they think "
        f"of{certain}; and about how many distinct values it has"
    )


def _kept(merged: FileIndex, built: list[tuple[str, Index]]) -> Iterator[str]:
    new = {(name, index.type) for name, index in built}
    for column in merged.columns:
        for index in column.indexes:
            if (column.name, index.type) not in new:
                yield f"{column.name}: {index.type}"


class _Hashes:
    """Batches of hashes, counted while they pass."""

    def __init__(self, batches: Iterator[NDArray[np.int64]]) -> None:
        self._batches = batches
        self.count = 0

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        for batch in self._batches:
            self.count += len(batch)
            yield batch

    def distinct(self) -> NDArray[np.int64]:
        """The distinct hashes among all, told apart from time to time so that few are held."""
        gathered, waiting = [np.empty(0, np.int64)], 0
        for batch in self:
            gathered.append(batch)
            waiting += len(batch)
            if waiting > max(_GATHERED, len(gathered[0])):
                gathered, waiting = [_distinct(gathered)], 0
        return _distinct(gathered)


def _distinct(batches: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The distinct numbers of all batches, sorted.  np.unique takes ten times as long."""
    numbers = np.concatenate(batches)
    numbers.sort()
    is_new = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=is_new[1:])
    return numbers[is_new]


def _column_hashes(file: InputFile, source: _Source) -> Iterator[NDArray[np.int64]]:
    """The hashes of a column's values, row group by row group, nulls left out."""
    map_key = source.column.map_key
    for chunks in source.chunks:
        value = chunks[-1]
        if map_key is None:
            for entries in read_entries(file, value).entries:
                yield column_hashes(value.leaf, entries)
            continue
        for array in read_map_values(file, chunks[0], value, map_key):
            yield column_hashes(value.leaf, as_entries(value.leaf, array))
