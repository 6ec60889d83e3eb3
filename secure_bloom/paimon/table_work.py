"""Build the index of one data file of a Paimon table, beside it or for the manifest.

A task has all that another process or machine needs for its file.  The index gets a name that no
snapshot has had: an old snapshot, a tag or a branch goes on reading its own index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from secure_bloom.encryption.access import Access
from secure_bloom.errors import FormatError, SecureBloomError, located
from secure_bloom.paimon.column_filter import IndexOptions, IndexReport
from secure_bloom.paimon.container import BLOOM_FILTER, FileIndex
from secure_bloom.paimon.index_builder import (
    FilterBuilder,
    damage_hint,
    failed_report,
    kept_indexes,
)
from secure_bloom.paimon.index_files import MAX_INDEX_BYTES
from secure_bloom.storage import InputFile, open_input, replace_tail, sibling
from secure_bloom.storage.column_mapping import ColumnMapping
from secure_bloom.storage.paths import without_links

#: The note of a file whose index has all wanted filters.
HAS_FILTERS: Final = "its index has these filters already"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTask:
    """A data file, the columns of its new index, and the index that it has.

    ``root`` is the table's folder.  ``options`` are by the names in the table, which ``stored``
    maps to those in the file.  With ``names`` the file is opened with the table's names of all its
    columns, so that a policy's rules are those of the table's columns.
    """

    path: str
    root: str
    options: Mapping[str, IndexOptions]
    stored: Mapping[str, str]
    names: ColumnMapping | None
    size: int
    new_name: str
    old_names: tuple[str, ...] = ()
    embedded: bytes | None = field(default=None, repr=False)

    @property
    def target(self) -> str:
        """The path of an index file."""
        return sibling(self.path, self.new_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexResult:
    """The report of a task, and the index for the manifest: a name, or the index itself."""

    report: IndexReport
    name: str | None = None
    embedded: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWork:
    """What a run does to each file. An index of up to ``threshold`` bytes is for the manifest."""

    access: Access
    threshold: int
    allow_clear_index: bool
    replace_damaged: bool
    dry_run: bool

    def opened(self) -> OpenWork:
        """Return the work with its keys, in this process or another."""
        builder = FilterBuilder(self.access.resolver(), allow_clear_index=self.allow_clear_index)
        return OpenWork(work=self, builder=builder)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWork:
    """Builds the index of one file after the other."""

    work: IndexWork
    builder: FilterBuilder

    def __call__(self, task: IndexTask) -> IndexResult:
        """Return the result of a task, or the report of its failure."""
        try:
            with located(path=task.path), open_input(task.path) as file:
                file.column_names = task.names
                return self._result(task, file)
        except SecureBloomError as error:
            return IndexResult(report=failed_report(task.path, error))

    def _result(self, task: IndexTask, file: InputFile) -> IndexResult:
        try:
            before = _index_before(task, file)
        except FormatError as error:
            if not self.work.replace_damaged:
                raise damage_hint(error) from error.__cause__
            before = FileIndex()
        if all(_has_filter(before, name) for name in task.stored.values()):
            return IndexResult(
                report=IndexReport(path=task.path, status="unchanged", note=HAS_FILTERS)
            )
        built = self.builder.filters(file, task.options)
        indexes = [(task.stored[name], index) for name, index in built.indexes]
        merged = before.with_indexes(indexes)
        content = merged.to_bytes()
        report = IndexReport(
            path=task.path,
            status="built",
            bytes=len(content),
            columns=built.reports,
            kept=tuple(kept_indexes(merged, indexes)),
            verified=built.is_verified,
        )
        if len(content) <= self.work.threshold:
            return IndexResult(report=report, embedded=content)
        if not self.work.dry_run:
            write_index(file, task, content)
        return IndexResult(report=replace(report, index=task.target), name=task.new_name)


def write_index(file: InputFile, task: IndexTask, content: bytes) -> None:
    """Write the index file of a task, below the table's folder and through no link."""
    target = without_links(task.target, task.root)
    replace_tail(file, 0, (content,), output=target, must_be_new=True)


def _index_before(task: IndexTask, file: InputFile) -> FileIndex:
    """Return the index that the manifest lists for a file, or an empty one."""
    if task.embedded is not None:
        return FileIndex.from_bytes(task.embedded)
    if not task.old_names:
        return FileIndex()
    if len(task.old_names) > 1:
        raise FormatError("the manifest lists several index files for one data file")
    content = file.read_sibling(task.old_names[0], limit=MAX_INDEX_BYTES)
    if content is None:
        raise FormatError("the index file that the manifest lists is not there")
    return FileIndex.from_bytes(content)


def _has_filter(index: FileIndex, column: str) -> bool:
    return any(each.type == BLOOM_FILTER for each in index.indexes(column))
