"""Build the index of one data file: beside the file, or for the manifest of its table.

The index of a file of a table gets a name that no snapshot has had: an old snapshot, a tag or a
branch goes on reading its own index.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from secure_bloom.encryption.access import Access
from secure_bloom.errors import FileChangedError, FormatError, SecureBloomError, located
from secure_bloom.paimon.column_filter import IndexOptions, IndexReport
from secure_bloom.paimon.column_types import TopColumns
from secure_bloom.paimon.container import BLOOM_FILTER, FileIndex
from secure_bloom.paimon.index_builder import (
    FilterBuilder,
    IndexMerge,
    damage_hint,
    failed_report,
    kept_indexes,
)
from secure_bloom.paimon.index_files import MAX_INDEX_BYTES, index_path
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.runs.column_check import require_in_one
from secure_bloom.runs.work import FileTask, Steps
from secure_bloom.storage import InputFile, name_of, open_input
from secure_bloom.storage.column_mapping import ColumnMapping
from secure_bloom.storage.dispatch import create_like
from secure_bloom.storage.paths import without_links

#: The note of a file whose index has all wanted filters.
HAS_FILTERS: Final = (
    "its index has these filters already; replace_filters (--replace-filters) builds them anew"
)
#: The note of a file whose filters are the same when they are built anew.
_HAS_SAME: Final = "its index has the same filters already"
#: The same of a file in which other columns of the request get none.
_HAS_OTHERS: Final = "its index has the other filters already"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexResult:
    """The report of a file, and what its manifest entry gets.

    ``name`` is the name of a new index file, ``embedded`` a new index that the manifest holds
    itself.
    """

    report: IndexReport
    name: str | None = None
    embedded: bytes | None = field(default=None, repr=False)

    @property
    def path(self) -> str:
        """The data file."""
        return self.report.path

    @property
    def status(self) -> str:
        """Whether the index was built, was left unchanged, or failed."""
        return self.report.status

    @property
    def bytes_after(self) -> int | None:
        """The size of the index."""
        return self.report.bytes

    @property
    def changes(self) -> bool:
        """Whether there is a new index."""
        return self.report.status == "built"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWork(ABC):
    """Builds the indexes of one run, which has one set of keys. Each file is one step."""

    builder: FilterBuilder
    replace_damaged: bool
    dry_run: bool

    @abstractmethod
    def build(self, task: FileTask) -> IndexResult:
        """Build the index of a file, and write it."""

    @property
    def writes_nothing(self) -> bool:
        """Whether the run only reports what it would do."""
        return self.dry_run

    @property
    def asks_for_each_key(self) -> bool:
        """Return False: most tables use a few keys for all of their files."""
        return False

    def check(self, files: Sequence[str]) -> None:
        """Check nothing: columns are looked for in the schema of a table, or in each file."""
        del files

    def in_threads(self, threads: int) -> Self:
        """Return this work unchanged: it does not depend on the number of threads."""
        del threads
        return self

    def prefetch(self, targets: Mapping[str, str | None]) -> KeyPrefetch:
        """Return an object that unwraps keys of later files ahead of time."""
        del targets
        return KeyPrefetch(self.builder.resolver)

    def process(self, task: FileTask, steps: Steps) -> IndexResult:
        """Return the result of :meth:`build`, or of its failure with an error of this package."""
        del steps
        try:
            return self.build(task)
        except SecureBloomError as error:
            return self.failed(task, error)

    def steps_of(self, report: IndexResult) -> int:
        """Return 1."""
        del report
        return 1

    @staticmethod
    def failed(task: FileTask, error: SecureBloomError) -> IndexResult:
        """Return the report of a file that failed."""
        return IndexResult(report=failed_report(task.path, error))


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideWork(IndexWork):
    """Writes ``<data file>.index`` with the filters of ``columns``. Other indexes in it stay."""

    columns: Mapping[str, IndexOptions]

    def check(self, files: Sequence[str]) -> None:
        """Raise PolicyError for a column that no file has."""
        for name in self.columns:
            require_in_one(
                files,
                self.builder.resolver,
                lambda footer, name=name: TopColumns(footer.leaves).indexed(name),  # type: ignore[misc]
            )

    def build(self, task: FileTask) -> IndexResult:
        """Build one index and write it."""
        merge = IndexMerge(replace_damaged=self.replace_damaged, dry_run=self.dry_run)
        with located(path=task.path), open_input(task.path) as file:
            built = self.builder.filters(file, self.columns)
            merged = merge.write(file, built.indexes)
            report = IndexReport(
                path=task.path,
                status="built",
                index=index_path(file),
                bytes=len(merged.to_bytes()),
                columns=built.reports,
                kept=tuple(kept_indexes(merged, built.indexes)),
                verified=built.is_verified,
            )
            return IndexResult(report=report)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """What a worker must know to build the index of a data file of a table.

    ``root`` is the table's folder, ``target`` the path of a new index file. ``options`` maps the
    names of columns in the table to their options, and ``stored`` maps them to the names in the
    file. With ``names`` the file is opened with the table's names of all columns, so that a
    policy's rules apply to the table's columns. ``left_out`` says why other columns of the request
    get no index. ``old_names`` and ``embedded`` are the index that the manifest lists now. Indexes
    in ``taken`` must not be embedded again, because readers that ignore the order of manifests
    would lose the file.
    """

    root: str
    target: str
    options: Mapping[str, IndexOptions]
    stored: Mapping[str, str]
    names: ColumnMapping | None
    size: int
    left_out: str | None = None
    old_names: tuple[str, ...] = ()
    embedded: bytes | None = field(default=None, repr=False)
    taken: frozenset[bytes | None] = field(default=frozenset(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWork(IndexWork):
    """Builds indexes for a table. An index of up to ``threshold`` bytes is embedded in a manifest.

    A larger index is written beside the data file. ``task.listed`` is a :class:`TableFile`.
    ``replace_filters`` builds filters anew that the index has already. With ``syncs_folders`` each
    new name is durable at once. Otherwise the run makes all names durable before it commits.
    """

    threshold: int
    replace_filters: bool
    syncs_folders: bool

    def build(self, task: FileTask) -> IndexResult:
        """Build one index. Write it if it is too large for the manifest."""
        with located(path=task.path), open_input(task.path) as file:
            file.column_names = task.listed.names
            return self._built(task, task.listed, file)

    def _built(self, task: FileTask, listed: TableFile, file: InputFile) -> IndexResult:
        try:
            before = _index_before(listed, file)
        except FormatError as error:
            if not self.replace_damaged:
                raise damage_hint(error) from error.__cause__
            before = FileIndex()
        has_all = all(
            any(each.type == BLOOM_FILTER for each in before.indexes(name))
            for name in listed.stored.values()
        )
        if has_all and not self.replace_filters:
            note = f"{listed.left_out}; {_HAS_OTHERS}" if listed.left_out else HAS_FILTERS
            return IndexResult(report=IndexReport(path=task.path, status="unchanged", note=note))
        built = self.builder.filters(file, listed.options)
        indexes = [(listed.stored[name], index) for name, index in built.indexes]
        merged = before.with_indexes(indexes)
        content = merged.to_bytes()
        if has_all and content == before.to_bytes():
            # An entry that takes the place of an equal one would be added and deleted at once.
            note = f"{listed.left_out}; {_HAS_SAME}" if listed.left_out else _HAS_SAME
            return IndexResult(report=IndexReport(path=task.path, status="unchanged", note=note))
        is_embedded = len(content) <= self.threshold and content not in listed.taken
        if not is_embedded and not self.dry_run:
            self._write_once(file, content, listed)
        report = IndexReport(
            path=task.path,
            status="built",
            index=None if is_embedded else listed.target,
            bytes=len(content),
            columns=built.reports,
            kept=tuple(kept_indexes(merged, indexes)),
            verified=built.is_verified,
            note=listed.left_out,
        )
        if is_embedded:
            return IndexResult(report=report, embedded=content)
        return IndexResult(report=report, name=name_of(listed.target))

    def _write_once(self, file: InputFile, content: bytes, listed: TableFile) -> None:
        """Write a new index file, unless another attempt at this task has written the same one.

        Raises an error if a folder between the table's own and the file is a symbolic link.
        """
        target = without_links(listed.target, listed.root)
        file.check_unchanged()
        try:
            create_like(file, target, content, is_name_durable=self.syncs_folders)
        except FileChangedError:
            if file.read_sibling(name_of(target), limit=len(content) + 1) != content:
                raise


def _index_before(listed: TableFile, file: InputFile) -> FileIndex:
    """Return the index that the manifest lists for a file, or an empty index."""
    if listed.embedded is not None:
        return FileIndex.from_bytes(listed.embedded)
    if not listed.old_names:
        return FileIndex()
    if len(listed.old_names) > 1:
        raise FormatError("the manifest lists several index files for one data file")
    content = file.read_sibling(listed.old_names[0], limit=MAX_INDEX_BYTES)
    if content is None:
        raise FormatError("the index file that the manifest lists is not there")
    return FileIndex.from_bytes(content)


def beside_work(
    columns: Mapping[str, IndexOptions],
    access: Access,
    *,
    allow_clear_index: bool,
    replace_damaged: bool,
    dry_run: bool,
) -> BesideWork:
    """Return the work on files without a table, with its keys, in this process or another."""
    builder = FilterBuilder(access.resolver(), allow_clear_index=allow_clear_index)
    return BesideWork(
        columns=columns, builder=builder, replace_damaged=replace_damaged, dry_run=dry_run
    )


def table_work(
    threshold: int,
    access: Access,
    *,
    allow_clear_index: bool,
    replace_damaged: bool,
    replace_filters: bool,
    dry_run: bool,
    syncs_folders: bool,
) -> TableWork:
    """Return the work on files of a table, with its keys, in this process or another."""
    builder = FilterBuilder(access.resolver(), allow_clear_index=allow_clear_index)
    return TableWork(
        threshold=threshold,
        builder=builder,
        replace_damaged=replace_damaged,
        replace_filters=replace_filters,
        dry_run=dry_run,
        syncs_folders=syncs_folders,
    )
