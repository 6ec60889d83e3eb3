"""Add filters to a table's files on the executors: the step after a write.

A request is checked against footers before any file is written.  A few footers show most errors.
The driver reads them itself where no KMS has to be asked, because a Spark job takes longer than 32
footers.  All footers are read only to find a column that the few lack.

A task that runs again, as a retry or a speculative copy, finds that its filters exist already.
"""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from secure_bloom.adding.preflight import (
    Survey,
    check_surveys,
    missing_in_all,
    readable_by_table,
    survey_file,
)
from secure_bloom.adding.request import Columns, FilterRequest, filter_request
from secure_bloom.adding.rewrite import Rewriter, WriteMode
from secure_bloom.api.add import open_table_run
from secure_bloom.calling.arguments import Progress, checked_arguments
from secure_bloom.encryption.access import Access
from secure_bloom.encryption.kms import Keyring
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.trust import named_by
from secure_bloom.errors import KmsUnavailableError, PolicyError
from secure_bloom.lakes.iceberg.catalog import absolute_place
from secure_bloom.lakes.managed_tables import table_to_write
from secure_bloom.lakes.misspelt_tables import check_tables
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.spark import add_task, file_task
from secure_bloom.spark.file_task import Shipped
from secure_bloom.spark.job_files import JobFiles, job_files
from secure_bloom.spark.job_reports import (
    FileJob,
    OnError,
    plain_report,
    prepare_report,
    reporting,
    warn_of,
)
from secure_bloom.spark.jobs_of_call import with_cancelled_jobs
from secure_bloom.spark.package_archive import ship, with_shared_storage
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.session import warn_of_other_policy
from secure_bloom.spark.table_job import (
    BesideJob,
    rewrite_table,
    table_choice,
    table_files,
    time_of_files,
)
from secure_bloom.spark.table_names import with_named_tables
from secure_bloom.spark.tasks import Row, evenly, executors_errors, run_tasks
from secure_bloom.storage import files_at_once, refuse_append
from secure_bloom.storage.paths import Paths, as_paths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: One row per file, row group and column; a file without any of them has one row.  ``notes`` are
#: in the first row of a file.
REPORT_SCHEMA = add_task.REPORT.ddl


@checked_arguments
@with_cancelled_jobs
@with_shared_storage
def add_bloom_filters(
    spark: SparkSession,
    paths: Paths,
    policy: KeyPolicy | str | os.PathLike[str] | None = None,
    *,
    columns: Columns | None = None,
    where: str | None = None,
    since: datetime | str | int | None = None,
    branch: str | None = None,
    in_place: bool = False,
    replace_filters: bool = False,
    dry_run: bool = False,
    allow_unprotected: bool = False,
    on_error: str = "raise",
    report: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> DataFrame:
    """Add Bloom filters to the Parquet files at ``paths``, in tasks of about equal bytes.

    There are about three tasks for each core: a large file has a task of its own, small files share
    one. The executors need this package, and the policy's KMS or keyring file, but not the driver's
    keys.

    The footers of a few files are checked before anything is written.  A file whose task ran twice
    may be reported by the second one: "unchanged".  Notes are given by ``warnings.warn``.

    Spark kills the slower of two speculative copies.  If ``in_place`` and ``replace_filters`` are
    both given and the copy is appending at that moment, a torn tail stays until the next
    ``in_place`` run: switch speculation off for jobs with both.

    A DataFrame that was made from these files before keeps their old sizes and must be read again:
    ``spark.read.parquet(...)``; for a table, ``REFRESH TABLE``.

    Args:
        spark: The session.
        paths: Files, folders or globs that driver and executors see alike, or names of tables in
            Spark's catalog (``"db.customers"``), the folder of one Delta table, or one table of an
            Iceberg catalog that the driver's pyiceberg knows
            (``"iceberg://CATALOG/NAMESPACE.TABLE"``).
        policy: A KeyPolicy, or the path of one.
        columns: As for :func:`secure_bloom.add_bloom_filters`; by default those of the policy.
        where: A condition on partition columns (``"day = '2026-11-20'"``) that chooses files. For
            an Iceberg table, a condition on any columns, which partitions and bounds decide.
        since: A datetime or ISO text, for a Delta table also a version, for an Iceberg table the id
            of a snapshot. Only files written then or later are changed. Times without a zone are
            UTC.
        branch: The branch of an Iceberg table to write; by default main.
        in_place: Append to each file instead of replacing it.
        replace_filters: Build existing filters again.
        dry_run: Write nothing, but report what a run would do.
        allow_unprotected: Accept files that are protected less than the policy says.
        on_error: ``"raise"``, or ``"report"`` to return the report if files failed.
        report: A new folder in which the report is kept as Parquet.
        progress: Called with the number of files done and the number of all files.
        storage_options: Endpoint and region of S3, as Polars, deltalake and pandas take them.
            Credentials are refused: driver and executors have their own.

    Returns:
        A DataFrame with one row per file, row group and column (:data:`REPORT_SCHEMA`).  It holds
            results, and using it runs nothing again.  A file that failed has a row with its
            ``error`` and is unchanged.

    Raises:
        FilesFailedError: Files failed, after all were tried. Its ``report`` is the DataFrame.
        PolicyError: The request cannot be met.  No file was written.
        KmsUnavailableError: No executor reached the policy's KMS. No file was written.
        SparkUnavailableError: The executors' Python lacks this package, or has another version.
    """
    wanted = reporting(on_error, report, progress)
    needs_kms = wanted.on_error is OnError.RAISE
    every = as_paths(paths)
    named = with_named_tables(spark, policy, every)
    request = filter_request(columns, named, replace_filters=replace_filters).for_paths(every)
    access = Access(policy=request.guard.policy, allow_unprotected=allow_unprotected)
    access.checked_resolver()
    warn_of_other_policy(spark, access.policy)
    table = table_to_write([*map(absolute_place, every)])
    if table is not None:
        choice = table_choice(where, since, branch, in_place=in_place)
        run, request = open_table_run(*table, request, choice)
        # Only changes: a file that has the wanted filters stays in the log as it is.
        open_work = functools.partial(
            Rewriter.opened, request, access, WriteMode(dry_run=dry_run, only_changes=True)
        )
        shared = ship(Shipped(open_work=open_work, grant=run.grant))
        live = table_files(spark, run, {path: path for path in run.paths})
        check_request(live, request, access, shared, needs_kms=needs_kms)
        job = BesideJob(
            schema=add_task.REPORT,
            rewrite=functools.partial(file_task.process, shared=shared, failed=Rewriter.failed),
            rows=functools.partial(add_task.rows, dry_run=dry_run),
            after_loss=dict.fromkeys(add_task.FILTER_FIELDS),
        )
        return rewrite_table(spark, run, job, wanted, dry_run=dry_run)
    if branch is not None:
        raise PolicyError("branch is for Iceberg tables", path=every[0])
    mode = WriteMode(in_place=in_place, dry_run=dry_run)
    shared = ship(Shipped(open_work=functools.partial(Rewriter.opened, request, access, mode)))
    with job_files(spark, every, where=where, since=time_of_files(since)) as files:
        if in_place:
            refuse_append(files.roots)
        prepare_report(files, add_task.REPORT)
        check_request(files, request, access, shared, needs_kms=needs_kms)
        plain = FileJob(
            schema=add_task.REPORT,
            work=functools.partial(
                file_task.process_path,
                functools.partial(file_task.process, shared=shared, failed=Rewriter.failed),
            ),
            rows=functools.partial(add_task.rows, dry_run=dry_run),
            writes_into=None if dry_run else files.first_folder,
            what=None if dry_run else "got filters",
        )
        return plain_report(files, plain, wanted)


#: Files whose footers are read first.
_FEW = 32
_SURVEYS = RowSchema({"survey": "binary"})
_WITHOUT_ZONE = (
    "a timestamp without a zone (TIMESTAMP_NTZ): Spark's own reader uses no filter of it; "
    'format("secure_bloom") and other readers do'
)

SurveyFile = Callable[[str], Survey]


def check_request(
    files: JobFiles,
    request: FilterRequest,
    access: Access,
    shared: bytes,
    *,
    needs_kms: bool = False,
) -> None:
    """Raise the errors of :func:`check_surveys` for a few files, or for all if necessary.

    ``shared`` is the work of the request as tasks get it.  With ``needs_kms`` also raises
    KmsUnavailableError if no executor reached the KMS for any of the few files: every file would
    fail like these, each after its retries.
    """
    few = files.some(_FEW)
    check_tables(request.guard.policy, files.roots, few)
    survey = partial(add_task.survey, shared=shared)
    surveys = _by_driver(few, request, access)
    if any(found.failure is not None for found in surveys) or not surveys:
        # Executors may have a key or a disk that the driver lacks.
        surveys = run_tasks(files.spark, few, survey, tasks=evenly([0] * len(few), 2))
    if needs_kms:
        _require_kms(surveys)
    if len(few) < files.count and _missing_everywhere(surveys):
        surveys = list(_of_all(files, survey))
    with named_by(request.source):
        check_surveys(surveys)
    for name in dict.fromkeys(name for survey in surveys for name in survey.without_zone):
        warn_of([f"readers: column {name} is {_WITHOUT_ZONE}"])


def _require_kms(surveys: Sequence[Survey]) -> None:
    failures = [survey.failure for survey in surveys]
    first = failures[0] if failures else None
    if isinstance(first, KmsUnavailableError) and all(
        isinstance(failure, KmsUnavailableError) for failure in failures
    ):
        raise KmsUnavailableError(
            f"executors do not reach the KMS of the policy, and no file was changed: "
            f"{first.message}",
            hint="executors ask the KMS themselves: they need its address as the policy names it, "
            f"and a login{'' if first.hint is None else f'; {first.hint}'}",
        ) from None


def _by_driver(few: Sequence[str], request: FilterRequest, access: Access) -> list[Survey]:
    """Return the surveys that the driver makes, or none if they need a KMS.

    Only the executors may be able to reach the KMS.
    """
    if not isinstance(access.key_source(), Keyring | None):
        return []
    survey = partial(survey_file, request=request, resolver=access.resolver())
    return list(in_order(survey, few, files_at_once(few)))


def _of_all(files: JobFiles, survey: SurveyFile) -> Iterator[Survey]:
    """Yield the surveys of all files. The surveys of a task are combined."""
    with executors_errors():
        rows = files.in_tasks(partial(_joined_surveys, survey), _SURVEYS).collect()
    # Safe to unpickle: our own tasks have just written this.
    yield from (pickle.loads(row.survey) for row in rows)  # noqa: S301


def _joined_surveys(survey: SurveyFile, rows: Sequence[Row]) -> Iterator[Row]:
    joined = None
    for (path,) in rows:
        found = survey(path)
        if found.refusal is not None:
            joined = found
            break
        if found.failure is None:
            joined = found if joined is None else _joined(joined, found)
    if joined is not None:
        yield (pickle.dumps(joined),)


def _joined(one: Survey, other: Survey) -> Survey:
    missing = tuple(name for name in one.missing if name in other.missing)
    return replace(one, missing=missing, columns=tuple(dict.fromkeys(one.columns + other.columns)))


def _missing_everywhere(surveys: Iterable[Survey]) -> bool:
    tables = readable_by_table(surveys)
    return not tables or any(map(missing_in_all, tables))
