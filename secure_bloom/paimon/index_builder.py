"""Build the index of a data file: its values -> filters -> ``<data file>.index``.

The index is in clear, even if the data file is encrypted.  Whoever has the index can test any value
against it, so an index of an encrypted column is refused unless the caller allows it.

Other indexes in an existing index file are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from secure_bloom.calling.options import Names, as_names
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import (
    FileChangedError,
    FormatError,
    PolicyError,
    SecureBloomError,
    UnsupportedFeatureError,
    failure_of,
)
from secure_bloom.paimon.column_filter import (
    ColumnReport,
    ColumnSource,
    IndexOptions,
    IndexReport,
    build_filter,
    column_sources,
)
from secure_bloom.paimon.container import MAGIC, FileIndex, Index
from secure_bloom.paimon.index_files import index_path, read_beside, read_whole
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock_to_read
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.storage import InputFile, open_input, replace_tail

#: The most times that a build starts again because another build was faster.
_TRIES = 10
NamedIndexes = list[tuple[str, Index]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexMerge:
    """How an index is written. ``replace_damaged`` replaces an index that cannot be read."""

    replace_damaged: bool
    dry_run: bool

    def write(self, file: InputFile, indexes: NamedIndexes) -> FileIndex:
        """Write the indexes of columns beside ``file``. Return all indexes of the file afterwards.

        If another machine has written the index meanwhile, it is read and merged again.
        """
        for _ in range(_TRIES - 1):
            try:
                return self._write_once(file, indexes)
            except FileChangedError:
                # Try again only if the index was changed, not the data file itself.
                file.check_unchanged()
        return self._write_once(file, indexes)

    def _write_once(self, file: InputFile, indexes: NamedIndexes) -> FileIndex:
        # The lock is the data file's, because the index may not be there yet.
        with file.exclusive():
            return self._write_alone(file, indexes)

    def _write_alone(self, file: InputFile, indexes: NamedIndexes) -> FileIndex:
        try:
            before = read_beside(file)
        except FormatError as error:
            return self._replace(file, indexes, error)
        merged = (before or FileIndex()).with_indexes(indexes)
        if self.dry_run:
            return merged
        path = index_path(file)
        if before is None:
            # Not over an index that another machine has written since we looked.
            replace_tail(file, 0, (merged.to_bytes(),), output=path, must_be_new=True)
            return merged
        # Looked at here: the write below checks only the old index that it replaces.
        file.check_unchanged()
        with open_input(path) as old:
            if read_whole(old) != before:
                raise FileChangedError("the index was changed after it was read", path=path)
            replace_tail(old, 0, (merged.to_bytes(),))
        return merged

    def _replace(self, file: InputFile, indexes: NamedIndexes, damage: FormatError) -> FileIndex:
        """Return a new index in place of a damaged index.

        Raises the error of the damage unless ``replace_damaged`` is set.
        """
        if not self.replace_damaged:
            raise damage_hint(damage)
        merged = FileIndex().with_indexes(indexes)
        if not self.dry_run:
            replace_tail(file, 0, (merged.to_bytes(),), output=index_path(file))
        return merged


def damage_hint(damage: FormatError) -> FormatError:
    """Return the error about a damaged index, with a hint that says how to replace the index."""
    damage.hint = damage.hint or (
        "replace_damaged (--replace-damaged) writes a new one in its place; "
        "name all columns that the new index is to have"
    )
    return damage


#: The first bytes of other files that have an index beside them, and of an index itself.
_OTHER_FORMATS = {b"ORC": "an ORC file", b"Obj\1": "an Avro file", MAGIC: "an index itself"}

Columns: TypeAlias = Mapping[str, IndexOptions] | Names


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltFilters:
    """The filters of one data file, with the report of each."""

    reports: tuple[ColumnReport, ...]
    indexes: NamedIndexes
    is_verified: bool


class FilterBuilder:
    """Builds the filters of the files of one run, which has one set of keys."""

    def __init__(self, resolver: KeyResolver, *, allow_clear_index: bool) -> None:
        self.resolver = resolver
        self._allow_clear_index = allow_clear_index

    def filters(self, file: InputFile, columns: Mapping[str, IndexOptions]) -> BuiltFilters:
        """Return the filters of these columns of a file. Nothing is written."""
        try:
            tail = read_tail(file)
        except FormatError:
            refuse_other_formats(file)
            raise
        footer = unlock_to_read(tail, file_keys(self.resolver, file))
        built = [build_filter(file, source) for source in self._sources(file.path, footer, columns)]
        return BuiltFilters(
            reports=tuple(report for report, _ in built),
            indexes=[(report.column, index) for report, index in built],
            is_verified=footer.is_verified,
        )

    def _sources(
        self, path: str, footer: Footer, columns: Mapping[str, IndexOptions]
    ) -> list[ColumnSource]:
        """Return the columns of the file that get filters.

        Raises PolicyError if one of them is encrypted, unless the caller allows it.
        """
        sources = list(column_sources(footer, columns))
        encrypted = [source.column.name for source in sources if source.is_encrypted]
        if encrypted and not self._allow_clear_index:
            raise PolicyError(
                f"{', '.join(encrypted)}: the data is encrypted, and Paimon's index would be in "
                "clear beside it: anyone could test values against it",
                hint="secure-bloom add puts an encrypted filter into the file itself; "
                "allow_clear_index (--allow-clear-index) builds this index all the same",
            )
        if not self._allow_clear_index:
            clear = {chunk.leaf.path for it in sources for group in it.chunks for chunk in group}
            self.resolver.trust.check_shown(path, clear, [leaf.path for leaf in footer.leaves])
        return sources


def failed_report(path: str, error: SecureBloomError) -> IndexReport:
    """Return the report of a file that failed."""
    return IndexReport(path=path, status="failed", **failure_of(error))


def as_options(columns: Columns) -> dict[str, IndexOptions]:
    """Return the options of each column. A single text is the name of one column."""
    names = as_names("columns", columns)
    if not names:
        raise PolicyError("no column is named for an index")
    if not isinstance(columns, Mapping):
        return dict.fromkeys(names, IndexOptions())
    for name, options in columns.items():
        if not isinstance(options, IndexOptions):
            raise PolicyError(
                f"the options of column {name} are of type {type(options).__name__}",
                hint=f'write {{"{name}": IndexOptions(fpp=0.01)}}, or ["{name}"]',
            )
    return dict(columns)


def refuse_other_formats(file: InputFile) -> None:
    """Raise UnsupportedFeatureError for a file that is no Parquet file, but of a known format."""
    first = file.read_at(0, min(file.size, max(map(len, _OTHER_FORMATS))))
    for magic, name in _OTHER_FORMATS.items():
        if first.startswith(magic):
            raise UnsupportedFeatureError(
                f"{name}, and indexes are built of Parquet files",
                hint="an existing index can be shown, and probed with the types of its columns",
            )


def kept_indexes(merged: FileIndex, built: NamedIndexes) -> Iterator[str]:
    """Yield the indexes of a container that were not built now, each as ``column: type``."""
    new = {(name, index.type) for name, index in built}
    for column in merged.columns:
        for index in column.indexes:
            if (column.name, index.type) not in new:
                yield f"{column.name}: {index.type}"
