"""The step after the write on a Delta table: tasks write new files, and the driver commits them."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from secure_bloom.adding.report import FileAddReport
from secure_bloom.adding.request import FilterRequest
from secure_bloom.adding.run import FileTask
from secure_bloom.delta.add_run import AddRun, open_run
from secure_bloom.delta.columns import ColumnNames
from secure_bloom.errors import PolicyError
from secure_bloom.spark.file_reports import (
    FileJob,
    OnError,
    Reporting,
    require_no_failure,
    run_file_job,
)
from secure_bloom.spark.file_selection import since_nanos
from secure_bloom.spark.job_files import JobFiles
from secure_bloom.spark.request_check import SurveyFile, check_request
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.tasks import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NANOS_PER_MILLI = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideJob:
    """What tasks do: look at a file, write a new one beside it, and tell of it in rows.

    ``rewrite`` takes the path of the old file and that of the new one.
    """

    schema: RowSchema
    survey: SurveyFile
    rewrite: Callable[[str, str], FileAddReport]
    rows: Callable[[FileAddReport], Iterable[Row]]


def open_delta_run(
    folder: str, request: FilterRequest, *, where: str | None, since: datetime | str | int | None
) -> AddRun:
    """The run on the table in a folder; ``since`` is a version, or the time of files' writing."""
    if since is None or isinstance(since, int):
        return open_run(folder, request, where=where, since=since)
    written = -(-since_nanos(since) // _NANOS_PER_MILLI)
    return open_run(folder, request, where=where, since=None, written=written)


def time_of_files(since: datetime | str | int | None) -> datetime | str | None:
    """The time of files' writing; PolicyError for a version, where there is no log."""
    if isinstance(since, int):
        raise PolicyError(
            "since is a version, and only the folder of a Delta table, given alone, has those",
            hint="write a time as 2026-11-20T13:00:00Z, or give a datetime",
        )
    return since


def add_to_delta(
    spark: SparkSession, run: AddRun, job: BesideJob, wanted: Reporting, *, dry_run: bool
) -> DataFrame:
    """Do the job on the files of a run, and commit what came of it; the report of the files."""
    check_request(_job_files(spark, run, run.paths), job.survey)
    reports: list[DataFrame] = []

    def work(tasks: Sequence[FileTask]) -> Mapping[str, int]:
        pairs = [json.dumps([task.path, task.target]) for task in tasks]
        file_job = FileJob(
            schema=job.schema,
            work=functools.partial(_rewrite, job.rewrite),
            rows=functools.partial(_rows, job.rows, run.names),
        )
        # What was done is committed, whatever failed beside it.
        told = replace(wanted, on_error=OnError.REPORT)
        report = run_file_job(_job_files(spark, run, pairs), file_job, told)
        reports.append(report)
        return _sizes(report)

    change = run.rewrite(work, dry_run=dry_run)
    for path in sorted(change.gone):
        warnings.warn(f"{path}: another writer took it out of the table meanwhile", stacklevel=4)
    if not reports:
        return spark.createDataFrame(job.schema.table([]))
    require_no_failure(reports[0], len(run.files), wanted)
    return reports[0]


def _job_files(spark: SparkSession, run: AddRun, texts: Sequence[str]) -> JobFiles:
    roots = (run.table.folder,)
    return JobFiles(spark=spark, roots=roots, count=len(texts), summaries=(), known=tuple(texts))


def _rewrite(rewrite: Callable[[str, str], FileAddReport], pair: str) -> FileAddReport:
    path, target = json.loads(pair)
    return rewrite(path, target)


def _rows(
    rows: Callable[[FileAddReport], Iterable[Row]], names: ColumnNames, report: FileAddReport
) -> Iterable[Row]:
    return rows(names.in_report(report))


def _sizes(report: DataFrame) -> dict[str, int]:
    """The sizes of the new files, by the paths of the old ones: what the commit needs of them."""
    added = report.where("status = 'added'").select("path", "bytes_after").distinct()
    return {row.path: row.bytes_after for row in added.collect()}
