"""Add Bloom filters to files: check everything first, then plan and write one file at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from os import PathLike

from secure_bloom.errors import PolicyError
from secure_bloom.keys import KeyResolver
from secure_bloom.planning import Mapper, Outcome, Task
from secure_bloom.policy import KeyPolicy
from secure_bloom.report import AddReport, FileReport
from secure_bloom.request import Columns, Keys, filter_request, request_keys
from secure_bloom.rewriting import Rewriter, WriteMode, failed_report
from secure_bloom.sources import Paths, as_paths, output_paths
from secure_bloom.storage import find_files, refuse_append, refuse_managed
from secure_bloom.summaries import summary_notes
from secure_bloom.survey import check_surveys, survey_file

#: Called with the number of column chunks done and the number of them in all.
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
    progress: Progress | None = None,
) -> AddReport:
    """Add split-block Bloom filters to existing Parquet files without touching a data page.

    ``paths`` are files, folders or globs.  ``columns`` maps column names to their options, or
    lists names; without it the policy's columns are taken.  ``keys`` defaults to the policy's
    KMS.  Files are replaced atomically, or with ``in_place`` appended to, or with ``output``
    written below another folder.  A file that fails is reported and does not stop the others.

    Raises PolicyError or UnsupportedFeatureError before any file is written where the request
    itself cannot be: an unknown column, a BOOLEAN column, an unknown master key, a managed table.
    """
    request = filter_request(columns, policy, replace_filters=replace_filters)
    if in_place and output is not None:
        raise PolicyError("in_place and output exclude each other")
    resolver = KeyResolver(request_keys(request, keys))
    every = as_paths(paths)
    refuse_managed(every)
    files = find_files(every)
    if in_place:
        refuse_append(files)
    targets = {} if output is None else output_paths(files, every, os.fspath(output))
    mode = WriteMode(in_place=in_place, dry_run=dry_run)
    surveys = [survey_file(path, request, resolver, repair=mode.repairs) for path in files]
    failures = check_surveys(surveys)
    rewriter = Rewriter(request=request, resolver=resolver, mode=mode)
    meter = _Meter(progress, sum(survey.chunks for survey in surveys))
    reports: list[FileReport] = []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as executor:
        run = meter.counting(executor)
        for survey in surveys:
            failure = failures.get(survey.path)
            reports.append(
                failed_report(survey.path, failure)
                if failure is not None
                else rewriter.rewrite(survey.path, target=targets.get(survey.path), run=run)
            )
            meter.finish(survey.chunks)
    changed = [targets.get(report.path, report.path) for report in reports if report.changes]
    return AddReport(files=tuple(reports), notes=summary_notes(changed), dry_run=dry_run)


class _Meter:
    """Tells how many column chunks are done, of how many."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._before = 0
        self._tell(0)

    def counting(self, executor: Executor) -> Mapper:
        """``executor.map``, telling of each outcome as it comes."""

        def run(work: Callable[[Task], Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
            for done, outcome in enumerate(executor.map(work, tasks), start=1):
                self._tell(done)
                yield outcome

        return run

    def finish(self, chunks: int) -> None:
        """A file of so many chunks is done, or given up."""
        self._before += chunks
        self._tell(0)

    def _tell(self, done: int) -> None:
        if self._progress is not None:
            self._progress(min(self._before + done, self._total), self._total)
