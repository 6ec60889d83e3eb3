"""Run one job over files, keep its report as a DataFrame, and sum it up on the driver.

The driver holds the report of few files.  The report of many files stays on the executors, or is
written to a Parquet path. Then the driver only sees a few numbers, the first error and the first
notes.
"""

from __future__ import annotations

import enum
import functools
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from secure_bloom.adding.report import file_notes
from secure_bloom.calling.arguments import Progress
from secure_bloom.errors import FilesFailedError, PolicyError
from secure_bloom.reports.text import counted
from secure_bloom.running.ordered_pool import AT_ONCE
from secure_bloom.runs.files import stale_summary_notes
from secure_bloom.spark.compat import frame_of
from secure_bloom.spark.job_files import JobFiles
from secure_bloom.spark.progress import task_progress
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.tasks import Row, TaskWork, executors_errors, result_rows, row_by_row
from secure_bloom.storage.listing import refuse_inside
from secure_bloom.storage.paths import absolute_path, as_path, is_object_uri

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Notes and errors that are shown one by one.
_TOLD = 10
#: A report names columns and keys and holds no value: it is written in clear in any session.
_IN_CLEAR = {"parquet.encryption.footer.key": "", "parquet.encryption.column.keys": ""}


#: Sessions that have made a report, or are about to.
_PREPARED: WeakSet[Any] = WeakSet()


class OnError(enum.StrEnum):
    """What a job does if files failed, after all files were tried."""

    RAISE = "raise"
    REPORT = "report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """How the caller wants the report of a job: see :func:`reporting`."""

    on_error: OnError
    path: str | None
    progress: Progress | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileJob:
    """Work on one file, and the rows of its report.

    The columns ``path``, ``status``, ``error`` and ``notes`` are in every ``schema``.  ``what``
    says what happened to files that were changed in place. It is None if files are unchanged.
    """

    schema: RowSchema
    work: Callable[[str], Any]
    rows: Callable[[Any], Iterable[Row]]
    what: str | None = None


def reporting(
    on_error: str, report: str | os.PathLike[str] | None, progress: Progress | None
) -> Reporting:
    """Return how the caller wants the report. Raises PolicyError before anything is done."""
    if on_error not in set(OnError):
        raise PolicyError(
            f"on_error is {on_error!r}",
            hint=f"it is one of {', '.join(repr(one.value) for one in OnError)}",
        )
    path = None if report is None else absolute_path(as_path(report))
    if path is not None and not is_object_uri(path) and Path(path).exists():
        raise PolicyError("the report is there already", hint="name a new folder", path=path)
    return Reporting(on_error=OnError(on_error), path=path, progress=progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """The report of a job, the number of its files, and how many of them failed or have notes."""

    report: DataFrame
    files: int
    failed: int
    noted: int

    def wanted_by(self, wanted: Reporting) -> DataFrame:
        """Return the report, or raise FilesFailedError if files failed."""
        if self.failed and wanted.on_error is OnError.RAISE:
            raise _failure(self.report, self.failed, self.files)
        return self.report


def run_file_job(files: JobFiles, job: FileJob, wanted: Reporting) -> Reported:
    """Do the job on every file, in tasks. Notes are given as warnings."""
    if wanted.path is not None:
        refuse_inside(wanted.path, files.roots)
    work = row_by_row(functools.partial(result_rows, job.rows, job.work), at_once=AT_ONCE)
    with (
        executors_errors(),
        task_progress(files.spark, wanted.progress, total=files.count, tasks=files.tasks),
    ):
        if files.are_few:
            reported = _collected(files, work, job.schema, wanted.path)
        else:
            rows = files.in_tasks(work, job.schema)
            reported = _kept(rows, job.schema, files.count, wanted.path)
    report = reported.report
    _warn_of((*_file_notes(report, reported.noted), *_summary_notes(report, files, job)))
    return reported


def prepare_report(files: JobFiles, schema: RowSchema) -> None:
    """Make an empty report in another thread, once in a session, while the first job starts.

    A session's first DataFrame takes one or two seconds, mostly for loading classes.
    """
    if files.are_few and files.spark not in _PREPARED:
        _PREPARED.add(files.spark)
        threading.Thread(target=_make_nothing, args=(files.spark, schema), daemon=True).start()


def _make_nothing(spark: SparkSession, schema: RowSchema) -> None:
    # Whatever is wrong shows when the report is made.
    with suppress(Exception):
        frame_of(spark, schema, [])


def _collected(files: JobFiles, work: TaskWork, schema: RowSchema, path: str | None) -> Reported:
    """Return the rows of a small job, which the driver holds, so that no query keeps them."""
    rows = files.collected(work, schema)
    report = frame_of(files.spark, schema, rows)
    if path is not None:
        report = _stored(report, schema, path)
    status, notes = (list(schema.types).index(name) for name in ("status", "notes"))
    return Reported(
        report=report,
        files=files.count,
        failed=sum(row[status] == "failed" for row in rows),
        noted=sum(bool(row[notes]) for row in rows),
    )


def _stored(rows: DataFrame, schema: RowSchema, path: str) -> DataFrame:
    rows.write.options(**_IN_CLEAR).parquet(path)
    return rows.sparkSession.read.schema(schema.ddl).parquet(path)


def _kept(rows: DataFrame, schema: RowSchema, files: int, path: str | None) -> Reported:
    """Return the rows of a large job, computed once, and count them on the way."""
    from pyspark.sql import Observation

    counts = Observation()
    counted = rows.observe(counts, *_counts())
    # No cache: if an executor is lost, Spark would make its part of it by running the job again.
    report = counted.localCheckpoint() if path is None else _stored(counted, schema, path)
    # A client of Spark Connect does not hear what a checkpoint has counted.
    numbers = counts.get or report.agg(*_counts()).collect()[0].asDict()
    return Reported(report=report, files=files, **numbers)


def _counts() -> tuple[Column, ...]:
    """Return two columns: the number of failed files, and the number of files with notes.

    Only one row of a file has its error and its notes, so rows are counted.
    """
    from pyspark.sql import functions as f

    failed, noted = f.col("status") == "failed", f.size("notes") > 0
    return f.count_if(failed).alias("failed"), f.count_if(noted).alias("noted")


def _warn_of(notes: Iterable[str]) -> None:
    """Warn of leftovers of the run that need attention."""
    for note in notes:
        warnings.warn(note, stacklevel=5)


def _file_notes(report: DataFrame, count: int) -> Iterator[str]:
    if not count:
        return
    noted = report.where("size(notes) > 0").select("path", "notes")
    yield from file_notes(noted.limit(_TOLD).collect())
    if count > _TOLD:
        yield f"{counted(count - _TOLD, 'more file')} with notes: the report has them in `notes`"


def _summary_notes(report: DataFrame, files: JobFiles, job: FileJob) -> Iterator[str]:
    if job.what is None:
        return
    from pyspark.sql import functions as f

    changed = report.where(~f.col("status").isin("unchanged", "failed")).select("path").distinct()
    for summary in files.summaries[:_TOLD]:
        paths = (row.path for row in changed.toLocalIterator())
        yield from stale_summary_notes(summary, paths, what=job.what)


def _failure(report: DataFrame, failed: int, count: int) -> FilesFailedError:
    first = report.where("status = 'failed'").select("error").first()
    return FilesFailedError(
        f"{failed:,} of {counted(count, 'file')} failed, and the others are done; the first: "
        f"{'' if first is None else first.error}",
        hint="the error's `report` is the DataFrame with a row for each; on_error='report' returns "
        "it instead",
        report=report,
    )
