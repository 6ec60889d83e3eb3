"""Re-encrypt files, or rotate their keys, on the executors.

A task that runs twice finds that the file needs no change.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from secure_bloom.api.rekeyed_tables import open_reencryption, open_rotation
from secure_bloom.calling.arguments import Progress, checked_arguments
from secure_bloom.encryption.access import GivenPolicy, loaded_policy
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.lakes.iceberg.catalog import absolute_place
from secure_bloom.lakes.managed_tables import refuse_output, table_to_write
from secure_bloom.lakes.misspelt_tables import check_tables
from secure_bloom.rekeying.file_work import RekeyWork, check_columns
from secure_bloom.rekeying.rekey_report import RekeyedFile, table_notes
from secure_bloom.rekeying.rekey_work import reencryption, rotation
from secure_bloom.runs.target import TableTarget
from secure_bloom.runs.work import OpenWork
from secure_bloom.spark import file_task
from secure_bloom.spark.file_task import Shipped
from secure_bloom.spark.job_files import JobFiles, job_files
from secure_bloom.spark.job_reports import FileJob, plain_report, reporting
from secure_bloom.spark.jobs_of_call import with_cancelled_jobs
from secure_bloom.spark.package_archive import ship, with_shared_storage
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.session import warn_of_other_policy
from secure_bloom.spark.table_job import BesideJob, rewrite_table, table_choice, time_of_files
from secure_bloom.spark.table_names import with_named_tables
from secure_bloom.spark.tasks import Row
from secure_bloom.storage.listing import output_paths, refuse_inside
from secure_bloom.storage.paths import Paths, absolute_path, as_path, as_paths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Files by which misspelt patterns of a policy are found.
_FEW = 32
_REPORT = RowSchema(
    {
        "path": "string",
        "status": "string",
        "column": "string",
        "key_before": "string",
        "key": "string",
        "footer_before": "string",
        "footer": "string",
        "bytes_before": "long",
        "bytes_after": "long",
        "seconds": "double",
        "error": "string",
        "hint": "string",
        "causes": "array<string>",
        "notes": "array<string>",
        "new_path": "string",
    }
)
#: One row per file and column; a file without columns, or one that failed, has one row.  ``notes``
#: are in the first row of a file.
REKEY_SCHEMA = _REPORT.ddl


@checked_arguments
@with_cancelled_jobs
@with_shared_storage
def reencrypt(
    spark: SparkSession,
    paths: Paths,
    policy: KeyPolicy | str | os.PathLike[str],
    *,
    old_policy: GivenPolicy = None,
    where: str | None = None,
    since: datetime | str | int | None = None,
    branch: str | None = None,
    output: str | os.PathLike[str] | None = None,
    new_data_keys: bool = False,
    verify: bool = False,
    on_error: str = "raise",
    report: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> DataFrame:
    """Bring files under ``policy`` on the executors. See :func:`secure_bloom.reencrypt`.

    Does not write files of a table with key material outside them.

    Args:
        spark: The session.
        paths: Files, folders or globs that driver and executors see alike, or names of tables in
            Spark's catalog (``"db.customers"``), or the folder of one Delta table, or one table of
            an Iceberg catalog (``"iceberg://CATALOG/NAMESPACE.TABLE"``).
        policy: A KeyPolicy, or the path of one.
        old_policy: The policy under which the files are now.
        where: A condition on partition columns (``"day = '2026-11-20'"``) that chooses files. For
            an Iceberg table, a condition on any columns, which partitions and bounds decide.
        since: A datetime or ISO text, for a Delta table also a version, for an Iceberg table the id
            of a snapshot. Only files written then or later are changed. Times without a zone are
            UTC.
        branch: The branch of an Iceberg table to write; by default main.
        output: Folder for the new files. The driver then holds all paths.
        new_data_keys: Also change files that are already as the policy says.
        verify: Read the first page of every column of a new file before it takes its place.
        on_error: ``"raise"``, or ``"report"`` to return the report if files failed.
        report: A new folder in which the report is kept as Parquet.
        progress: Called with the number of files done and the number of all files.
        storage_options: Endpoint and region of S3, as Polars, deltalake and pandas take them.
            Credentials are refused: driver and executors have their own.

    Returns:
        A DataFrame with one row per file and column (:data:`REKEY_SCHEMA`).  A file that failed has
            a row with its ``error`` and is unchanged.

    Raises:
        FilesFailedError: Files failed, after all were tried. Its ``report`` is the DataFrame.
        PolicyError: The request cannot be met.  No file was written.
        SparkUnavailableError: The executors' Python lacks this package.
    """
    wanted = reporting(on_error, report, progress)
    setting: dict[str, Any] = {
        "old_policy": loaded_policy(old_policy),
        "new_data_keys": new_data_keys,
        "verify": verify,
    }
    every = as_paths(paths)
    own = loaded_policy(with_named_tables(spark, policy, every), every)
    checked = reencryption(own, keys=None, **setting)
    warn_of_other_policy(spark, own)
    table = table_to_write([*map(absolute_place, every)])
    choice = table_choice(where, since, branch, output=output is not None)
    if table is not None:
        _refuse_outside_keys(checked.policy, table[1])
        run, loaded = open_reencryption(*table, own, choice)
        open_work = functools.partial(
            reencryption,
            loaded,
            keys=None,
            only_changes=True,
            names=run.opened_names,
            **setting,
        )
        beside = _beside_job(open_work, run)
        return rewrite_table(spark, run, beside, wanted, dry_run=False)
    if branch is not None:
        choice.refuse()
    open_work = functools.partial(reencryption, own, keys=None, **setting)
    with job_files(spark, every, where=where, since=time_of_files(since)) as files:
        check_tables(own, files.roots, files.some(_FEW))
        check_columns(files, checked)
        folder = None if output is None else absolute_path(as_path(output))
        if folder is not None:
            output_paths(files, files.roots, folder)
            refuse_inside(folder, files.roots)
            refuse_output(folder)
        return plain_report(files, _job(open_work, files, folder), wanted)


@checked_arguments
@with_cancelled_jobs
@with_shared_storage
def rotate_keys(
    spark: SparkSession,
    paths: Paths,
    policy: KeyPolicy | str | os.PathLike[str],
    *,
    moves: Mapping[str, str] | None = None,
    old_policy: GivenPolicy = None,
    verify: bool = False,
    where: str | None = None,
    since: datetime | str | int | None = None,
    branch: str | None = None,
    on_error: str = "raise",
    report: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> DataFrame:
    """Change the master keys of files on the executors. See :func:`secure_bloom.rotate_keys`.

    Args:
        spark: The session.
        paths: Files, folders or globs that driver and executors see alike, or names of tables in
            Spark's catalog (``"db.customers"``), or the folder of one Delta table, or one table of
            an Iceberg catalog (``"iceberg://CATALOG/NAMESPACE.TABLE"``).
        policy: A KeyPolicy, or the path of one.
        moves: Mapping of old master keys to new ones. By default every file gets the keys of
            ``policy``.
        old_policy: The policy under which the files are now. Not together with ``moves``.
        verify: Open the keys and the first pages of a new file before it takes its place.
        where: A condition on partition columns (``"day = '2026-11-20'"``) that chooses files. For
            an Iceberg table, a condition on any columns, which partitions and bounds decide.
        since: A datetime or ISO text, for a Delta table also a version, for an Iceberg table the id
            of a snapshot. Only files written then or later are changed. Times without a zone are
            UTC.
        branch: The branch of an Iceberg table to write; by default main.
        on_error: ``"raise"``, or ``"report"`` to return the report if files failed.
        report: A new folder in which the report is kept as Parquet.
        progress: Called with the number of files done and the number of all files.
        storage_options: Endpoint and region of S3, as Polars, deltalake and pandas take them.
            Credentials are refused: driver and executors have their own.

    Returns:
        A DataFrame with one row per file and column (:data:`REKEY_SCHEMA`).

    Raises:
        FilesFailedError: Files failed, after all were tried. Its ``report`` is the DataFrame.
        PolicyError: The request cannot be met.  No file was written.
        SparkUnavailableError: The executors' Python lacks this package.
    """
    wanted = reporting(on_error, report, progress)
    setting: dict[str, Any] = {
        "moves": dict(moves or {}),
        "old_policy": loaded_policy(old_policy),
        "verify": verify,
    }
    every = as_paths(paths)
    own = loaded_policy(with_named_tables(spark, policy, every), every)
    checked = rotation(own, keys=None, **setting)
    warn_of_other_policy(spark, own)
    table = table_to_write([*map(absolute_place, every)])
    choice = table_choice(where, since, branch)
    if table is not None:
        run, loaded = open_rotation(*table, own, moves or {}, choice)
        open_work = functools.partial(
            rotation, loaded, keys=None, names=run.opened_names, **setting
        )
        beside = _beside_job(open_work, run)
        return rewrite_table(spark, run, beside, wanted, dry_run=False)
    if branch is not None:
        choice.refuse()
    open_work = functools.partial(rotation, own, keys=None, **setting)
    with job_files(spark, every, where=where, since=time_of_files(since)) as files:
        if not moves:
            check_tables(own, files.roots, files.some(_FEW))
            check_columns(files, checked)
        return plain_report(files, _job(open_work, files, None), wanted)


def _refuse_outside_keys(policy: KeyPolicy | None, table: str) -> None:
    # Two attempts at one task would write one file of key material, each with its own keys.
    if policy is not None and not policy.encryption.internal_storage:
        raise UnsupportedFeatureError(
            "executors do not write key material outside the files of a table",
            hint="call secure_bloom.reencrypt, or keep key material in the files",
            path=table,
        )


def _beside_job(open_work: OpenWork[RekeyedFile], run: TableTarget) -> BesideJob[RekeyedFile]:
    shared = ship(Shipped(open_work=open_work, grant=run.grant))
    return BesideJob(
        schema=_REPORT,
        rewrite=functools.partial(file_task.process, shared=shared, failed=RekeyWork.failed),
        rows=_rows,
        after_loss={"key": "key_before", "footer": "footer_before"},
        notes=functools.partial(table_notes, table=run),
    )


def _job(open_work: OpenWork[RekeyedFile], files: JobFiles, output: str | None) -> FileJob:
    shared = ship(Shipped(open_work=open_work))
    work = functools.partial(file_task.process, shared=shared, failed=RekeyWork.failed)
    return FileJob(
        schema=_REPORT,
        work=functools.partial(file_task.process_path, work, roots=files.roots, output=output),
        rows=_rows,
        writes_into=files.first_folder if output is None else output,
        what="have other keys now" if output is None else None,
    )


def _rows(report: RekeyedFile) -> Iterator[Row]:
    file = asdict(report)
    for column in file.pop("columns") or [{}]:
        yield _REPORT.row({**file, **column})
        file["notes"] = ()
