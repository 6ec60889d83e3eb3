"""Plan the rewrite of one file for a request, in memory, before a byte is written.

New filters are written after everything the file already has, just before the new footer, in
row-group and column order.  The file's data keeps its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from secure_bloom.adding.free_space import Replaced, reclaimed_end
from secure_bloom.adding.in_place import append_mark
from secure_bloom.adding.report import READERS, FilterReport
from secure_bloom.adding.request import FilterRequest, WantedFilters
from secure_bloom.bloom.stored import StoredBloomFilter, encode_bloom_filter, read_bloom_filter
from secure_bloom.calling.options import BloomFilterOptions
from secure_bloom.encryption.file_keys import FileKeys
from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.edit import FilterPlace, with_filters
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock
from secure_bloom.parquet.footer.seal import close_footer
from secure_bloom.parquet.pages import chunk_extent
from secure_bloom.parquet.schema import INT96_NOTE, require_filterable
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.reports.text import counted, named_columns
from secure_bloom.storage import APPEND_ALIGNMENT, InputFile
from secure_bloom.storage.inputs import Extent

if TYPE_CHECKING:
    from secure_bloom.bloom.build import BuiltFilter

#: Runs the builds of one file, in order: ``map`` itself, or that of an executor.
Mapper = Callable[[Callable[["Task"], "ChunkOutcome"], Sequence["Task"]], Iterator["ChunkOutcome"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritePlan:
    """The new file: the first ``keep`` bytes of the old one, then ``tail``.

    ``tail`` is empty when there is nothing to do.  ``notes`` name readers that cannot use the new
    filters.  ``reclaimed`` counts the bytes of older filters and footers that the new file lacks.
    """

    keep: int
    tail: tuple[bytes, ...]
    filters: tuple[FilterReport, ...]
    notes: tuple[str, ...] = ()
    reclaimed: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the file already has everything that was asked for."""
        return not self.tail

    @property
    def size(self) -> int:
        """The size of the file in bytes after the rewrite."""
        return self.keep + sum(map(len, self.tail))


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One column chunk that is to have a filter."""

    file: InputFile
    chunk: Chunk
    options: BloomFilterOptions
    replace: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFilter:
    """The result of a task whose chunk keeps its filter."""

    task: Task
    stored: StoredBloomFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFilter:
    """The result of a task whose chunk gets a new filter, in place of ``old`` if it has one.

    ``modules`` are the bytes of the filter in the file, encrypted if its column is.
    """

    task: Task
    old: StoredBloomFilter | None
    modules: bytes
    report: FilterReport


ChunkOutcome: TypeAlias = KeptFilter | NewFilter


def plan_rewrite(
    file: InputFile,
    keys: FileKeys,
    request: FilterRequest,
    *,
    append: bool = False,
    run: Mapper = map,
    row_groups: Collection[int] | None = None,
) -> RewritePlan:
    """Return the plan of ``file``: build every wanted filter that the file lacks.

    With ``append`` the old footer stays in its place, and the new bytes are written after the old
    end.  With ``row_groups`` only these row groups get filters, for an estimate.  Raises the errors
    of reading the footer, the keys, the pages and the filters, with row group and column set.
    """
    # unlock, not unlock_to_read: a footer with an unchecked signature must not be signed anew.
    footer = unlock(read_tail(file), keys)
    # All chunks are opened before the first filter is built, so a missing key or a broken policy in
    # the last row group is an error at once.
    tasks = list(_tasks(file, footer, request, row_groups))
    # To read an object chunk by chunk would take a request for each, and an object that is replaced
    # is copied whole anyway.
    file.read_ahead(list(_extents(tasks)), to_replace=True)
    outcomes = _outcomes(tasks, run)
    keep = file.size
    # Only a file that changes is looked through for free space.
    if not append and any(map(_is_change, outcomes)):
        keep = reclaimed_end(file, footer, _replaced(outcomes))
    # A file that stays whole gets what an append writes, so its old footer is found again.
    append = keep == file.size
    # The mark precedes the filters, so it moves them.
    parts, places, filters = _lay_out(outcomes, keep + len(_mark(keep, append=append)))
    skipped = _skipped(footer, request.wanted)
    # Nothing to write: an unchanged footer is not encrypted again, and the file stays as it is.
    if not places:
        return RewritePlan(keep=file.size, tail=(), filters=(*filters, *skipped))
    # Last, because the offsets are in it: an encrypted footer's bytes depend on all of them.
    end = close_footer(footer, with_filters(footer, places))
    tail = new_tail(end, keep, parts, append=append)
    return RewritePlan(
        keep=keep,
        tail=tail,
        filters=(*filters, *skipped),
        notes=tuple(_reader_notes(tasks)),
        reclaimed=max(0, footer.tail.offset - keep),
    )


def _reader_notes(tasks: Iterable[Task]) -> Iterator[str]:
    """Yield a note for each kind of column whose filters some reader cannot use or cannot read."""
    chunks = {task.chunk.leaf.name: task.chunk for task in tasks}
    uniform = [name for name, chunk in chunks.items() if chunk.is_under_footer_key]
    if uniform:
        yield (
            f"{READERS}DuckDB cannot read {named_columns(uniform)} any more: it finds no pages in "
            "a column that is encrypted with the footer key and has a filter; "
            "`[readers] duckdb = true` in the policy refuses these filters"
        )
    rounded = [name for name, chunk in chunks.items() if chunk.leaf.type is Type.INT96]
    if rounded:
        yield f"{READERS}{named_columns(rounded)}: {INT96_NOTE}"


def new_tail(
    footer: bytes, keep: int, parts: Iterable[bytes] = (), *, append: bool
) -> tuple[bytes, ...]:
    """Return the bytes after ``keep``: ``parts`` and the footer.

    For an append also a mark and padding.
    """
    tail = [_mark(keep, append=append), *parts, footer]
    # Padded before the footer, because nothing may lie between the footer's magic and the end of
    # the file.  Why an append ends on a block: see storage/append.
    if append:
        # Zeros align the file's end; no offset in the footer points to them.
        tail.insert(-1, bytes(-(keep + sum(map(len, tail))) % APPEND_ALIGNMENT))
    return tuple(part for part in tail if part)


def _mark(keep: int, *, append: bool) -> bytes:
    return append_mark(keep) if append else b""


def _tasks(
    file: InputFile,
    footer: Footer,
    request: FilterRequest,
    row_groups: Collection[int] | None,
) -> Iterator[Task]:
    wanted = request.wanted.resolve(footer.leaves)
    for ordinal in wanted:
        # All columns are checked before the first chunk is opened: it takes no key to see a mistake
        # in the request.
        require_filterable(footer.leaves[ordinal])
    alike = request.guard.lookalikes(footer.leaves, wanted)
    for row_group in range(len(footer.row_groups)) if row_groups is None else sorted(row_groups):
        for ordinal, options in wanted.items():
            chunk = footer.chunk(row_group, ordinal)
            # The key is checked before a value is read: no filter of a sensitive column is built
            # from one in clear, or written under another key.
            request.guard.check(chunk, like=alike.get(ordinal))
            yield Task(
                file=file, chunk=chunk, options=options, replace=request.wanted.replace_filters
            )


def _extents(tasks: Iterable[Task]) -> Iterator[Extent]:
    """Yield the start and the end of each chunk that will be read."""
    for task in tasks:
        if task.replace or task.chunk.meta_data.bloom_filter_offset is None:
            # An empty chunk has none; whoever reads a wrong one says what is wrong.
            with suppress(FormatError):
                start, length = chunk_extent(task.chunk)
                yield start, start + length


def _outcomes(tasks: list[Task], run: Mapper) -> list[ChunkOutcome]:
    """Return the outcomes of the tasks, in the order of the tasks.

    The work begins with the largest chunk: if it came last, all other cores would wait for it.
    """
    # The work takes as long as decompressed sizes say, because decompressed values are hashed.
    sizes = [task.chunk.meta_data.total_uncompressed_size for task in tasks]
    order = sorted(range(len(tasks)), key=sizes.__getitem__, reverse=True)
    found = dict(zip(order, run(_work, [tasks[i] for i in order]), strict=True))
    return [found[i] for i in range(len(tasks))]


def _work(task: Task) -> ChunkOutcome:
    old = _old_filter(task)
    if old is not None and not task.replace:
        # It was read just now, so its tags and sizes are known to be right.
        return KeptFilter(task=task, stored=old)
    # Loads numpy and pyarrow, for files that lack a filter alone.
    from secure_bloom.bloom.build import build_filter
    from secure_bloom.parquet.column_values import read_encoded

    before = None if old is None else old.filter
    values = read_encoded(task.file, task.chunk)
    built = build_filter(task.chunk.leaf, values, task.options, old=before)
    # Encoded here and not where the file is put together: threads share the work, and the bits are
    # held once.
    modules = encode_bloom_filter(built.filter, task.chunk.cipher)
    return NewFilter(task=task, old=old, modules=modules, report=_built_report(task, built))


def _old_filter(task: Task) -> StoredBloomFilter | None:
    """Return the chunk's present filter, or None.

    Raises an error for a damaged filter, unless it is to be replaced.
    """
    try:
        return read_bloom_filter(task.file, task.chunk)
    except SecureBloomError as error:
        # Nobody can use a damaged filter, so to replace it loses nothing.
        if task.replace:
            return None
        error.hint = error.hint or "a damaged filter can be built anew: --replace-filters"
        raise


def _is_change(outcome: ChunkOutcome) -> bool:
    """Return whether the metadata change: a new filter, or the missing length of a kept one.

    parquet-java 1.14.0 to 1.15.2 finds no rows in a file whose filters have no length.
    """
    meta_data = outcome.task.chunk.meta_data
    return isinstance(outcome, NewFilter) or meta_data.bloom_filter_length is None


def _replaced(outcomes: list[ChunkOutcome]) -> Replaced:
    """Return the chunks whose filters are replaced, and the extents of the filters.

    Each filter whose space is used again was read as a filter before.
    """
    return {
        (outcome.task.chunk.row_group, outcome.task.chunk.column): (
            None if outcome.old is None else (outcome.old.offset, outcome.old.end)
        )
        for outcome in outcomes
        if isinstance(outcome, NewFilter)
    }


def _lay_out(
    outcomes: list[ChunkOutcome], start: int
) -> tuple[list[bytes], list[FilterPlace], list[FilterReport]]:
    """Return the bytes of new filters in order, all filter places to record, and the reports.

    New filters are placed one after the other from ``start`` on.
    """
    parts: list[bytes] = []
    places, reports = [], []
    for outcome in outcomes:
        chunk = outcome.task.chunk
        if isinstance(outcome, NewFilter):
            places.append(FilterPlace(chunk, start, len(outcome.modules)))
            start += len(outcome.modules)
            parts.append(outcome.modules)
            reports.append(outcome.report)
            continue
        reports.append(_kept_report(outcome.task, outcome.stored))
        if _is_change(outcome):
            places.append(FilterPlace(chunk, outcome.stored.offset, outcome.stored.length))
    return parts, places, reports


def _built_report(task: Task, built: BuiltFilter) -> FilterReport:
    fpp = built.filter.fpp()
    # The footer decides, not `old`: a damaged filter is replaced too, although it was not read.
    had_filter = task.chunk.meta_data.bloom_filter_offset is not None
    return FilterReport(
        row_group=task.chunk.row_group,
        column=task.chunk.leaf.name,
        bytes=built.filter.byte_count,
        values=built.values,
        fpp_requested=task.options.fpp,
        fpp=fpp,
        encrypted=task.chunk.cipher is not None,
        key=_key_name(task.chunk),
        source=built.source,
        action="replaced" if had_filter else "added",
        reason="; ".join(_built_remarks(task, built, fpp)) or None,
    )


def _built_remarks(task: Task, built: BuiltFilter, fpp: float) -> Iterator[str]:
    if built.missed:
        values = counted(built.missed, "value")
        yield f"the old one missed {values} of its column: queries lost rows with it"
    if fpp > task.options.fpp:
        yield f"max_bytes {task.options.max_bytes} is too small for the fpp"


def _kept_report(task: Task, kept: StoredBloomFilter) -> FilterReport:
    has_length = task.chunk.meta_data.bloom_filter_length is not None
    return FilterReport(
        row_group=task.chunk.row_group,
        column=task.chunk.leaf.name,
        bytes=kept.filter.byte_count,
        fpp_requested=task.options.fpp,
        fpp=kept.filter.fpp(),
        encrypted=task.chunk.cipher is not None,
        key=_key_name(task.chunk),
        action="kept",
        reason="it was there already" if has_length else "its missing length was added",
    )


def _key_name(chunk: Chunk) -> str | None:
    return None if chunk.cipher is None else chunk.cipher.key.name


def _skipped(footer: Footer, wanted: WantedFilters) -> Iterator[FilterReport]:
    for name in wanted.missing(footer.leaves):
        # Files of a table written before and after a column was added differ so: no error.
        yield FilterReport(
            row_group=None,
            column=name,
            fpp_requested=wanted.columns[name].fpp,
            action="skipped",
            reason="the file has no such column",
        )
