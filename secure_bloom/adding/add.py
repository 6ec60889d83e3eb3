"""Add Bloom filters to files: check everything first, then plan and write file by file."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from os import PathLike

from secure_bloom.adding.plan import ChunkOutcome, Mapper, Task
from secure_bloom.adding.preflight import Survey, check_surveys, survey_file
from secure_bloom.adding.report import AddReport, FileAddReport, file_notes
from secure_bloom.adding.request import Columns, Keys, filter_request, request_resolver
from secure_bloom.adding.rewrite import Rewriter, WriteMode, failed_report
from secure_bloom.adding.summary_files import summary_notes
from secure_bloom.adding.targets import files_to_write
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.ordered_pool import in_order
from secure_bloom.parquet.keys_ahead import KeysAhead
from secure_bloom.storage.paths import Paths

#: Called with the number of column chunks done and the number of all column chunks.  Calls come
#: from any thread, one at a time.
Progress = Callable[[int, int], None]


def add_bloom_filters(
    paths: Paths,
    *,
    columns: Columns | None = None,
    policy: KeyPolicy | str | PathLike[str] | None = None,
    keys: Keys | None = None,
    in_place: bool = False,
    output: str | PathLike[str] | None = None,
    replace_filters: bool = False,
    dry_run: bool = False,
    allow_unprotected: bool = False,
    progress: Progress | None = None,
) -> AddReport:
    """Add split-block Bloom filters to existing Parquet files without touching a data page.

    ``paths`` are files, folders or globs.  ``columns`` maps column names to their options, or
    lists names; without it the policy's columns are taken.  ``keys`` defaults to the policy's
    KMS; a client of your own may be called from several threads.  Files are replaced atomically,
    or with ``in_place`` appended to, or with ``output`` written below another folder; several at
    a time.  A file that fails is reported and does not stop the others: so is one that is protected
    less than the policy says, with a weaker algorithm, shorter keys or a footer in clear, unless
    ``allow_unprotected`` is given.

    Raises PolicyError or UnsupportedFeatureError before any file is written where the request
    itself cannot be: an unknown column, a BOOLEAN column, an unknown master key, a managed table.
    """
    request = filter_request(columns, policy, replace_filters=replace_filters)
    resolver = request_resolver(request, keys, allow_unprotected=allow_unprotected)
    files, targets = files_to_write(paths, in_place=in_place, output=output)
    mode = WriteMode(in_place=in_place, dry_run=dry_run)
    surveys = [
        survey_file(path, request, resolver, repair=mode.repairs)
        for path in KeysAhead(resolver).each(files)
    ]
    failures = check_surveys(surveys)
    rewriter = Rewriter(request=request, resolver=resolver, mode=mode)
    meter = _Meter(progress, sum(survey.chunks for survey in surveys))

    def rewrite(survey: Survey, run: Mapper) -> FileAddReport:
        failure = failures.get(survey.path)
        if failure is not None:
            return failed_report(survey.path, failure, cuts=(survey.cut,) if survey.cut else ())
        target = targets.get(survey.path)
        return rewriter.rewrite(survey.path, target=target, run=run, cut=survey.cut)

    reports = list(_side_by_side(rewrite, surveys, meter))
    changed = [targets.get(report.path, report.path) for report in reports if report.changes]
    notes = (*file_notes(reports), *summary_notes(changed))
    return AddReport(files=tuple(reports), notes=notes, dry_run=dry_run)


def _side_by_side(
    rewrite: Callable[[Survey, Mapper], FileAddReport], surveys: Sequence[Survey], meter: _Meter
) -> Iterator[FileAddReport]:
    """The reports of all files, in order; as many files are at work as there are cores.

    The column chunks of all files share one pool, so only as many chunks as there are cores are in
    memory.  One file computes while another one waits for the disk.
    """
    workers = os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as chunks:
        yield from in_order(
            lambda survey: meter.metered(rewrite, survey, chunks),
            surveys,
            workers,
            room=len(surveys),
            # After an interrupt a file at work finds no pool for its next chunk, and so it ends
            # before it writes.
            stop=partial(chunks.shutdown, wait=False, cancel_futures=True),
        )


class _Meter:
    """Counts the column chunks that are done, and tells ``progress`` of each."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self._lock = threading.Lock()
        self._advance(0)

    def metered(
        self,
        rewrite: Callable[[Survey, Mapper], FileAddReport],
        survey: Survey,
        executor: Executor,
    ) -> FileAddReport:
        """Rewrite one file, and count its chunks: each when it is done, at the end those left."""
        left = survey.chunks

        def run(
            work: Callable[[Task], ChunkOutcome], tasks: Iterable[Task]
        ) -> Iterator[ChunkOutcome]:
            nonlocal left
            for outcome in executor.map(work, tasks):
                # If another writer was faster, the file is planned again: same chunks, not counted.
                if left > 0:
                    left -= 1
                    self._advance(1)
                yield outcome

        report = rewrite(survey, run)
        self._advance(left)
        return report

    def _advance(self, chunks: int) -> None:
        with self._lock:
            self._done += chunks
            if self._progress is not None:
                self._progress(self._done, self._total)
