"""Add Bloom filters to files: check everything first, then plan and write one file at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike

from secure_bloom.errors import (
    FileChangedError,
    FormatError,
    PolicyError,
    SecureBloomError,
    located,
)
from secure_bloom.keys import ExplicitKeys, KeyResolver, Keyring, KmsClient
from secure_bloom.planning import Mapper, Outcome, RewritePlan, Task, plan_rewrite
from secure_bloom.policy import KeyPolicy, check_master_keys
from secure_bloom.report import AddReport, FileReport
from secure_bloom.request import Columns, FilterRequest, filter_request
from secure_bloom.sources import (
    Paths,
    as_paths,
    file_keys,
    key_material_name,
    output_paths,
)
from secure_bloom.storage import (
    InputFile,
    append_tail,
    find_files,
    open_input,
    refuse_append,
    refuse_managed,
    replace_tail,
    sibling,
)
from secure_bloom.summaries import summary_notes
from secure_bloom.survey import check_surveys, survey_file
from secure_bloom.torn import mend

#: Called with the number of column chunks done and the number of them in all.
Progress = Callable[[int, int], None]
Keys = Keyring | KmsClient | ExplicitKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteMode:
    """How files are written: replaced, appended to (``in_place``), or not at all (``dry_run``)."""

    in_place: bool = False
    dry_run: bool = False

    @property
    def repairs(self) -> bool:
        """Whether what a killed ``in_place`` run left behind may be cut off."""
        return self.in_place and not self.dry_run


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
    meter = _Meter(progress, sum(survey.chunks for survey in surveys))
    reports: list[FileReport] = []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as executor:
        run = meter.counting(executor)
        for survey in surveys:
            failure = failures.get(survey.path)
            reports.append(
                failed_report(survey.path, failure)
                if failure is not None
                else rewrite_file(
                    survey.path, request, resolver, mode, targets.get(survey.path), run
                )
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


def request_keys(request: FilterRequest, keys: Keys | None) -> Keys | None:
    """The keys of a run: those given, else the policy's KMS, which must know the policy's keys."""
    policy = request.policy
    if policy is None:
        return keys
    if keys is None and (policy.kms or policy.master_keys()):
        keys = policy.kms_client()
    if keys is not None and not isinstance(keys, ExplicitKeys):
        check_master_keys(policy, keys)
    return keys


def rewrite_file(
    path: str,
    request: FilterRequest,
    resolver: KeyResolver,
    mode: WriteMode,
    target: str | None = None,
    run: Mapper = map,
) -> FileReport:
    """Do one file; errors of this package become a report with status ``failed``.

    Safe to run twice on one file, at the same time too: the later one finds the file changed,
    reads it anew, and finds nothing left to do.
    """
    started = time.perf_counter()
    try:
        with located(path=path):
            plan, before = _rewrite(path, request, resolver, mode, target, run)
    except SecureBloomError as error:
        return failed_report(path, error, time.perf_counter() - started)
    return FileReport(
        path=path,
        status="unchanged" if plan.is_empty else "added",
        bytes_before=before,
        bytes_after=plan.size,
        seconds=round(time.perf_counter() - started, 6),
        filters=plan.filters,
    )


def _rewrite(
    path: str,
    request: FilterRequest,
    resolver: KeyResolver,
    mode: WriteMode,
    target: str | None,
    run: Mapper,
) -> tuple[RewritePlan, int]:
    """Plan and write, anew where another writer was faster; the plan and the old size."""
    for _ in range(2):
        try:
            return _rewrite_once(path, request, resolver, mode, target, run)
        except FileChangedError:
            continue
        except FormatError:
            if not (mode.repairs and mend(path)):
                raise
    return _rewrite_once(path, request, resolver, mode, target, run)


def _rewrite_once(
    path: str,
    request: FilterRequest,
    resolver: KeyResolver,
    mode: WriteMode,
    target: str | None,
    run: Mapper,
) -> tuple[RewritePlan, int]:
    with open_input(path) as file:
        keys = file_keys(resolver, file)
        plan = plan_rewrite(file, keys, request, append=mode.in_place, run=run)
        _write(file, plan, mode, target)
        return plan, file.size


def _write(file: InputFile, plan: RewritePlan, mode: WriteMode, target: str | None) -> None:
    if mode.dry_run or (plan.is_empty and target is None):
        return
    if mode.in_place:
        append_tail(file, plan.tail)
        return
    if target is not None:
        # First, so that no moment sees a file whose keys cannot be found.
        _carry_key_material(file, target)
    replace_tail(file, plan.keep, plan.tail, output=target)


def _carry_key_material(file: InputFile, target: str) -> None:
    """Copy key material that is stored beside the file to the folder of its copy."""
    name = key_material_name(file.name)
    if file.read_sibling(name) is None:
        return
    with open_input(sibling(file.path, name)) as material:
        replace_tail(material, material.size, (), output=sibling(target, name))


def failed_report(path: str, error: SecureBloomError, seconds: float = 0.0) -> FileReport:
    """The report of a file that could not be done and is as it was."""
    return FileReport(
        path=path, status="failed", seconds=round(seconds, 6), error=str(error), hint=error.hint
    )
