"""The step after the write: add filters to a table's files on the executors, one task a file.

The driver ships the policy and file names, never a key: each executor asks the policy's KMS
itself.  A task that runs twice, as a retry or a speculative copy, finds the filters there.
"""

from __future__ import annotations

import functools
import os
import pickle
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from secure_bloom.errors import SecureBloomError, SparkUnavailableError
from secure_bloom.keys import KeyResolver
from secure_bloom.policy import KeyPolicy
from secure_bloom.report import FileReport
from secure_bloom.request import Columns, FilterRequest, filter_request, request_keys
from secure_bloom.rewriting import Rewriter, WriteMode, failed_report
from secure_bloom.sources import Paths, as_paths
from secure_bloom.spark.progress import Progress, task_progress
from secure_bloom.storage import find_files, refuse_append, refuse_managed
from secure_bloom.storage.places import is_object_uri
from secure_bloom.summaries import summary_notes
from secure_bloom.survey import Survey, check_surveys, survey_file

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
    ``progress`` is told how many files are done, of how many.

    Returns a DataFrame with one row per file, row group and column (:data:`REPORT_SCHEMA`); it
    holds results and runs nothing again.  A file that fails has a row with its ``error``, and is
    as it was.  A file whose task ran twice may be reported by the second one: "unchanged".
    What :class:`secure_bloom.report.AddReport` has as notes is told by ``warnings.warn``.

    Raises as :func:`secure_bloom.add_bloom_filters` does before anything is written, and
    :class:`SparkUnavailableError` where the executors' Python lacks this package.

    Spark kills the slower of two speculative copies; if that one is appending just then, a torn
    tail stays until the next ``in_place`` run.  It can happen only where ``in_place`` and
    ``replace_filters`` come together: switch speculation off for those.

    A DataFrame that was made over these files before keeps their old sizes and must be read anew:
    ``spark.read.parquet(...)``; for a table, ``REFRESH TABLE``.
    """
    request = filter_request(columns, policy, replace_filters=replace_filters)
    request_keys(request, None)
    every = as_paths(paths)
    refuse_managed(every)
    files = [_absolute(path) for path in find_files(every)]
    if in_place:
        refuse_append(files)
    # The id makes keys unwrapped for this run unfit for the next one in the same worker.
    shared = pickle.dumps((request, uuid.uuid4().hex))
    mode = WriteMode(in_place=in_place, dry_run=dry_run)
    survey = functools.partial(_survey, shared=shared, mode=mode)
    failures = check_surveys(_run_tasks(spark, files, survey))
    todo = [path for path in files if path not in failures]
    with task_progress(spark, progress, done=len(failures), total=len(files)):
        reports = _run_tasks(spark, todo, functools.partial(_rewrite, shared=shared, mode=mode))
    done = {report.path: report for report in reports}
    for note in summary_notes(report.path for report in reports if report.changes):
        warnings.warn(note, stacklevel=2)
    done |= {path: failed_report(path, error) for path, error in failures.items()}
    rows = [row for path in files for row in _rows(done[path])]
    return spark.createDataFrame(rows, REPORT_SCHEMA)


def _absolute(path: str) -> str:
    """The path as executors find it: they do not run in the driver's folder."""
    return path if is_object_uri(path) else str(Path(path).absolute())


def _rows(report: FileReport) -> Iterator[tuple[object, ...]]:
    """A file's report as rows of :data:`REPORT_SCHEMA`."""
    file = asdict(report)
    for filter_ in file.pop("filters") or [{}]:
        row = {**file, **filter_}
        yield tuple(row.get(field) for field in _REPORT_FIELDS)


def _run_tasks(spark: SparkSession, files: Sequence[str], work: Callable[[str], T]) -> list[T]:
    """``work`` on each file in a task of its own; the results in the order of ``files``."""
    if not files:
        return []
    from pyspark.errors import PythonException
    from pyspark.sql import functions as f

    # A plain Python UDF: it needs no pandas, and Spark Connect has it too.
    task = f.udf(lambda i: pickle.dumps(work(files[i])), "binary", useArrow=False)
    tasks = spark.range(0, len(files), 1, len(files))
    try:
        rows = tasks.select("id", task.asNondeterministic()("id").alias("result")).collect()
    except PythonException as error:
        if "No module named 'secure_bloom" not in str(error):
            raise
        raise SparkUnavailableError(
            "the Python of the executors does not have secure-bloom",
            hint="install it there, or set PYSPARK_PYTHON, before the session starts, to a Python "
            "that has it",
        ) from error
    results = {row.id: row.result for row in rows}
    # Written a moment ago by our own tasks, so safe to unpickle.
    return [pickle.loads(results[i]) for i in range(len(files))]  # noqa: S301


@functools.lru_cache(maxsize=1)
def _opened(shared: bytes) -> tuple[FilterRequest, KeyResolver]:
    """The run's request and keys, once per Python worker: KEKs are unwrapped once, not per file."""
    request, _ = pickle.loads(shared)  # noqa: S301 - the driver's own bytes
    return request, KeyResolver(request_keys(request, None))


# An executor that cannot reach the KMS fails its files, not the whole job: hence the two `except`.


def _survey(path: str, *, shared: bytes, mode: WriteMode) -> Survey:
    try:
        request, resolver = _opened(shared)
    except SecureBloomError as error:
        return Survey(path=path, failure=error)
    return survey_file(path, request, resolver, repair=mode.repairs)


def _rewrite(path: str, *, shared: bytes, mode: WriteMode) -> FileReport:
    try:
        request, resolver = _opened(shared)
    except SecureBloomError as error:
        return failed_report(path, error)
    return Rewriter(request=request, resolver=resolver, mode=mode).rewrite(path)
