"""The files of a job as a DataFrame: listed by tasks, so that the driver never holds all of them.

The driver lists a table from the top until there are folders to share out (``split_listing``).  A
small table is listed completely by then, and needs no job.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.lakes.file_selection import FileSelection, file_selection
from secure_bloom.lakes.split_listing import Branch, Entry, list_branch, list_upper_part
from secure_bloom.spark.compat import frame_of
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.table_names import table_location
from secure_bloom.spark.tasks import (
    OPENING,
    Row,
    TaskWork,
    by_hash,
    collected,
    cores_of,
    evenly,
    executors_errors,
    given_in_tasks,
    in_tasks,
    plan_tasks,
    row_by_row,
    task_count,
    with_task,
)
from secure_bloom.storage import summary_files
from secure_bloom.storage.listing import no_such_files
from secure_bloom.storage.paths import Paths, absolute_path, as_paths, folder_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_PATHS = RowSchema({"path": "string"})
_PLACED = RowSchema({"path": "string", "task": "int"})
_BRANCHES = RowSchema({"root": "int", "folder": "string", "deep": "boolean"})
#: A file, a summary file, or the error that ended the listing of a branch.
_ENTRIES = RowSchema(
    {
        "root": "int",
        "path": "string",
        "key": "string",
        "size": "long",
        "is_summary": "boolean",
        "error": "binary",
    }
)
#: Files that the driver plans one by one: their paths take a few megabytes.
_PLANNED = 10_000
#: Files whose reports the driver may hold: a report has a row for each row group and column.
_FEW, _FEW_BYTES = 256, 64 * 1024**3
#: A file is planned too if it has more than this part of a task.
_EVEN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFiles:
    """``count`` files of a table: in ``known`` on the driver if they are few, else in ``frame``.

    Both have paths and sizes. ``size`` is the sum of the sizes. ``summaries`` are the summary
    files in the folders of the files and above. ``roots`` are the paths that the caller gave.
    """

    spark: SparkSession
    roots: tuple[str, ...]
    count: int
    size: int
    summaries: tuple[str, ...] = ()
    known: tuple[tuple[str, int], ...] = ()
    frame: DataFrame | None = None

    @property
    def tasks(self) -> int:
        """About how many tasks a job over the files has."""
        return task_count(self.count, self.size, cores_of(self.spark))

    def in_tasks(self, work: TaskWork, schema: RowSchema) -> DataFrame:
        """Return the rows that ``work`` makes from the paths of each task.

        There are about :attr:`tasks` tasks, of about equal bytes.  See :func:`in_tasks`.
        """
        if self.frame is not None:
            rows, tasks = self._placed(self.frame)
            return in_tasks(rows, work, schema, tasks=tasks)
        return given_in_tasks(self.spark, self._given, _PATHS, work, schema)

    def collected(self, work: TaskWork, schema: RowSchema) -> list[Row]:
        """Return the rows of :meth:`in_tasks`, computed now and held by the driver."""
        return collected(self.spark, self._given, _PATHS, work, schema)

    @property
    def are_few(self) -> bool:
        """Whether the driver can hold a report of them all."""
        return self.frame is None and self.count <= _FEW and self.size <= _FEW_BYTES

    @property
    def _given(self) -> list[list[Row]]:
        """Return the paths of each task."""
        sizes = [size for _, size in self.known]
        return [
            [(self.known[place][0],) for place in places] for places in evenly(sizes, self.tasks)
        ]

    def _placed(self, frame: DataFrame) -> tuple[DataFrame, int]:
        """Return the paths, each with its task, and the number of tasks.

        Hashes of the paths spread small files evenly, so that tasks have about equal bytes. The
        driver plans tasks for the larger files, which come first.
        """
        from pyspark.sql import functions as f

        tasks = self.tasks
        large_from = (self.size // tasks + OPENING) // _EVEN
        is_large = f.col("size") >= large_from
        large = frame.where(is_large).select("path", "size").collect()
        sizes = [row.size for row in large]
        first = -(-tasks * sum(sizes) // max(self.size, 1)) if large else 0
        planned = [
            (large[place].path, task)
            for task, places in enumerate(evenly(sizes, min(first, len(large))))
            for place in places
        ]
        rest = max(tasks - first, 1)
        small = frame.where(~is_large).select("path")
        spread = with_task(small, by_hash("path", rest) + f.lit(first))
        if not planned:
            return spread, rest
        return spread.unionByName(frame_of(self.spark, _PLACED, planned)), first + rest

    def some(self, most: int) -> Sequence[str]:
        """Return a few of the paths, or all."""
        if self.frame is None:
            # From all over the table: its oldest files may be of another schema.
            few = self.known[:: -(-len(self.known) // most) or 1]
            return [path for path, _ in few]
        return [row.path for row in self.frame.limit(most).collect()]

    @property
    def first_folder(self) -> str | None:
        """The folder of one of the files, or None if there are no files."""
        return next((folder_of(path) for path in self.some(1)), None)

    def __iter__(self) -> Iterator[str]:
        """Yield all paths, without holding all of them in memory."""
        if self.frame is None:
            return (path for path, _ in self.known)
        return (row.path for row in self.frame.toLocalIterator())


@contextmanager
def job_files(
    spark: SparkSession,
    paths: Paths,
    *,
    where: str | None = None,
    since: datetime | str | None = None,
) -> Iterator[JobFiles]:
    """Yield the files that paths or names of tables mean, if ``where`` and ``since`` select them.

    Raises UnsupportedFeatureError for a table with a log of its own. Without a selection, a path
    that leads to no file is an error too.
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
    """Return the files of a table that is already listed."""
    files = [entry for entry in entries if not entry.is_summary]
    _require_files(selection, {entry.root for entry in files})
    known = {entry.key: (_as_text(entry.path), entry.size) for entry in reversed(files)}
    summaries = [entry.path for entry in entries if entry.is_summary]
    above = _with_those_above(summaries, selection.roots)
    return _planned(spark, known.values(), above, selection)


def _listing(
    spark: SparkSession,
    branches: Sequence[Branch],
    entries: Sequence[Entry],
    selection: FileSelection,
) -> DataFrame:
    """Return all entries, one in each row. Tasks list the branches."""
    # To list a folder takes less than to start a task.
    tasks = plan_tasks([0] * len(branches), cores_of(spark))
    rows = [(branch.root, branch.folder, branch.deep) for branch in branches]
    given = [[rows[place] for place in places] for places in tasks]
    shared = pickle.dumps(selection)
    work = row_by_row(functools.partial(_list_branch, shared=shared))
    found = given_in_tasks(spark, given, _BRANCHES, work, _ENTRIES)
    if not entries:
        return found
    return found.union(frame_of(spark, _ENTRIES, map(_entry_row, entries)))


def _list_branch(root: int, folder: str, deep: bool, *, shared: bytes) -> Iterator[Row]:
    branch = Branch(root=root, folder=folder, deep=deep)
    selection = pickle.loads(shared)  # noqa: S301 - the driver's own bytes
    try:
        yield from map(_entry_row, list_branch(branch, selection))
    except SecureBloomError as error:
        yield (root, None, None, None, False, pickle.dumps(error))


def _entry_row(entry: Entry) -> Row:
    key = str(entry.key)
    return (entry.root, _as_text(entry.path), key, entry.size, entry.is_summary, None)


def _as_text(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise PolicyError(
            "the path is not UTF-8 text, so Spark cannot name it", path=path
        ) from None
    return path


def _listed(spark: SparkSession, listing: DataFrame, selection: FileSelection) -> JobFiles:
    """Return the files of a listing, each once, or raise the error of the listing."""
    from pyspark.sql import functions as f

    is_file = ~f.col("is_summary") & f.col("error").isNull()
    # Everything at once: with many branches each further look at them costs as many tasks.
    (found,) = listing.agg(
        f.min("error").alias("error"),
        f.collect_set(f.when(is_file, f.col("root"))).alias("roots"),
        f.collect_set(f.when(f.col("is_summary"), f.col("path"))).alias("summaries"),
        f.count_distinct(f.when(is_file, f.col("key"))).alias("files"),
        f.sum(f.when(is_file, f.col("size"))).alias("size"),
    ).collect()
    if found.error is not None:
        raise pickle.loads(found.error)  # noqa: S301 - our own task has just written this
    _require_files(selection, set(found.roots))
    files = listing.where(is_file).groupBy("key")
    frame = files.agg(f.min("path").alias("path"), f.first("size").alias("size"))
    summaries = _with_those_above(found.summaries, selection.roots)
    if found.files <= _PLANNED:
        return _planned(
            spark, [(row.path, row.size) for row in frame.collect()], summaries, selection
        )
    return JobFiles(
        spark=spark,
        roots=selection.roots,
        count=found.files,
        # A file that two paths lead to counts twice: as a measure of tasks that is good enough.
        size=found.size,
        summaries=summaries,
        frame=frame,
    )


def _planned(
    spark: SparkSession,
    files: Iterable[tuple[str, int]],
    summaries: tuple[str, ...],
    selection: FileSelection,
) -> JobFiles:
    known = tuple(sorted(files))
    return JobFiles(
        spark=spark,
        roots=selection.roots,
        count=len(known),
        size=sum(size for _, size in known),
        summaries=summaries,
        known=known,
    )


def _require_files(selection: FileSelection, roots: set[Any]) -> None:
    if selection.is_everything:
        for ordinal, root in enumerate(selection.roots):
            if ordinal not in roots:
                raise no_such_files(root)


def _with_those_above(below: Sequence[str], roots: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({*below, *summary_files(roots)}))
