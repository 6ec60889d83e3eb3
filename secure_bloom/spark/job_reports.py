"""Run one job over files, keep its report as a DataFrame, and sum it up on the driver.

The driver holds the report of few files.  The report of many files stays on the executors, or is
written to a Parquet path. Then the driver only sees a few numbers, the first error and the first
notes.
"""

from __future__ import annotations

import enum
import functools
import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from secure_bloom.adding.report import file_notes
from secure_bloom.calling.arguments import Progress
from secure_bloom.errors import FilesFailedError, PolicyError, ReportLostError
from secure_bloom.lakes.plain_files import stale_summary_notes
from secure_bloom.reports.text import counted
from secure_bloom.running.ordered_pool import AT_ONCE
from secure_bloom.spark.compat import frame_of
from secure_bloom.spark.java_errors import reason_of
from secure_bloom.spark.job_files import JobFiles
from secure_bloom.spark.jobs_of_call import context_of, task_progress
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.tasks import Row, TaskWork, executors_errors, result_rows, row_by_row
from secure_bloom.storage.listing import refuse_inside
from secure_bloom.storage.offered_permit import offered_permit
from secure_bloom.storage.paths import absolute_path, as_path, is_object_uri, join
from secure_bloom.storage.write_permit import Permit, written_under

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Counts of files and bytes alone: no path, no name of a column or a key.
_LOG = logging.getLogger("secure_bloom.spark")
#: Notes and errors that are shown one by one.
SHOWN = 10
#: A report names columns and keys and holds no value: it is written in clear in any session.
_IN_CLEAR = {"parquet.encryption.footer.key": "", "parquet.encryption.column.keys": ""}
#: The folder in a report for rows of files that are not committed yet.  Readers of Parquet pass
#: over names that begin with this character.
_UNCOMMITTED = "_uncommitted"

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

    The columns ``path``, ``status``, ``error``, ``hint`` and ``notes`` are in every ``schema``.
    ``what`` says what happened to files that were changed in place. It is None if files are
    unchanged.
    ``writes_into`` is a folder that the work writes into, or None if it writes nothing.
    """

    schema: RowSchema
    work: Callable[[str], Any]
    rows: Callable[[Any], Iterable[Row]]
    writes_into: str | None
    what: str | None = None


def reporting(
    on_error: str, report: str | os.PathLike[str] | None, progress: Progress | None
) -> Reporting:
    """Return how the caller wants the report.

    Raises PolicyError for an unknown ``on_error``, and for a report that is there already.
    """
    if on_error not in set(OnError):
        raise PolicyError(
            f"on_error is {on_error!r}",
            hint=f"it is one of {', '.join(repr(one.value) for one in OnError)}",
        )
    path = None if report is None else absolute_path(as_path(report))
    if path is not None and not is_object_uri(path) and Path(path).exists():
        raise _there_already(path)
    return Reporting(on_error=OnError(on_error), path=path, progress=progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """The report of a job, the number of its files, and how many of them failed or have notes.

    ``lost`` is the reason why the report could not be written to the folder that the caller wants.
    """

    report: DataFrame
    files: int
    failed: int
    noted: int
    lost: str | None = None

    def notes(self) -> Iterator[str]:
        """Yield the first notes of files, and how many more files have some."""
        return _file_notes(self.report, self.noted)

    def wanted_by(self, wanted: Reporting) -> DataFrame:
        """Return the report.

        Raises FilesFailedError if files failed, and ReportLostError if the report is not where the
        caller wants it.
        """
        if self.failed and wanted.on_error is OnError.RAISE:
            raise _failure(self, wanted)
        if self.lost is not None:
            raise ReportLostError(
                f"{_outcome(self)}, but the report could not be written: {self.lost}",
                hint="the error's `report` is the DataFrame with a row for each file",
                path=wanted.path,
                report=self.report,
            )
        return self.report


def check_report(spark: SparkSession, wanted: Reporting, roots: Iterable[str]) -> None:
    """Raise PolicyError for a report that Spark cannot write, before any file is written.

    With Spark Connect only a report inside the table is refused.
    """
    if wanted.path is None:
        return
    refuse_inside(wanted.path, roots)
    if context_of(spark) is None:
        return
    try:
        is_there = _file_system(spark, wanted.path, lambda files, path: files.exists(path))
    except _spark_errors() as error:
        raise PolicyError(
            f"Spark cannot write the report there: {reason_of(error)}",
            hint="name a folder that spark.read.parquet could read",
            path=wanted.path,
        ) from None
    if is_there:
        raise _there_already(wanted.path)


def _file_system(spark: SparkSession, path: str, ask: Callable[[Any, Any], Any]) -> Any:
    """Return ``ask(file_system, path)`` for the Hadoop file system that Spark uses there."""
    session: Any = spark
    # By its whole name: for each part of it, Py4J would look through all jars.
    place = getattr(session._jvm, "org.apache.hadoop.fs.Path")(path)
    return ask(place.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()), place)


def _there_already(path: str) -> PolicyError:
    return PolicyError("the report is there already", hint="name a new folder", path=path)


def run_file_job(files: JobFiles, job: FileJob, wanted: Reporting) -> Reported:
    """Do the job on every file, in tasks.

    No attempt at a task writes a file after this has returned or has raised an error.
    """
    work = row_by_row(functools.partial(result_rows, job.rows, job.work), at_once=AT_ONCE)
    started = time.perf_counter()
    tasks = counted(files.tasks, "task")
    _LOG.info("begin: %s, %d bytes, about %s", counted(files.count, "file"), files.size, tasks)
    with (
        executors_errors(),
        task_progress(files.spark, wanted.progress, total=files.count, tasks=files.tasks),
        _permitted(work, job.writes_into) as permitted,
    ):
        if files.are_few:
            reported = _collected(files, permitted, job.schema, wanted.path)
        else:
            rows = files.in_tasks(permitted, job.schema)
            reported = _kept(rows, job.schema, files.count, wanted.path)
    seconds = time.perf_counter() - started
    _LOG.info(
        "end: %d files, %d failed, %d with notes, %.1f seconds",
        *(reported.files, reported.failed, reported.noted, seconds),
    )
    return reported


def plain_report(files: JobFiles, job: FileJob, wanted: Reporting) -> DataFrame:
    """Do the job on files of no table. Return its report, and give its notes as warnings."""
    check_report(files.spark, wanted, files.roots)
    reported = run_file_job(files, job, wanted)
    # Only a selection leaves a job without files: a path that leads to none is an error.
    chosen = () if files.count else ("no file was chosen: `where` and `since` leave out all",)
    warn_of((*chosen, *reported.notes(), *_summary_notes(reported.report, files, job)))
    return reported.wanted_by(wanted)


@contextmanager
def _permitted(work: TaskWork, folder: str | None) -> Iterator[TaskWork]:
    """Yield work that can write only until the block ends, even in tasks that still run."""
    if folder is None:
        yield work
        return
    with offered_permit(folder) as permit:
        yield functools.partial(_done_under, permit, work)


def _done_under(permit: Permit, work: TaskWork, rows: Sequence[Row]) -> Iterator[Row]:
    with written_under(permit):
        yield from work(rows)


def prepare_report(files: JobFiles, schema: RowSchema) -> None:
    """Make an empty report in another thread while the first job of a session starts.

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
    """Return the report of a small job, whose rows the driver holds."""
    rows = files.collected(work, schema)
    report = frame_of(files.spark, schema, rows)
    lost = None
    if path is not None:
        try:
            report = _stored(report, schema, path)
        except _spark_errors() as error:
            lost = reason_of(error)
    status, notes = (list(schema.types).index(name) for name in ("status", "notes"))
    return Reported(
        report=report,
        files=files.count,
        failed=sum(row[status] == "failed" for row in rows),
        noted=sum(bool(row[notes]) for row in rows),
        lost=lost,
    )


def _stored(rows: DataFrame, schema: RowSchema, path: str, mode: str = "error") -> DataFrame:
    rows.write.options(**_IN_CLEAR).mode(mode).parquet(path)
    return rows.sparkSession.read.schema(schema.ddl).parquet(path)


def _spark_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of a query that fails, also with Spark Connect."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return Py4JError, PySparkException


def _kept(rows: DataFrame, schema: RowSchema, files: int, path: str | None) -> Reported:
    """Return the report of a large job, whose rows are computed once and counted on the way."""
    if path is not None:
        try:
            return _counted(rows, lambda counted: _stored(counted, schema, path), files)
        except _spark_errors() as error:
            lost = reason_of(error)
        # Written as it is made, the report was lost before all files were done.  The work finds
        # the files that are done, and does the rest; if it is the work that fails, it does again.
        return replace(_counted(rows, _checkpointed, files), lost=lost)
    return _counted(rows, _checkpointed, files)


def _checkpointed(rows: DataFrame) -> DataFrame:
    # No cache: if an executor is lost, Spark would make its part of it by running the job again.
    return rows.localCheckpoint()


def _counted(rows: DataFrame, keep: Callable[[DataFrame], DataFrame], files: int) -> Reported:
    """Return the report that ``keep`` makes of the rows. The rows are counted as they pass."""
    from pyspark.sql import Observation

    counts = Observation()
    report = keep(rows.observe(counts, *_counts()))
    # A client of Spark Connect does not hear what a checkpoint has counted.
    numbers = counts.get or _counts_of(report)
    return Reported(report=report, files=files, **numbers)


def changed_report(reported: Reported, report: DataFrame) -> Reported:
    """Return the results of a job with another report, whose rows are counted again."""
    report = _checkpointed(report)
    counts = _counts_of(report)
    return replace(reported, report=report, failed=counts["failed"], noted=counts["noted"])


@contextmanager
def uncommitted_report(spark: SparkSession, wanted: Reporting) -> Iterator[Reporting]:
    """Yield a Reporting that keeps the report of a table's tasks until the files are committed.

    The rows of many files go into a folder inside the report that readers of the report skip.
    """
    if wanted.path is None:
        yield wanted
        return
    folder = join(wanted.path, _UNCOMMITTED)
    try:
        yield replace(wanted, path=folder)
    finally:
        # A client of Spark Connect has no such way to remove it.
        with suppress(Exception):
            _file_system(spark, folder, lambda files, path: files.delete(path, True))
        # After an error nothing else is there, and the same report can be asked for again.
        with suppress(Exception):
            _file_system(spark, wanted.path, lambda files, path: files.delete(path, False))


def stored_report(reported: Reported, schema: RowSchema, wanted: Reporting) -> Reported:
    """Store the final report of a run on a table, after its commit."""
    if wanted.path is None or reported.lost is not None:
        return reported
    try:
        report = _stored(reported.report, schema, wanted.path, mode="append")
    except _spark_errors() as error:
        return replace(reported, report=_checkpointed(reported.report), lost=reason_of(error))
    return replace(reported, report=report)


def _counts_of(report: DataFrame) -> dict[str, int]:
    found: dict[str, int] = report.agg(*_counts()).collect()[0].asDict()
    return found


def _counts() -> tuple[Column, ...]:
    """Return two columns: the number of failed files, and the number of files with notes.

    Only one row of a file has its error and its notes, so rows are counted.
    """
    from pyspark.sql import functions as f

    failed, noted = f.col("status") == "failed", f.size("notes") > 0
    return f.count_if(failed).alias("failed"), f.count_if(noted).alias("noted")


def warn_of(notes: Iterable[str]) -> None:
    """Give each note as a warning at the caller's line."""
    for note in notes:
        warnings.warn(note, stacklevel=6)


def _file_notes(report: DataFrame, count: int) -> Iterator[str]:
    if not count:
        return
    noted = report.where("size(notes) > 0").select("path", "notes")
    yield from file_notes(noted.limit(SHOWN).collect())
    if count > SHOWN:
        yield f"{counted(count - SHOWN, 'more file')} with notes: the report has them in `notes`"


def _summary_notes(report: DataFrame, files: JobFiles, job: FileJob) -> Iterator[str]:
    if job.what is None:
        return
    from pyspark.sql import functions as f

    changed = report.where(~f.col("status").isin("unchanged", "failed")).select("path").distinct()
    for summary in files.summaries[:SHOWN]:
        paths = (row.path for row in changed.toLocalIterator())
        yield from stale_summary_notes(summary, paths, what=job.what)


def _outcome(reported: Reported) -> str:
    count = counted(reported.files, "file")
    if not reported.failed:
        return f"the work on {count} is done"
    rest = "none is done" if reported.failed == reported.files else "the others are done"
    return f"{reported.failed:,} of {count} failed, and {rest}"


def _failure(reported: Reported, wanted: Reporting) -> FilesFailedError:
    first = reported.report.where("status = 'failed'").select("error", "hint").first()
    lost = (
        ""
        if reported.lost is None
        else f"; the report could not be written to {wanted.path}: {reported.lost}"
    )
    advice = "" if first is None or first.hint is None else f"{first.hint}; "
    return FilesFailedError(
        f"{_outcome(reported)}; the first: {'' if first is None else first.error}{lost}",
        hint=f"{advice}the error's `report` is the DataFrame with a row for each; "
        "on_error='report' returns it instead",
        report=reported.report,
    )
