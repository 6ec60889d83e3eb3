"""Build the index of a data file: its values -> filters -> ``<data file>.index``.

The index is in clear, even if the data file is encrypted.  Whoever has the index can test any value
against it, so an index of an encrypted column is refused unless the caller allows it.

Other indexes in an existing index file are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TypeAlias

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.calling.options import Names, as_names
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import (
    FileChangedError,
    FormatError,
    PolicyError,
    SecureBloomError,
    UnsupportedFeatureError,
    failure_of,
    located,
)
from secure_bloom.paimon.column_filter import (
    BuildReport,
    ColumnSource,
    IndexOptions,
    IndexReport,
    build_filter,
    column_source,
)
from secure_bloom.paimon.container import MAGIC, FileIndex, Index
from secure_bloom.paimon.index_files import index_path, read_beside, read_whole
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock_to_read
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.running.parallelism import chosen_parallelism, each_file
from secure_bloom.storage import InputFile, find_unmanaged, open_input, replace_tail
from secure_bloom.storage.paths import Paths, as_path, as_paths, files_at_once, mean_size

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
        """Return a new index for the place of a damaged one.

        Raises the damage unless that is wanted.
        """
        if not self.replace_damaged:
            damage.hint = damage.hint or (
                "replace_damaged (--replace-damaged) writes a new one in its place; "
                "name all columns that the index shall have"
            )
            raise damage
        merged = FileIndex().with_indexes(indexes)
        if not self.dry_run:
            replace_tail(file, 0, (merged.to_bytes(),), output=index_path(file))
        return merged


#: The first bytes of other files that have an index beside them, and of an index itself.
_OTHER_FORMATS = {b"ORC": "an ORC file", b"Obj\1": "an Avro file", MAGIC: "an index itself"}

Columns: TypeAlias = Mapping[str, IndexOptions] | Names


@checked_arguments
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

    Other indexes in an existing index file are kept.  The index file is written whole or not at
    all, and the data file is not changed.

    Args:
        data_file: The data file.
        columns: Top-level columns, or keys of maps, ``m[k]``; names, or a mapping to options.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_clear_index: Index encrypted columns too, although the index is in clear.
        replace_damaged: Write a new index in place of an unreadable one.
        dry_run: Write nothing, but report what a run would do.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.

    Returns:
        A report of the index.

    Raises:
        PolicyError: A column is encrypted, and ``allow_clear_index`` is not given.
        FormatError: The existing index is damaged.
    """
    access = Access.of(
        keys, policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected
    )
    merge = IndexMerge(replace_damaged=replace_damaged, dry_run=dry_run)
    builder = _Builder(columns, access.resolver(), allow_clear_index=allow_clear_index, merge=merge)
    report = builder.build(as_path(data_file))
    warn_unverified(() if report.verified else (report.path,))
    return report


@checked_arguments
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
    jobs: int | None = None,
) -> BuildReport:
    """Build the index of each data file at ``paths``, as :func:`build_index` does.

    A file that fails is reported and does not stop the others.  Many small files are shared by
    processes, and each process asks the policy's KMS itself.

    Args:
        paths: Data files, folders or globs.
        columns: Top-level columns, or keys of maps, ``m[k]``; names, or a mapping to options.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_clear_index: Index encrypted columns too, although the index is in clear.
        replace_damaged: Write a new index in place of an unreadable one.
        dry_run: Write nothing, but report what a run would do.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        jobs: Number of cores; by default all.

    Returns:
        A report with a record for each file.

    Raises:
        PolicyError: The request cannot be met.  No index was written.

    Example:
        >>> sb.paimon.build_indexes("plain/", "email")
        <BuildReport: 1 file (1 built)>
    """
    access = Access.of(
        keys, policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected
    )
    open_work = partial(
        _reporter,
        columns,
        access,
        IndexMerge(replace_damaged=replace_damaged, dry_run=dry_run),
        allow_clear_index=allow_clear_index,
    )
    work = open_work()
    paths = find_unmanaged(as_paths(paths))
    parallelism = chosen_parallelism(
        len(paths), jobs, mean_size=mean_size(paths), at_once=files_at_once(paths)
    )
    done = each_file(work, open_work, paths, parallelism, lost=_failed)
    with closing(done):
        found = dict(done)
    # Files are done in any order, and reported in that of their paths.
    files = tuple(found[index] for index in range(len(paths)))
    warn_unverified(file.path for file in files if not file.verified)
    return BuildReport(files=files, dry_run=dry_run)


def _reporter(
    columns: Columns, access: Access, merge: IndexMerge, *, allow_clear_index: bool
) -> Callable[[str], IndexReport]:
    """Return the function that works on one file, in this process or another."""
    resolver = access.resolver()
    return _Builder(columns, resolver, allow_clear_index=allow_clear_index, merge=merge).report


class _Builder:
    """Builds the indexes of one run, which has one request and one set of keys."""

    def __init__(
        self, columns: Columns, resolver: KeyResolver, *, allow_clear_index: bool, merge: IndexMerge
    ) -> None:
        self._columns = _as_options(columns)
        self._resolver = resolver
        self._allow_clear_index = allow_clear_index
        self._merge = merge

    def report(self, path: str) -> IndexReport:
        """Return the report of :meth:`build`, or of its failure with an error of this package."""
        try:
            return self.build(path)
        except SecureBloomError as error:
            return _failed(path, error)

    def build(self, path: str) -> IndexReport:
        """Build one index and write it."""
        with located(path=path), open_input(path) as file:
            _refuse_other_formats(file)
            footer = self._opened(file)
            built = [build_filter(file, source) for source in self._sources(footer)]
            indexes = [(report.column, index) for report, index in built]
            merged = self._merge.write(file, indexes)
            return IndexReport(
                path=path,
                status="built",
                index=index_path(file),
                bytes=len(merged.to_bytes()),
                columns=tuple(report for report, _ in built),
                kept=tuple(_kept_indexes(merged, indexes)),
                verified=footer.is_verified,
            )

    def _opened(self, file: InputFile) -> Footer:
        return unlock_to_read(read_tail(file), file_keys(self._resolver, file))

    def _sources(self, footer: Footer) -> list[ColumnSource]:
        """Return the columns of the file that get filters.

        Raises PolicyError if one of them is encrypted, unless the caller allows it.
        """
        wanted = self._columns.items()
        sources = [column_source(footer, name, options) for name, options in wanted]
        encrypted = [source.column.name for source in sources if source.is_encrypted]
        if encrypted and not self._allow_clear_index:
            raise PolicyError(
                f"{', '.join(encrypted)}: the data is encrypted, and Paimon's index would be in "
                "clear beside it: anyone could test values against it",
                hint="secure-bloom add puts an encrypted filter into the file itself; "
                "allow_clear_index (--allow-clear-index) builds this one all the same",
            )
        if not self._allow_clear_index:
            clear = {chunk.leaf.path for it in sources for group in it.chunks for chunk in group}
            self._resolver.trust.check_names(clear, [leaf.path for leaf in footer.leaves])
        return sources


def _failed(path: str, error: SecureBloomError) -> IndexReport:
    return IndexReport(path=path, status="failed", **failure_of(error))


def _as_options(columns: Columns) -> dict[str, IndexOptions]:
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


def _refuse_other_formats(file: InputFile) -> None:
    first = file.read_at(0, min(file.size, max(map(len, _OTHER_FORMATS))))
    for magic, name in _OTHER_FORMATS.items():
        if first.startswith(magic):
            raise UnsupportedFeatureError(
                f"{name}, and indexes are built of Parquet files",
                hint="an existing index can be shown, and probed with the types of its columns",
            )


def _kept_indexes(merged: FileIndex, built: list[tuple[str, Index]]) -> Iterator[str]:
    new = {(name, index.type) for name, index in built}
    for column in merged.columns:
        for index in column.indexes:
            if (column.name, index.type) not in new:
                yield f"{column.name}: {index.type}"
