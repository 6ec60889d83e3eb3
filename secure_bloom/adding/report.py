"""The report of a run of ``add_bloom_filters``: a record for each file and filter, and its JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Final, Generic, Literal, Protocol

from secure_bloom.reports.base import F, WritingReport
from secure_bloom.reports.text import counted, human_bytes
from secure_bloom.runs.target import GONE, GONE_TOGETHER, NOTHING_WRITTEN, TableCommit

#: How a note begins that is about readers of the new filters.
READERS: Final = "readers: "
FileStatus = Literal["added", "unchanged", "failed"]
FilterAction = Literal["added", "kept", "replaced", "skipped"]


# Reports come from other processes, one for each file.  Records with slots are taken apart and put
# together in Python, so their way takes five times as long.
@dataclass(frozen=True, kw_only=True)
class FilterReport:
    """The filter of one column chunk, and what the run did with it.

    ``bytes`` is the size of the bitset. ``values`` is the number of values inserted (entries of a
    dictionary, or values read from pages, without nulls). ``fpp`` is the exact false-positive
    probability of the filter's own bits. ``key`` is the name of the master key it is encrypted
    under.
    """

    row_group: int | None
    column: str
    bytes: int | None = None
    values: int | None = None
    fpp_requested: float | None = None
    fpp: float | None = None
    encrypted: bool = False
    key: str | None = None
    source: str | None = None
    action: FilterAction
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class FileAddReport:
    """One file: sizes in bytes, wall-clock seconds, its filters in row-group and column order.

    ``new_path`` is the new file, in a table or below ``output``, that now has the rows of this
    file. ``causes`` are the errors that led to ``error``, from :func:`~secure_bloom.errors.causes`.
    ``notes`` say what else the run did to the file: bytes that it cut off, hard links that it
    broke.
    """

    path: str
    status: FileStatus
    bytes_before: int | None = None
    bytes_after: int | None = None
    seconds: float = 0.0
    filters: tuple[FilterReport, ...] = ()
    error: str | None = None
    hint: str | None = None
    causes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    new_path: str | None = None

    @property
    def changes(self) -> bool:
        """Whether the file gets another footer."""
        return self.status == "added"

    def taken_meanwhile(self) -> FileAddReport:
        """Return the report of a file that another writer removed from its table meanwhile."""
        return replace(
            self,
            status="unchanged",
            bytes_after=self.bytes_before,
            filters=(),
            error=None,
            hint=None,
            causes=(),
            notes=(*self.notes, GONE),
            new_path=None,
        )


def skipped_file(path: str, reason: str) -> FileAddReport:
    """Return the report of a file that a run leaves out."""
    return FileAddReport(path=path, status="unchanged", notes=(f"skipped: {reason}",))


class NotedFile(Protocol):
    """The report of a file, with notes."""

    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def notes(self) -> tuple[str, ...]: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CommittingReport(WritingReport[F], Generic[F]):
    """A run that may write to a table. ``commits`` are the commits to the table's log."""

    commits: tuple[TableCommit, ...] = ()

    def _document(self) -> dict[str, Any]:
        # super() without arguments knows another class than a dataclass with slots.
        document = WritingReport._document(self)
        return {**document, "commits": [asdict(commit) for commit in self.commits]}


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """The cost of a run on all ``files``, estimated from ``sampled_files`` of them.

    ``margin`` is a share of ``bytes_added``: for 19 of 20 samples the true value differs by no more
    than that. It is 0 if all files were planned. ``requests`` counts requests to an object store,
    if the files are in one. ``driver_memory`` is the memory of a driver on Spark in bytes,
    ``process_memory`` the memory of a run on one machine. ``hours`` maps a number of cores to
    wall-clock hours.
    """

    files: int
    bytes: int
    sampled_files: int
    sampled_bytes: int
    bytes_added: int
    share_added: float
    margin: float
    requests: int
    cpu_hours: float
    listing_seconds: float
    driver_memory: int
    process_memory: int
    hours: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AddReport(CommittingReport[FileAddReport]):
    """What an ``add`` did to each file. With ``dry_run`` nothing was written.

    ``estimate`` is what a run on all files is expected to cost.

    ``notes`` name files that were left unchanged and need attention, and summary files that
    describe changed files. They repeat the notes of single files.
    """

    estimate: CostEstimate | None = None

    ROWS: ClassVar = ("files", "filters")

    def _document(self) -> dict[str, Any]:
        document = CommittingReport._document(self)
        estimate = None if self.estimate is None else asdict(self.estimate)
        return {**document, "estimate": estimate}

    @property
    def totals(self) -> dict[str, Any]:
        """The numbers of files and filters, and their sizes in bytes.

        ``filter_bytes`` is the size of the bitsets of new filters. Filters that were kept or
        skipped do not count there.
        """
        filters = [it for file in self.files for it in file.filters]
        built = [it.bytes or 0 for it in filters if it.action in ("added", "replaced")]
        # super() without arguments knows another class than a dataclass with slots.
        common = CommittingReport.totals.fget(self)  # type: ignore[attr-defined]
        actions = dict(Counter(it.action for it in filters))
        return {**common, "filters": actions, "filter_bytes": sum(built)}


def hard_link_note(names: int) -> str:
    """Return the note of a file with several ``names`` that was replaced under one of them."""
    return f"the old content stays under {counted(names - 1, 'other name')} (hard link)"


def left_filters_notes(
    files: Iterable[FileAddReport], *, in_place: bool, dry_run: bool
) -> Iterator[str]:
    """Yield one note on the replaced filters whose bytes stay in the files without use.

    They stay after an append, and after some, but not all, filters of a file were replaced.
    """
    grown = [
        (file.bytes_after or 0) - (file.bytes_before or 0)
        for file in files
        if any(it.action == "replaced" for it in file.filters) and _keeps_all_bytes(file)
    ]
    if not grown:
        return
    grow = f"{counted(len(grown), 'file')} {'would grow' if dry_run else 'grew'} by "
    if in_place:
        yield (
            f"{grow}{human_bytes(sum(grown))}: --in-place leaves the filters that it replaces in "
            "them; --replace-filters without it drops what appends have written, if it is the next "
            "run and replaces all filters"
        )
    else:
        yield (
            f"{grow}{human_bytes(sum(grown))}: the filters that are replaced stay in them as bytes "
            "without use; a run that replaces all filters of a file at once drops them"
        )


def _keeps_all_bytes(file: FileAddReport) -> bool:
    """Return whether a file grew by all of its new filters, so that old ones stay in it."""
    new = sum(it.bytes or 0 for it in file.filters if it.action in ("added", "replaced"))
    return (file.bytes_after or 0) >= (file.bytes_before or 0) + new


def copied_notes(files: Iterable[FileAddReport], place: str, *, dry_run: bool) -> Iterator[str]:
    """Yield a note on files that need no filter and are copied to the new folder unchanged."""
    if copied := sum(file.status == "unchanged" for file in files):
        be = "would be" if dry_run else "were" if copied > 1 else "was"
        yield f"{counted(copied, 'file')} that needed no new filter {be} copied to {place}"


def file_notes(files: Iterable[NotedFile]) -> Iterator[str]:
    """Yield the notes of single files, each with the file's path.

    A note on readers holds for all files alike, so it is given once, with the path of the first
    file, and so is the note of files that another writer took out of the table.
    """
    shared: dict[str, list[str]] = {}
    for file in files:
        for note in file.notes:
            if note.startswith(READERS) or note == GONE:
                shared.setdefault(note, []).append(file.path)
            else:
                yield f"{file.path}: {note}"
    for note, (first, *others) in shared.items():
        more = f" and {counted(len(others), 'other file')}" if others else ""
        yield f"{first}{more}: {GONE_TOGETHER if others and note == GONE else note}"


def notes_in_table(
    files: Iterable[NotedFile], gone: Collection[str], commits: Sequence[TableCommit]
) -> Iterator[str]:
    """Yield the notes of a table's files, of which other writers took ``gone`` out meanwhile.

    If nothing was committed, one note is for all of these.
    """
    is_lost = bool(gone) and not commits
    if is_lost:
        yield NOTHING_WRITTEN
    yield from file_notes(it for it in files if not (is_lost and it.path in gone))
