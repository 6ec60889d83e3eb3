"""The step after a write, on a table with a log: tasks write files, and the driver commits."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from secure_bloom.adding.report import file_notes, skipped_file
from secure_bloom.delta.selection import TableSelection
from secure_bloom.errors import PolicyError
from secure_bloom.runs.target import GONE, TableCommit, TableTarget
from secure_bloom.spark.compat import frame_of
from secure_bloom.spark.file_selection import since_nanos
from secure_bloom.spark.job_files import JobFiles
from secure_bloom.spark.job_reports import (
    FileJob,
    Reported,
    Reporting,
    run_file_job,
)
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.tasks import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NANOS_PER_MILLI = 1_000_000


R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideJob(Generic[R]):
    """The work of tasks: write a new file beside an old one, and report it in rows.

    ``rewrite`` takes the paths of the old and the new file.  ``notes`` say what old versions of the
    table still show.
    """

    schema: RowSchema
    rewrite: Callable[[str, str], R]
    rows: Callable[[R], Iterable[Row]]
    notes: Callable[[Sequence[TableCommit]], Iterable[str]] = lambda _: ()


def table_selection(where: str | None, since: datetime | str | int | None) -> TableSelection:
    """Return the selection of a table's files.

    ``since`` is a version, or the time at which files were written.
    """
    if since is None or isinstance(since, int):
        return TableSelection(where=where, since=since)
    return TableSelection(where=where, written=-(-since_nanos(since) // _NANOS_PER_MILLI))


def time_of_files(since: datetime | str | int | None) -> datetime | str | None:
    """Return ``since`` as a time. Raises PolicyError for a version, which only a log has."""
    if isinstance(since, int):
        raise PolicyError(
            "since is a version, and only the folder of a Delta table, given alone, has those",
            hint="write a time as 2026-11-20T13:00:00Z, or give a datetime",
        )
    return since


def rewrite_table(
    spark: SparkSession, run: TableTarget, job: BesideJob[Any], wanted: Reporting, *, dry_run: bool
) -> DataFrame:
    """Do the job on the files of a run, and commit the results. Return the report of the files."""
    done: list[Reported] = []
    with run.publishing(dry_run=dry_run) as publication:
        for tasks in publication.batches():
            pairs = {task.path: json.dumps([task.path, task.target]) for task in tasks}
            file_job = FileJob(
                schema=job.schema, work=functools.partial(_rewrite, job.rewrite), rows=job.rows
            )
            reported = run_file_job(table_files(spark, run, pairs), file_job, wanted)
            done.append(reported)
            publication.publish(_sizes(reported.report))
    gone = (f"{path}: {GONE}" for path in sorted(publication.gone))
    skipped = tuple(skipped_file(path, reason) for path, reason in run.skipped())
    for note in (*gone, *file_notes(skipped), *job.notes(publication.commits)):
        warnings.warn(note, stacklevel=4)
    rest = frame_of(spark, job.schema, [row for it in skipped for row in job.rows(it)])
    if not done:
        return rest
    # Only now: the new files are committed, whatever failed beside them.
    found = done[0].wanted_by(wanted)
    return found.unionByName(rest) if skipped else found


def table_files(spark: SparkSession, run: TableTarget, texts: Mapping[str, str]) -> JobFiles:
    """Return files of a run for a job: a text for each by its path, with the size in the log."""
    known = tuple((texts[path], size) for path, size in run.sizes.items() if path in texts)
    size = sum(size for _, size in known)
    return JobFiles(spark=spark, roots=(run.root,), count=len(known), size=size, known=known)


def _rewrite(rewrite: Callable[[str, str], R], pair: str) -> R:
    path, target = json.loads(pair)
    return rewrite(path, target)


def _sizes(report: DataFrame) -> dict[str, int | None]:
    """Return the results of files by the old path: the size of the new file, None for a failure."""
    written = report.where("status != 'unchanged'").select("path", "status", "bytes_after")
    return {
        row.path: None if row.status == "failed" else row.bytes_after
        for row in written.distinct().collect()
    }
