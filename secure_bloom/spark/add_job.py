"""The step after the write: add filters to a table's files on the executors.

The driver ships the policy and where files are, never a key: each executor asks the policy's KMS
itself.  A task that runs again, as a retry or a speculative copy, finds its filters there already.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from secure_bloom.adding.preflight import Survey, survey_file
from secure_bloom.adding.report import FileAddReport
from secure_bloom.adding.request import (
    Columns,
    FilterRequest,
    filter_request,
    request_keys,
    request_resolver,
)
from secure_bloom.adding.rewrite import Rewriter, WriteMode, failed_report
from secure_bloom.calling.arguments import Progress, checked_arguments
from secure_bloom.delta.add_run import AddRun, open_run
from secure_bloom.delta.recognition import delta_table
from secure_bloom.delta.table_run import refuse_options_of_files
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import SecureBloomError
from secure_bloom.spark.delta_job import (
    BesideJob,
    rewrite_delta,
    table_files,
    table_selection,
    time_of_files,
)
from secure_bloom.spark.file_reports import FileJob, reporting, run_file_job
from secure_bloom.spark.job_files import job_files
from secure_bloom.spark.package_archive import opened_once, ship
from secure_bloom.spark.request_check import check_request
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.tasks import Row
from secure_bloom.storage import refuse_append
from secure_bloom.storage.paths import Paths, absolute_path, as_paths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_REPORT = RowSchema(
    {
        "path": "string",
        "status": "string",
        "row_group": "int",
        "column": "string",
        "action": "string",
        "reason": "string",
        "source": "string",
        "values": "long",
        "bytes": "long",
        "fpp_requested": "double",
        "fpp": "double",
        "encrypted": "boolean",
        "key": "string",
        "bytes_before": "long",
        "bytes_after": "long",
        "seconds": "double",
        "error": "string",
        "hint": "string",
        "causes": "array<string>",
        "notes": "array<string>",
    }
)
#: One row per file, row group and column; a file without any of them has one row.  ``notes`` stand
#: in the first row of a file.
REPORT_SCHEMA = _REPORT.ddl


@checked_arguments
def add_bloom_filters(
    spark: SparkSession,
    paths: Paths,
    policy: KeyPolicy | str | os.PathLike[str] | None = None,
    *,
    columns: Columns | None = None,
    where: str | None = None,
    since: datetime | str | int | None = None,
    in_place: bool = False,
    replace_filters: bool = False,
    dry_run: bool = False,
    allow_unprotected: bool = False,
    on_error: str = "raise",
    report: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Add Bloom filters to the Parquet files at ``paths``, in tasks of about equal bytes.

    There are about three tasks for each core: a large file has one to itself, small ones share.

    ``paths`` are files, folders or globs that driver and executors see alike, or names of tables in
    Spark's catalog (``"db.customers"``).  ``where`` takes only files of some partitions (``"day =
    '2026-11-20'"``).  ``since``, a datetime or an ISO text, takes only files written then or later;
    times without a zone count in UTC.  If the folder of a Delta table is given alone, a commit of
    its log changes the table; there ``since`` may be a version, too.  ``columns`` is as for
    :func:`secure_bloom.add_bloom_filters`; without it the policy's columns are taken.  With
    ``allow_unprotected`` files are taken even if they are protected less than the policy says.  The
    executors need this package, and the policy's KMS or keyring file, but not the driver's keys.

    Returns a DataFrame with one row per file, row group and column (:data:`REPORT_SCHEMA`); it
    holds results and runs nothing again.  The executors keep it; ``report`` is a new folder for it,
    as Parquet, which outlives them.  A file that fails has a row with its ``error``, and is as it
    was.  A file whose task ran twice may be reported by the second one: "unchanged".  The notes of
    :class:`secure_bloom.adding.report.AddReport` are given by ``warnings.warn``.

    Raises :class:`~secure_bloom.errors.FilesFailedError`, whose ``report`` is the DataFrame, if
    files failed, after all were tried; ``on_error="report"`` returns it in any case.  Before
    anything is written it looks at the footers of a few files, and raises as
    :func:`secure_bloom.add_bloom_filters` does.  It raises :class:`SparkUnavailableError` if the
    executors' Python lacks this package.

    Spark kills the slower of two speculative copies; if that one is appending just then, a torn
    tail stays until the next ``in_place`` run.  That can happen only if both ``in_place`` and
    ``replace_filters`` are given: switch speculation off for such jobs.

    A DataFrame that was made over these files before keeps their old sizes and must be read anew:
    ``spark.read.parquet(...)``; for a table, ``REFRESH TABLE``.
    """
    wanted = reporting(on_error, report, progress)
    request = filter_request(columns, policy, replace_filters=replace_filters)
    request_keys(request, None)
    every = as_paths(paths)
    folder = delta_table([absolute_path(path) for path in every])
    if folder is not None:
        refuse_options_of_files(folder, in_place=in_place, output=False)
        chosen = table_selection(where, since)
        run = open_run(folder, request, chosen)
        beside = _beside_job(spark, run, allow_unprotected=allow_unprotected, dry_run=dry_run)
        return rewrite_delta(spark, run, beside, wanted, dry_run=dry_run)
    shared = ship((request, allow_unprotected))
    mode = WriteMode(in_place=in_place, dry_run=dry_run)
    with job_files(spark, every, where=where, since=time_of_files(since)) as files:
        if in_place:
            refuse_append(files.roots)
        check_request(files, functools.partial(_survey, shared=shared))
        work = functools.partial(_rewrite, shared=shared, mode=mode)
        job = FileJob(schema=_REPORT, work=work, rows=_rows, what="got filters")
        return run_file_job(files, job, wanted).wanted_by(wanted)


def _beside_job(
    spark: SparkSession, run: AddRun, *, allow_unprotected: bool, dry_run: bool
) -> BesideJob[FileAddReport]:
    """Return the work on the files of a Delta table, after a look at a few of them."""
    # The request in the names of the files, which may differ from the table's.
    shared = ship((run.request, allow_unprotected))
    check_request(
        table_files(spark, run, {path: path for path in run.paths}),
        functools.partial(_survey, shared=shared),
    )
    mode = WriteMode(dry_run=dry_run, only_changes=True)
    return BesideJob(
        schema=_REPORT,
        rewrite=functools.partial(_rewrite, shared=shared, mode=mode),
        in_names=run.names.in_report,
        rows=_rows,
    )


def _rows(report: FileAddReport) -> Iterator[Row]:
    """Yield a file's report as rows."""
    file = asdict(report)
    for filter_ in file.pop("filters") or [{}]:
        yield _REPORT.row({**file, **filter_})
        file["notes"] = ()


@opened_once
def _opened(shipped: tuple[FilterRequest, bool]) -> tuple[FilterRequest, KeyResolver]:
    request, allow_unprotected = shipped
    return request, request_resolver(request, None, allow_unprotected=allow_unprotected)


# If an executor cannot reach the KMS, its files fail and not the whole job: hence two `except`.


def _survey(path: str, *, shared: bytes) -> Survey:
    try:
        request, resolver = _opened(shared)
    except SecureBloomError as error:
        return Survey(path=path, failure=error)
    return survey_file(path, request, resolver)


def _rewrite(
    path: str, target: str | None = None, *, shared: bytes, mode: WriteMode
) -> FileAddReport:
    try:
        request, resolver = _opened(shared)
    except SecureBloomError as error:
        return failed_report(path, error)
    return Rewriter(request=request, resolver=resolver, mode=mode).rewrite(path, target=target)
