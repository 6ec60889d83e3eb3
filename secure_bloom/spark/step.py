"""The step after the write: add filters to a table's files on the executors, one task a file.

The driver ships the policy and file names, never a key: each executor asks the policy's KMS
itself.  A task that runs twice, as a retry or a speculative copy, finds the filters there.
"""

from __future__ import annotations

import functools
import os
import pickle
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from secure_bloom.errors import SecureBloomError
from secure_bloom.keys import KeyResolver
from secure_bloom.policy import KeyPolicy
from secure_bloom.report import FileReport
from secure_bloom.request import Columns, FilterRequest, filter_request
from secure_bloom.sources import Paths, as_paths
from secure_bloom.spark.progress import Progress, task_progress
from secure_bloom.storage import find_files, refuse_managed
from secure_bloom.survey import Survey, check_surveys, survey_file
from secure_bloom.writer import WriteMode, failed_report, request_keys, rewrite_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

#: One row per file, row group and column; a file without any of them has one row.
REPORT_SCHEMA = (
    "path string, status string, row_group int, column string, action string, reason string, "
    "source string, values long, bytes long, fpp_requested double, fpp double, "
    "encrypted boolean, key string, bytes_before long, bytes_after long, seconds double, "
    "error string, hint string"
)
_REPORT_FIELDS = [field.split()[0] for field in REPORT_SCHEMA.split(", ")]


def add_bloom_filters(
    spark: SparkSession,
    paths: Paths,
    policy: KeyPolicy | str | os.PathLike[str] | None = None,
    *,
    columns: Columns | None = None,
    in_place: bool = False,
    replace_filters: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> DataFrame:
    """Add Bloom filters to the Parquet files at ``paths``, one Spark task a file.

    ``paths`` are files, folders or globs that driver and executors see alike.  ``columns`` is as
    for :func:`secure_bloom.add_bloom_filters`; without it the policy's columns are taken.  The
    executors need this package, and the policy's KMS or keyring file, not the driver's keys.

    Returns a DataFrame with one row per file, row group and column (:data:`REPORT_SCHEMA`); it
    holds results and runs nothing again.  A file that fails has a row with its ``error``, and is
    as it was.  Raises as :func:`secure_bloom.add_bloom_filters` does before anything is written.

    A DataFrame that was made over these files before keeps their old sizes and must be read anew:
    ``spark.read.parquet(...)``; for a table, ``REFRESH TABLE``.
    """
    request = filter_request(columns, policy, replace_filters=replace_filters)
    request_keys(request, None)
    every = as_paths(paths)
    refuse_managed(every)
    files = find_files(every)
    run = _Run(spark, request, progress)
    surveys = run.each(files, functools.partial(_survey, repair=not dry_run), None)
    failures = check_surveys(surveys)
    mode = WriteMode(in_place=in_place, dry_run=dry_run)
    todo = [path for path in files if path not in failures]
    done = {report.path: report for report in run.each(todo, _rewrite, mode)}
    done |= {path: failed_report(path, error) for path, error in failures.items()}
    rows = [row for path in files for row in _rows(done[path])]
    return spark.createDataFrame(rows, REPORT_SCHEMA)


def _rows(report: FileReport) -> Iterator[tuple[object, ...]]:
    """A file's report as rows of :data:`REPORT_SCHEMA`."""
    file = asdict(report)
    for filter_ in file.pop("filters") or [{}]:
        row = {**file, **filter_}
        yield tuple(row.get(field) for field in _REPORT_FIELDS)


class _Run:
    """One call of the step: what its tasks share, and how their results come back."""

    def __init__(
        self, spark: SparkSession, request: FilterRequest, progress: Progress | None
    ) -> None:
        self._spark = spark
        self._progress = progress
        # The id makes keys unwrapped for this run unfit for the next one in the same worker.
        self._shared = pickle.dumps((request, uuid.uuid4().hex))

    def each(
        self, files: Sequence[str], work: Callable[[str, bytes, Any], T], argument: object
    ) -> list[T]:
        """``work`` on each file in a task of its own; the results in the order of ``files``."""
        if not files:
            return []
        from pyspark.sql import functions as f

        names, shared = list(files), self._shared

        # A plain Python UDF: it needs no pandas, and Spark Connect has it too.
        task = f.udf(
            lambda i: pickle.dumps(work(names[i], shared, argument)), "binary", useArrow=False
        )
        tasks = self._spark.range(0, len(names), 1, len(names))
        with task_progress(self._spark, self._progress, len(names)):
            rows = tasks.select("id", task.asNondeterministic()("id").alias("result")).collect()
        results = {row.id: row.result for row in rows}
        # Written a moment ago by our own tasks, so safe to unpickle.
        return [pickle.loads(results[i]) for i in range(len(names))]  # noqa: S301


@functools.lru_cache(maxsize=1)
def _opened(shared: bytes) -> tuple[FilterRequest, KeyResolver]:
    """The run's request and keys, once per Python worker: KEKs are unwrapped once, not per file."""
    request, _ = pickle.loads(shared)  # noqa: S301 - the driver's own bytes
    return request, KeyResolver(request_keys(request, None))


def _survey(path: str, shared: bytes, _argument: None, *, repair: bool) -> Survey:
    try:
        request, resolver = _opened(shared)
    except SecureBloomError as error:
        # An executor that cannot reach the KMS fails its files, not the whole job.
        return Survey(path=path, failure=error)
    return survey_file(path, request, resolver, repair=repair)


def _rewrite(path: str, shared: bytes, mode: WriteMode) -> FileReport:
    request, resolver = _opened(shared)
    return rewrite_file(path, request, resolver, mode)
