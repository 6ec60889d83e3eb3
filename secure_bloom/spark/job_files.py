"""The files of a job as a DataFrame: listed by tasks, never all of them on the driver.

The driver lists a table from above until there are folders to share out (``split_listing``).  A
small table is listed then, and needs no job.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.spark.file_selection import FileSelection, file_selection
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.table_names import table_location
from secure_bloom.spark.tasks import (
    Row,
    Work,
    executors_errors,
    given_in_tasks,
    in_tasks,
    rows_frame,
    spread,
    task_count,
)
from secure_bloom.storage import summary_files
from secure_bloom.storage.listing import no_such_files
from secure_bloom.storage.paths import Paths, absolute_path, as_paths
from secure_bloom.storage.split_listing import Branch, Entry, list_branch, list_upper_part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_PATHS = RowSchema({"path": "string"})
_BRANCHES = RowSchema({"root": "int", "folder": "string", "deep": "boolean"})
#: A file, a summary file, or the error that ended the listing of a branch.
_ENTRIES = RowSchema(
    {
        "root": "int",
        "path": "string",
        "key": "string",
        "is_summary": "boolean",
        "error": "binary",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFiles:
    """``count`` files of a table: known to the driver if they are few, else rows of ``frame``.

    ``summaries`` are the summary files beside and above them; ``roots`` what led to them.
    """

    spark: SparkSession
    roots: tuple[str, ...]
    count: int
    summaries: tuple[str, ...]
    known: tuple[str, ...] = ()
    frame: DataFrame | None = None

    def rows(self, tasks: int) -> DataFrame:
        """Return the paths as rows of that many tasks."""
        if self.frame is None:
            return rows_frame(self.spark, self._known_rows, _PATHS, tasks=tasks)
        return spread(self.frame, "path", tasks=tasks)

    def each(self, work: Work, schema: RowSchema, *, tasks: int, at_once: int) -> DataFrame:
        """Return the rows that ``work`` makes of each path, in that many tasks.

        See :func:`in_tasks`.
        """
        if self.frame is not None:
            return in_tasks(self.rows(tasks), work, schema, at_once=at_once)
        return given_in_tasks(
            self.spark, self._known_rows, _PATHS, work, schema, tasks=tasks, at_once=at_once
        )

    @property
    def _known_rows(self) -> list[Row]:
        return [(path,) for path in self.known]

    def some(self, most: int) -> Sequence[str]:
        """Return a few of the paths, or all."""
        if self.frame is None:
            # From all over the table: its oldest files may be of another schema.
            return self.known[:: -(-len(self.known) // most) or 1]
        return [row.path for row in self.frame.limit(most).collect()]

    def __iter__(self) -> Iterator[str]:
        """Return all paths, one after the other; not all of them are in memory."""
        if self.frame is None:
            return iter(self.known)
        return (row.path for row in self.frame.toLocalIterator())


@contextmanager
def job_files(
    spark: SparkSession,
    paths: Paths,
    *,
    where: str | None = None,
    since: datetime | str | None = None,
) -> Iterator[JobFiles]:
    """The files that paths or names of tables mean, as far as ``where`` and ``since`` want them.

    Raises as :func:`secure_bloom.storage.find_unmanaged` does; without a selection, a path that
    leads to no file is an error too.
    """
    roots = tuple(absolute_path(table_location(spark, path)) for path in as_paths(paths))
    selection = file_selection(roots, where, since)
    upper = list_upper_part(roots, selection)
    if not upper.branches:
        yield _known(spark, upper.entries, selection)
        return
    listing = _listing(spark, upper.branches, upper.entries, selection).persist()
    try:
        with executors_errors():
            files = _listed(spark, listing, selection)
        yield files
    finally:
        listing.unpersist()


def _known(spark: SparkSession, entries: Sequence[Entry], selection: FileSelection) -> JobFiles:
    """Return the files of a table that is listed already."""
    files = [entry for entry in entries if not entry.is_summary]
    _require_files(selection, {entry.root for entry in files})
    paths = sorted({entry.key: entry.path for entry in reversed(files)}.values())
    summaries = [entry.path for entry in entries if entry.is_summary]
    return JobFiles(
        spark=spark,
        roots=selection.roots,
        count=len(paths),
        summaries=_with_those_above(summaries, selection.roots),
        known=tuple(map(_as_text, paths)),
    )


def _listing(
    spark: SparkSession,
    branches: Sequence[Branch],
    entries: Sequence[Entry],
    selection: FileSelection,
) -> DataFrame:
    """Return all entries, those of the branches by tasks; a row for each."""
    # To list a folder takes less than to start a task.
    tasks = task_count(spark, len(branches), alone=0)
    rows = [(branch.root, branch.folder, branch.deep) for branch in branches]
    shared = pickle.dumps(selection)
    work = functools.partial(_list_branch, shared=shared)
    found = given_in_tasks(spark, rows, _BRANCHES, work, _ENTRIES, tasks=tasks)
    if not entries:
        return found
    return found.union(spark.createDataFrame(_ENTRIES.table(map(_entry_row, entries))))


def _list_branch(root: int, folder: str, deep: bool, *, shared: bytes) -> Iterator[Row]:
    branch = Branch(root=root, folder=folder, deep=deep)
    selection = pickle.loads(shared)  # noqa: S301 - the driver's own bytes
    try:
        yield from map(_entry_row, list_branch(branch, selection))
    except SecureBloomError as error:
        yield (root, None, None, False, pickle.dumps(error))


def _entry_row(entry: Entry) -> Row:
    return (entry.root, _as_text(entry.path), str(entry.key), entry.is_summary, None)


def _as_text(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise PolicyError("the path is no UTF-8 text, so Spark cannot name it", path=path) from None
    return path


def _listed(spark: SparkSession, listing: DataFrame, selection: FileSelection) -> JobFiles:
    """Return the files of a listing, each once however many paths lead to it; an error raised."""
    from pyspark.sql import functions as f

    is_file = ~f.col("is_summary") & f.col("error").isNull()
    # Everything at once: with many branches each further look at them costs as many tasks.
    (found,) = listing.agg(
        f.min("error").alias("error"),
        f.collect_set(f.when(is_file, f.col("root"))).alias("roots"),
        f.collect_set(f.when(f.col("is_summary"), f.col("path"))).alias("summaries"),
        f.count_distinct(f.when(is_file, f.col("key"))).alias("files"),
    ).collect()
    if found.error is not None:
        raise pickle.loads(found.error)  # noqa: S301 - our own task has just written this
    _require_files(selection, set(found.roots))
    return JobFiles(
        spark=spark,
        roots=selection.roots,
        count=found.files,
        summaries=_with_those_above(found.summaries, selection.roots),
        frame=listing.where(is_file).groupBy("key").agg(f.min("path").alias("path")).select("path"),
    )


def _require_files(selection: FileSelection, roots: set[Any]) -> None:
    if selection.is_everything:
        for ordinal, root in enumerate(selection.roots):
            if ordinal not in roots:
                raise no_such_files(root)


def _with_those_above(below: Sequence[str], roots: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({*below, *summary_files(roots)}))
