"""Add filters to a table's files on the executors: the step after a write.

A task that runs again, as a retry or a speculative copy, finds that its filters exist
already.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from secure_bloom.adding.request import Columns, filter_request
from secure_bloom.adding.rewrite import Rewriter, WriteMode
from secure_bloom.api.add import open_table_run
from secure_bloom.calling.arguments import Progress, checked_arguments
from secure_bloom.encryption.access import Access
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.iceberg.catalog import absolute_place
from secure_bloom.lakes.managed_tables import table_to_write
from secure_bloom.spark import add_task, file_task
from secure_bloom.spark.file_task import Shipped
from secure_bloom.spark.job_files import job_files
from secure_bloom.spark.job_reports import (
    FileJob,
    OnError,
    plain_report,
    prepare_report,
    reporting,
)
from secure_bloom.spark.jobs_of_call import with_cancelled_jobs
from secure_bloom.spark.package_archive import ship
from secure_bloom.spark.request_check import check_request
from secure_bloom.spark.session import warn_of_other_policy
from secure_bloom.spark.shared_storage import with_shared_storage
from secure_bloom.spark.table_job import (
    BesideJob,
    rewrite_table,
    table_choice,
    table_files,
    time_of_files,
)
from secure_bloom.spark.table_names import with_named_tables
from secure_bloom.storage import refuse_append
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
