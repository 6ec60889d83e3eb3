"""Advise on the executors: one task reads the footers, then one task tries each column.

The driver sends the policy and the names of files, never a key: each executor asks the policy's KMS
itself.  The results of tasks hold numbers and names, and no value of the table.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from secure_bloom.advising.advisor import FilterOptions, advise_column, column_names, wanted_columns
from secure_bloom.advising.query_log import QueryLog, load_query_log
from secure_bloom.advising.sample import TableSample, sample_table
from secure_bloom.advising.table_advice import ColumnAdvice, TableAdvice, conclude
from secure_bloom.advising.trial import Trier
from secure_bloom.calling.arguments import Progress, checked_arguments
from secure_bloom.encryption.access import Access, GivenPolicy
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import SecureBloomError
from secure_bloom.spark.jobs_of_call import task_progress, with_cancelled_jobs
from secure_bloom.spark.package_archive import opened_once, ship, with_shared_storage
from secure_bloom.spark.tasks import run_tasks
from secure_bloom.storage.paths import Paths, absolute_path, as_paths

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


@checked_arguments
@with_cancelled_jobs
@with_shared_storage
def advise(
    spark: SparkSession,
    paths: Paths,
    policy: GivenPolicy = None,
    *,
    columns: str | Iterable[str] | None = None,
    queries: str | os.PathLike[str] | None = None,
    fpp: float | None = None,
    allow_unprotected: bool = False,
    progress: Progress | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> TableAdvice:
    """Return which columns gain from a filter, as :func:`secure_bloom.advise`, a task for each.

    The executors need this package, and the policy's KMS or keyring file.  One task reads the
    footers, and all tasks try the same part of the table.

    Args:
        spark: The session.
        paths: Files, folders or globs that driver and executors see alike, or names of tables in
            Spark's catalog (``"db.customers"``), or the folder of one Delta table.
        policy: A KeyPolicy, or the path of one.
        columns: One column or several; by default all.
        queries: A file, on the driver's machine, with one SQL condition or statement in each line.
        fpp: False-positive probability of the filters; by default the policy's, or 1 %.
        allow_unprotected: Accept files that are protected less than the policy says.
        progress: Called with the number of columns done and the number of all columns.
        storage_options: Endpoint and region of S3, as Polars, deltalake and pandas take them.
            Credentials are refused: driver and executors have their own.

    Returns:
        A verdict for each column, with its reason and the bytes of a lookup.

    Raises:
        PolicyError: The table lacks a column, or a path leads to no file.
    """
    given = [absolute_path(path) for path in as_paths(paths)]
    access = Access.of(None, policy, allow_unprotected=allow_unprotected, paths=given)
    shared = ship(access)
    [found] = run_tasks(spark, ["footers"], functools.partial(_sample, given, shared), tasks=[[0]])
    sample = _result(found)
    wanted = wanted_columns(sample, columns)
    log = None if queries is None else load_query_log(queries, column_names(sample))
    names = [candidate.name for candidate in wanted]
    work = functools.partial(
        _advise,
        shared=ship((access, sample)),
        options=FilterOptions(fpp=fpp, policy=access.policy),
        log=log,
    )
    with task_progress(spark, progress, total=len(names), tasks=len(names)):
        advice = run_tasks(spark, names, work, tasks=[[place] for place in range(len(names))])
    return conclude(sample, [_result(column) for column in advice], log)


def _result(found: T | SecureBloomError) -> T:
    """Return the result of a task, or raise its error here."""
    if isinstance(found, SecureBloomError):
        raise found
    return found


def _sample(given: list[str], shared: bytes, _item: str) -> TableSample | SecureBloomError:
    try:
        return sample_table(given, _resolver(shared))
    except SecureBloomError as error:
        return error


@opened_once
def _resolver(access: Access) -> KeyResolver:
    return access.resolver()


@opened_once
def _trier(shipped: tuple[Access, TableSample]) -> tuple[TableSample, Trier]:
    access, sample = shipped
    return sample, Trier(sample, access.resolver(), access.policy)


def _advise(
    name: str, *, shared: bytes, options: FilterOptions, log: QueryLog | None
) -> ColumnAdvice | SecureBloomError:
    try:
        sample, trier = _trier(shared)
        candidate = next(it for it in sample.candidates if it.name == name)
        return advise_column(trier, sample, candidate, options.of(candidate), log)
    except SecureBloomError as error:
        return error
