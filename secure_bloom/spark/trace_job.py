"""Search files for values of columns on the executors: a group of files in each task.

The driver sends the policy and the names of files, never a key or a value. Each executor asks the
policy's KMS itself, and reads the values of the columns once, into its own index. It also
confirms what it finds, so that only counts are sent back.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import astuple, replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from secure_bloom.api.trace import TraceRequest
from secure_bloom.calling.arguments import Progress, checked_arguments
from secure_bloom.encryption.access import Access, GivenPolicy
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import SecureBloomError
from secure_bloom.spark.jobs_of_call import task_progress, with_cancelled_jobs
from secure_bloom.spark.package_archive import opened_once, ship, with_shared_storage
from secure_bloom.spark.tasks import cores_of, plan_tasks, run_tasks
from secure_bloom.storage.listing import file_sizes
from secure_bloom.storage.paths import Paths, absolute_path, as_paths
from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.lake import FoundFile, candidates, search_files
from secure_bloom.tracing.report import TracedFile, TraceReport
from secure_bloom.tracing.written import written_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@checked_arguments
@with_cancelled_jobs
@with_shared_storage
def trace(
    spark: SparkSession,
    files: Paths,
    *,
    values_of: str | Iterable[str],
    parts: Iterable[str] = (),
    as_written: bool = False,
    policy: GivenPolicy = None,
    allow_unprotected: bool = False,
    memory: int | str = "1GiB",
    progress: Progress | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> TraceReport:
    """Search files of any kind for values of columns, as :func:`secure_bloom.trace`, in tasks.

    The executors need this package, and the policy's KMS or keyring file.  Each Python worker reads
    the values of the columns once.

    Args:
        spark: The session.
        files: Files and folders that driver and executors see alike.
        values_of: Columns, each written ``TABLE:COLUMN``.
        parts: Parts of values that count as values: ``"local"`` and ``"domain"`` of e-mails.
        as_written: As for :func:`secure_bloom.trace`: each task asks the filters in the tables for
            the words of its files.
        policy: A KeyPolicy, or the path of one.
        allow_unprotected: Read a file of a table that is protected less than the policy says.
        memory: The most that the index may take in each Python worker.
        progress: Called with the number of files done and the number of all files.
        storage_options: Endpoint and region of S3, as Polars, deltalake and pandas take them.
            Credentials are refused: driver and executors have their own.

    Returns:
        A report with counts for each file and column. It holds no value.  The numbers that replace
        parts of paths are those of a task.

    Raises:
        MissingPathError: There is no such file.
        PolicyError: A table has no such column.
        SparkUnavailableError: The executors' Python lacks this package.
    """
    access = Access.of(None, policy, allow_unprotected=allow_unprotected)
    request = TraceRequest.of(values_of, parts, access, memory)
    columns = tuple((absolute_path(path), name) for path, name in request.columns)
    shared = ship(replace(request, columns=columns))
    found = list(candidates(map(absolute_path, as_paths(files))))
    planned = plan_tasks(file_sizes([it.path for it in found]), cores_of(spark))
    # An empty folder is searched too: the report has the columns.
    groups = [[astuple(found[place]) for place in places] for places in planned] or [[]]
    work = functools.partial(_traced, shared=shared, as_written=as_written)
    each = [[number] for number in range(len(groups))]
    with task_progress(spark, progress, total=len(found), tasks=len(groups)):
        results = run_tasks(spark, list(map(json.dumps, groups)), work, tasks=each)
    return _joined([_report(result) for result in results])


def _traced(group: str, *, shared: bytes, as_written: bool) -> TraceReport | SecureBloomError:
    """Search a group of files. An error is returned, so that the driver can raise it."""
    try:
        found = [FoundFile(path, name) for path, name in json.loads(group)]
        if as_written:
            request, keys = _unpacked(shared)
            words = written_words(found, 1, keys)
            if words is not None:
                with request.index(words) as index:
                    return search_files(found, index, keys=keys)
        opened = _opened(shared)
        return search_files(found, opened.words, keys=opened.keys)
    except SecureBloomError as error:
        return error


@opened_once
def _unpacked(request: TraceRequest) -> tuple[TraceRequest, KeyResolver]:
    return request, request.access.describing_resolver()


class _Opened(NamedTuple):
    """The words of columns, and the tables.

    The tables stay open to confirm words that were found.
    """

    words: WordIndex
    tables: ExitStack
    keys: KeyResolver


@opened_once
def _opened(request: TraceRequest) -> _Opened:
    tables = ExitStack()
    words = tables.enter_context(request.index())
    return _Opened(words, tables, request.access.describing_resolver())


def _report(result: TraceReport | SecureBloomError) -> TraceReport:
    if isinstance(result, SecureBloomError):
        raise result
    return result


def _joined(reports: list[TraceReport]) -> TraceReport:
    # A task with many words has read all values.
    columns = min((it.columns for it in reports), key=lambda some: [it.as_written for it in some])
    return TraceReport(
        columns=columns,
        files=tuple(sorted(chain.from_iterable(it.files for it in reports), key=_by_path)),
        searched=sum(it.searched for it in reports),
        bytes=sum(it.bytes for it in reports),
        asked=sum(it.asked for it in reports),
    )


def _by_path(file: TracedFile) -> str:
    return file.path
