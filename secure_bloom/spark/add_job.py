"""The step after the write: add filters to a table's files on the executors.

The driver ships the policy and the names of files, never a key: each executor asks the policy's KMS
itself.  A task that runs again, as a retry or a speculative copy, finds its filters there already.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from secure_bloom.adding.preflight import Survey, check_surveys, survey_file
from secure_bloom.adding.report import FileAddReport, file_notes
from secure_bloom.adding.request import (
    Columns,
    FilterRequest,
    filter_request,
    request_keys,
    request_resolver,
)
from secure_bloom.adding.rewrite import Rewriter, WriteMode, failed_report
from secure_bloom.adding.summary_files import summary_notes
from secure_bloom.adding.torn_append import Cut
from secure_bloom.encryption.keys import KeyResolver
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import SecureBloomError
from secure_bloom.spark.progress import Progress, task_progress
from secure_bloom.spark.shipping import opened_once, ship
from secure_bloom.spark.tasks import run_tasks, task_count
from secure_bloom.storage import find_files, refuse_append, refuse_managed
from secure_bloom.storage.paths import Paths, as_paths, is_object_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: One row per file, row group and column; a file without any of them has one row.
REPORT_SCHEMA = (
    "path string, status string, row_group int, column string, action string, reason string, "
    "source string, values long, bytes long, fpp_requested double, fpp double, "
    "encrypted boolean, key string, bytes_before long, bytes_after long, seconds double, "
    "error string, hint string"
)
_REPORT_FIELDS = [field.split()[0] for field in REPORT_SCHEMA.split(", ")]


def add_bloom_filters(
    spark: SparkSession,
    paths: Paths,
    policy: KeyPolicy | str | os.PathLike[str] | None = None,
    *,
    columns: Columns | None = None,
    in_place: bool = False,
    replace_filters: bool = False,
    dry_run: bool = False,
    allow_unprotected: bool = False,
    progress: Progress | None = None,
) -> DataFrame:
    """Add Bloom filters to the Parquet files at ``paths``, one Spark task a file.

    Where there are more than 64 files, and more than 16 for each core, a task has several.

    ``paths`` are files, folders or globs that driver and executors see alike.  ``columns`` is as
    for :func:`secure_bloom.add_bloom_filters`; without it the policy's columns are taken.  The
    executors need this package, and the policy's KMS or keyring file, not the driver's keys.
    ``progress`` is told how many files are done, of how many.  With ``allow_unprotected`` files are
    taken that are protected less than the policy says.

    Returns a DataFrame with one row per file, row group and column (:data:`REPORT_SCHEMA`); it
    holds results and runs nothing again.  A file that fails has a row with its ``error``, and is
    as it was.  A file whose task ran twice may be reported by the second one: "unchanged".
    What :class:`secure_bloom.adding.report.AddReport` has as notes is told by ``warnings.warn``.

    Raises as :func:`secure_bloom.add_bloom_filters` does before anything is written, and
    :class:`SparkUnavailableError` where the executors' Python lacks this package.

    Spark kills the slower of two speculative copies; if that one is appending just then, a torn
    tail stays until the next ``in_place`` run.  It can happen only where ``in_place`` and
    ``replace_filters`` come together: switch speculation off for those.

    A DataFrame that was made over these files before keeps their old sizes and must be read anew:
    ``spark.read.parquet(...)``; for a table, ``REFRESH TABLE``.
    """
    request = filter_request(columns, policy, replace_filters=replace_filters)
    request_keys(request, None)
    every = as_paths(paths)
    refuse_managed(every)
    files = [absolute_path(path) for path in find_files(every)]
    if in_place:
        refuse_append(files)
    shared = ship((request, allow_unprotected))
    mode = WriteMode(in_place=in_place, dry_run=dry_run)
    survey = functools.partial(_survey, shared=shared, mode=mode)
    tasks = task_count(spark, len(files), at_least=64, per_core=4)
    surveys = run_tasks(spark, files, survey, tasks=tasks)
    failures = check_surveys(surveys)
    todo = [path for path in files if path not in failures]
    cuts = {survey.path: survey.cut for survey in surveys if survey.cut}
    rewrite = functools.partial(_rewrite, shared=shared, mode=mode, cuts=cuts)
    tasks = task_count(spark, len(todo), at_least=64, per_core=16)
    with task_progress(spark, progress, done=len(failures), total=len(files), tasks=tasks):
        reports = run_tasks(spark, todo, rewrite, tasks=tasks)
    done = {report.path: report for report in reports}
    changed = [report.path for report in reports if report.changes]
    for note in (*file_notes(reports), *summary_notes(changed)):
        warnings.warn(note, stacklevel=2)
    done |= {path: failed_report(path, error) for path, error in failures.items()}
    rows = [row for path in files for row in _rows(done[path])]
    return spark.createDataFrame(rows, REPORT_SCHEMA)


def absolute_path(path: str) -> str:
    """An absolute path, because executors do not run in the driver's folder."""
    return path if is_object_uri(path) else str(Path(path).absolute())


def _rows(report: FileAddReport) -> Iterator[tuple[object, ...]]:
    """A file's report as rows of :data:`REPORT_SCHEMA`."""
    file = asdict(report)
    for filter_ in file.pop("filters") or [{}]:
        row = {**file, **filter_}
        yield tuple(row.get(field) for field in _REPORT_FIELDS)


@opened_once
def _opened(shipped: tuple[FilterRequest, bool]) -> tuple[FilterRequest, KeyResolver]:
    request, allow_unprotected = shipped
    return request, request_resolver(request, None, allow_unprotected=allow_unprotected)


# Where an executor cannot reach the KMS, its files fail and not the whole job: hence two `except`.


def _survey(path: str, *, shared: bytes, mode: WriteMode) -> Survey:
    try:
        request, resolver = _opened(shared)
    except SecureBloomError as error:
        return Survey(path=path, failure=error)
    return survey_file(path, request, resolver, repair=mode.repairs)


def _rewrite(
    path: str, *, shared: bytes, mode: WriteMode, cuts: Mapping[str, Cut]
) -> FileAddReport:
    try:
        request, resolver = _opened(shared)
    except SecureBloomError as error:
        return failed_report(path, error)
    return Rewriter(request=request, resolver=resolver, mode=mode).rewrite(path, cut=cuts.get(path))
