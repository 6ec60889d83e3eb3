"""The step after a write, on a table with a log: tasks write files, and the driver commits."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from secure_bloom.adding.report import FileAddReport, file_notes, skipped_file
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.file_selection import since_nanos
from secure_bloom.lakes.writable_table import TableChoice
from secure_bloom.reports.text import counted
from secure_bloom.running.uninterrupted import uninterrupted
from secure_bloom.runs.target import GONE, NOTHING_WRITTEN, TableCommit, TableTarget
from secure_bloom.runs.work import FileTask
from secure_bloom.spark.compat import frame_of
from secure_bloom.spark.job_files import JobFiles
from secure_bloom.spark.job_reports import (
    SHOWN,
    FileJob,
    Reported,
    Reporting,
    changed_report,
    check_report,
    run_file_job,
    stored_report,
    uncommitted_report,
    warn_of,
)
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.tasks import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NANOS_PER_MILLI = 1_000_000
_PATHS = RowSchema({"path": "string"})
_ROW = "row of its file"


R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideJob(Generic[R]):
    """The work of tasks: write a new file beside an old one, and report it in rows.

    ``after_loss`` changes the rows of a file that another writer removed from the table meanwhile.
    It maps a column of the report to the column whose value it gets, or to None for null. ``notes``
    return sentences on what old versions of the table still show.
    """

    schema: RowSchema
    rewrite: Callable[[FileTask], R]
    rows: Callable[[R], Iterable[Row]]
    after_loss: Mapping[str, str | None]
    notes: Callable[[Sequence[TableCommit]], Iterable[str]] = lambda _: ()


def table_choice(
    where: str | None,
    since: datetime | str | int | None,
    branch: str | None,
    *,
    in_place: bool = False,
    output: bool = False,
) -> TableChoice:
    """Return the choice of a table's files.

    ``since`` is a version, or the time at which files were written.
    """
    version, written = (since, None) if isinstance(since, int) else (None, since)
    return TableChoice(
        where=where,
        since=version,
        written=None if written is None else -(-since_nanos(written) // _NANOS_PER_MILLI),
        branch=branch,
        in_place=in_place,
        output=output,
    )


def time_of_files(since: datetime | str | int | None) -> datetime | str | None:
    """Return ``since`` as a time. Raises PolicyError for a version, which only a log has."""
    if isinstance(since, int):
        raise PolicyError(
            "since is a version, and only the folder of a Delta table, given alone, has versions",
            hint="write a time as 2026-11-20T13:00:00Z, or give a datetime",
        )
    return since


def rewrite_table(
    spark: SparkSession, run: TableTarget, job: BesideJob[Any], wanted: Reporting, *, dry_run: bool
) -> DataFrame:
    """Do the job on the files of a run, and commit the results. Return the report of the files."""
    check_report(spark, wanted, [run.root])
    reported = Reported(report=frame_of(spark, job.schema, []), files=0, failed=0, noted=0)
    written: list[FileAddReport] = []
    with uncommitted_report(spark, wanted) as uncommitted:
        with run.publishing(dry_run=dry_run) as publication:
            for tasks in publication.batches():
                pairs = {task.path: json.dumps([task.path, task.target]) for task in tasks}
                file_job = FileJob(
                    schema=job.schema,
                    work=functools.partial(_rewrite, job.rewrite),
                    rows=job.rows,
                    writes_into=None if dry_run else run.root,
                )
                files = table_files(spark, run, pairs)
                # The driver holds the report of few files.
                kept = replace(wanted, path=None) if files.are_few else uncommitted
                reported = run_file_job(files, file_job, kept)
                written = _written(reported.report)
                uninterrupted(functools.partial(publication.publish, written))
        gone = run.gone(publication, written)
        if gone:
            reported = changed_report(reported, _after_loss(spark, reported.report, job, gone))
        skipped = tuple(skipped_file(path, reason) for path, reason in run.skipped())
        lost = [NOTHING_WRITTEN] if gone and not publication.commits else []
        notes = [*lost, *reported.notes(), *_first_notes(skipped), *publication.notes]
        if skipped:
            rest = frame_of(spark, job.schema, [row for it in skipped for row in job.rows(it)])
            reported = replace(reported, report=reported.report.unionByName(rest))
        # Only now: a report of files that are not committed would not be true.
        reported = stored_report(reported, job.schema, wanted)
    warn_of((*notes, *job.notes(publication.commits)))
    return reported.wanted_by(wanted)


def _first_notes(skipped: Sequence[FileAddReport]) -> Iterator[str]:
    yield from file_notes(skipped[:SHOWN])
    if len(skipped) > SHOWN:
        yield f"{counted(len(skipped) - SHOWN, 'more file')} skipped: the report says why"


def _after_loss(
    spark: SparkSession, report: DataFrame, job: BesideJob[Any], gone: Collection[str]
) -> DataFrame:
    """Return the report with ``unchanged`` for files that other writers removed from the table."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    paths = frame_of(spark, _PATHS, [(path,) for path in sorted(gone)])
    # Only the first row of a file has its notes.
    row = f.row_number().over(Window.partitionBy("path").orderBy(f.size("notes").desc()))
    lost = report.join(paths, "path", "left_semi").withColumn(_ROW, row)
    if None in job.after_loss.values():
        # Without what its rows are about, a file has one row.
        lost = lost.where(f.col(_ROW) == 1)
    notes = f.concat("notes", f.array(f.lit(GONE)))
    changes = {
        "status": f.lit("unchanged"),
        "bytes_after": f.col("bytes_before"),
        "causes": f.array().cast("array<string>"),
        "notes": f.when(f.col(_ROW) == 1, notes).otherwise(f.col("notes")),
        **{
            name: f.lit(None).cast(job.schema.types[name]) if old is None else f.col(old)
            for name, old in {
                **job.after_loss,
                "error": None,
                "hint": None,
                "new_path": None,
            }.items()
        },
    }
    columns = [changes.get(name, f.col(name)).alias(name) for name in job.schema.types]
    return report.join(paths, "path", "left_anti").unionByName(lost.select(*columns))


def table_files(spark: SparkSession, run: TableTarget, texts: Mapping[str, str]) -> JobFiles:
    """Return the files of a run as rows of a job: path, size in the log, and the file's text.

    ``texts`` maps the path of each file to a text that its task gets.
    """
    known = tuple((texts[path], size) for path, size in run.sizes.items() if path in texts)
    size = sum(size for _, size in known)
    return JobFiles(spark=spark, roots=(run.root,), count=len(known), size=size, known=known)


def _rewrite(rewrite: Callable[[FileTask], R], pair: str) -> R:
    return rewrite(FileTask(*json.loads(pair)))


def _written(report: DataFrame) -> list[FileAddReport]:
    """Return a report of each file that failed or was written, with what a publication needs."""
    rows = report.where("status != 'unchanged'").select("path", "status", "bytes_after")
    return [
        FileAddReport(
            path=row.path,
            status="failed" if row.status == "failed" else "added",
            bytes_after=row.bytes_after,
        )
        for row in rows.distinct().collect()
    ]
