"""The files of one run: each is a task that may be sent to another process, which returns a report.

Task and report are plain records.  Each process opens everything else, such as unwrapped keys, for
itself.

``files_to_write`` returns the files that a run may write, and where their new content goes.

A summary file, ``_metadata``, repeats the footers of other files, and is stale when they change.
Each of its column chunks names its file in ``file_path``, relative to the folder of the summary.
Summary files are left unchanged, because other writers own them.

:func:`add_to_files` checks the request first, then plans and writes file by file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from secure_bloom.adding.preflight import check_few
from secure_bloom.adding.report import AddReport, FileAddReport, file_notes, left_filters_notes
from secure_bloom.adding.request import (
    Columns,
    FilterRequest,
    Keys,
    filter_request,
)
from secure_bloom.adding.rewrite import FileRewriter, Rewriter, WriteMode, failed_report
from secure_bloom.calling.arguments import Progress, check_fields
from secure_bloom.encryption.access import Access
from secure_bloom.errors import PolicyError, SecureBloomError, WorkerLostError
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.running.parallelism import chosen_parallelism, each_file
from secure_bloom.storage import (
    file_keys,
    find_files,
    open_input,
    refuse_append,
    refuse_managed,
    sibling,
    summary_files,
)
from secure_bloom.storage.listing import output_paths, refuse_inside
from secure_bloom.storage.paths import Paths, as_path, as_paths, files_at_once, mean_size

if TYPE_CHECKING:
    from secure_bloom.adding.rewrite_plan import ChunkOutcome, Task
    from secure_bloom.encryption.policy import KeyPolicy


def files_to_write(
    paths: Paths, *, in_place: bool, output: str | PathLike[str] | None
) -> tuple[list[str], Mapping[str, str]]:
    """Return the files at ``paths``, and with ``output`` the new path of each.

    Raises PolicyError for files of a table that keeps a log of them and, with ``in_place``, for
    files that cannot be appended to.
    """
    if in_place and output is not None:
        raise PolicyError("in_place and output exclude each other")
    every = as_paths(paths)
    refuse_managed(every)
    files = find_files(every)
    if in_place:
        refuse_append(files)
    if output is None:
        return files, {}
    targets = output_paths(files, every, as_path(output))
    refuse_inside(as_path(output), every)
    return files, targets


def summary_notes(changed: Iterable[str], *, what: str = "got filters") -> tuple[str, ...]:
    """Return one sentence for each summary file that describes one of the changed files.

    ``what`` says what happened to the changed files.
    """
    files = list(changed)
    return tuple(
        note
        for summary in summary_files(files)
        for note in stale_summary_notes(summary, files, what=what)
    )


def stale_summary_notes(summary: str, changed: Iterable[str], *, what: str) -> Iterator[str]:
    """Yield the sentence on a summary file if it describes one of the changed files."""
    described = _described(summary)
    # A summary that cannot be read may describe any file, so it gets a note too.
    if any(described is None or key in described for key in file_keys(changed)):
        yield (
            f"{summary} describes files that {what}, and what it says of their footers is out of "
            "date: write it anew, or remove it"
        )


def _described(summary: str) -> set[Hashable] | None:
    """Return the files that a summary describes, or None if it cannot be read."""
    try:
        with open_input(summary) as file:
            found = read_tail(file).scan
    except SecureBloomError:
        return None
    # Encrypted, so it cannot be looked into.
    if found is None:
        return None
    paths = {chunk.file_path for group in found.row_groups for chunk in group.columns}
    return set(file_keys(sibling(summary, path) for path in paths if path is not None))


class FileTask(NamedTuple):
    """One file that is to be rewritten, in place or to ``target``."""

    path: str
    target: str | None = None


def rewrite_files(
    rewriter: FileRewriter,
    open_rewriter: Callable[[], FileRewriter],
    tasks: Sequence[FileTask],
    *,
    chunks_a_file: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[FileAddReport]:
    """Return the report of each task, in order.

    ``open_rewriter`` makes the same rewriter in another process. ``chunks_a_file`` is the estimate
    that ``progress`` begins with.
    """
    meter = _Meter(progress, len(tasks), chunks_a_file)
    paths = [task.path for task in tasks]
    parallelism = chosen_parallelism(
        len(paths), jobs, mean_size=mean_size(paths), at_once=files_at_once(paths)
    )
    reports: dict[int, FileAddReport] = {}
    if parallelism.threads == 1:
        # Not in other processes, which wait for a KMS while they compute: here keys come ahead.
        rewriter = replace(rewriter, turn=threading.Lock())
    # The column chunks of all files share one pool, so only as many as there are cores are in
    # memory.  One file computes while another one waits for the disk.
    with _pool(parallelism.threads) as chunks:
        done = each_file(
            partial(meter.metered, rewriter, chunks),
            partial(_work, open_rewriter),
            tasks,
            parallelism,
            lost=_lost_file,
            # After an interrupt a file at work finds no pool for its next chunk, and so it ends
            # before it writes.
            stop=partial(chunks.shutdown, wait=False, cancel_futures=True),
            ahead=partial(with_key_prefetch, KeyPrefetch(rewriter.resolver)),
        )
        with closing(done):
            for index, report in done:
                reports[index] = report
                meter.finish(tasks[index], report)
    return [reports[index] for index in range(len(tasks))]


def _pool(threads: int) -> Executor:
    # To hand the chunk of a small file to another thread takes as long as the work on it.
    return _CallingThreads() if threads == 1 else ThreadPoolExecutor(threads)


class _CallingThreads(Executor):
    """An executor that runs each call in the thread that asks for its result."""

    def __init__(self) -> None:
        self._is_shut_down = False

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], **_options: Any) -> Any:
        """Yield ``fn`` of each item. Each call runs when its result is asked for."""
        for items in zip(*iterables, strict=False):
            if self._is_shut_down:
                raise RuntimeError("cannot work on a chunk after shutdown")
            yield fn(*items)

    def shutdown(self, *_arguments: Any, **_options: Any) -> None:
        """Make every later call fail."""
        self._is_shut_down = True


def with_key_prefetch(ahead: KeyPrefetch, tasks: Sequence[FileTask]) -> Iterator[FileTask]:
    """Yield each task when the keys of its file are available."""
    by_path = {task.path: task for task in tasks}
    return map(by_path.__getitem__, ahead.each(list(by_path)))


def _work(open_rewriter: Callable[[], FileRewriter]) -> Callable[[FileTask], FileAddReport]:
    """Return the work in another process."""
    rewriter = open_rewriter()
    return lambda task: rewriter.rewrite(task.path, target=task.target)


def _lost_file(task: FileTask, error: WorkerLostError) -> FileAddReport:
    error.path = task.path
    return failed_report(task.path, error)


class _Meter:
    """Counts the column chunks that are done, and calls ``progress`` for each."""

    def __init__(self, progress: Progress | None, files: int, chunks_a_file: int) -> None:
        self._progress = progress
        self._estimate = chunks_a_file
        self._total = files * chunks_a_file
        self._done = 0
        #: Chunks of each file that was opened, and how many of them are counted.
        self._chunks: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()
        self._report()

    def metered(self, rewriter: FileRewriter, chunks: Executor, task: FileTask) -> FileAddReport:
        """Rewrite one file, and count each of its chunks when it is done."""

        def run(
            work: Callable[[Task], ChunkOutcome], tasks: Sequence[Task]
        ) -> Iterator[ChunkOutcome]:
            self._open(task, len(tasks))
            for outcome in chunks.map(work, tasks):
                self._count(task, 1)
                yield outcome

        return rewriter.rewrite(task.path, target=task.target, run=run)

    def finish(self, task: FileTask, report: FileAddReport) -> None:
        """Count the chunks of a finished file that are not counted yet."""
        # A file that failed, or was done by another process, never opened its chunks here.
        self._open(task, sum(it.row_group is not None for it in report.filters))
        chunks, counted = self._chunks[task.path]
        self._count(task, chunks - counted)

    def _open(self, task: FileTask, chunks: int) -> None:
        with self._lock:
            # If another writer was faster, the file is planned again: same chunks, opened once.
            if task.path not in self._chunks:
                self._chunks[task.path] = chunks, 0
                self._total += chunks - self._estimate

    def _count(self, task: FileTask, more: int) -> None:
        with self._lock:
            chunks, counted = self._chunks[task.path]
            # A file that is planned twice counts its chunks twice.
            more = min(more, chunks - counted)
            self._chunks[task.path] = chunks, counted + more
            self._done += more
            self._report()

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self._done, self._total)


# No repr: keys may be a client of the user's, and show themselves.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AddRequest:
    """The arguments of :func:`secure_bloom.add_bloom_filters`, as described there."""

    paths: Paths
    _: KW_ONLY
    columns: Columns | None = None
    policy: KeyPolicy | str | PathLike[str] | None = None
    keys: Keys | None = None
    in_place: bool = False
    output: str | PathLike[str] | None = None
    replace_filters: bool = False
    dry_run: bool = False
    allow_unprotected: bool = False
    where: str | None = None
    since: int | None = None
    commit_every: int | None = None
    branch: str | None = None
    jobs: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def filters(self) -> FilterRequest:
        """Return the wanted filters. Raises PolicyError if there is none."""
        return filter_request(self.columns, self.policy, replace_filters=self.replace_filters)

    def rewriter(self, filters: FilterRequest, mode: WriteMode) -> Callable[[], Rewriter]:
        """Return a function that makes the work on single files, in this or another process."""
        access = Access(
            keys=self.keys, policy=filters.guard.policy, allow_unprotected=self.allow_unprotected
        )
        return partial(_rewriter, filters, access, mode)


def add_to_files(asked: AddRequest) -> AddReport:
    """Add filters to files that belong to no table, each in place or below ``output``."""
    filters = asked.filters()
    mode = WriteMode(in_place=asked.in_place, dry_run=asked.dry_run)
    open_rewriter = asked.rewriter(filters, mode)
    rewriter = open_rewriter()
    files, targets = files_to_write(asked.paths, in_place=asked.in_place, output=asked.output)
    chunks = check_few(files, filters, rewriter.resolver)
    reports = rewrite_files(
        rewriter,
        open_rewriter,
        [FileTask(path=path, target=targets.get(path)) for path in files],
        chunks_a_file=chunks,
        jobs=asked.jobs,
        progress=asked.progress,
    )
    changed = [targets.get(report.path, report.path) for report in reports if report.changes]
    left = left_filters_notes(reports) if asked.in_place else ()
    notes = (*file_notes(reports), *left, *summary_notes(changed))
    return AddReport(files=tuple(reports), notes=notes, dry_run=asked.dry_run)


def _rewriter(filters: FilterRequest, access: Access, mode: WriteMode) -> Rewriter:
    return Rewriter(request=filters, resolver=access.checked_resolver(), mode=mode)
