"""Build the indexes of a Paimon table on the executors; the driver commits them.

A task builds the indexes of some files, and writes them beside these.  Only the driver reads the
table's manifests, and creates snapshots.
"""

from __future__ import annotations

import base64
import functools
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.encryption.access import GivenPolicy
from secure_bloom.errors import SecureBloomError
from secure_bloom.lakes.paimon.names import is_named, table_folder
from secure_bloom.paimon.build import BuildOptions, build_table
from secure_bloom.paimon.column_filter import BuildReport
from secure_bloom.paimon.index_builder import Columns
from secure_bloom.runs.progress import Meter
from secure_bloom.runs.work import FileTask, OpenWork, R, Work
from secure_bloom.spark.file_task import Shipped, process
from secure_bloom.spark.jobs_of_call import with_cancelled_jobs
from secure_bloom.spark.package_archive import ship, with_shared_storage
from secure_bloom.spark.tasks import cores_of, plan_tasks, run_tasks
from secure_bloom.storage.offered_permit import offered_permit
from secure_bloom.storage.paths import absolute_path
from secure_bloom.storage.write_permit import Permit, written_under

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@checked_arguments
@with_cancelled_jobs
@with_shared_storage
def build_paimon_index(
    spark: SparkSession,
    table: str,
    columns: Columns | None = None,
    policy: GivenPolicy = None,
    *,
    where: str | None = None,
    since: int | None = None,
    commit_every: int | None = None,
    allow_clear_index: bool = False,
    replace_damaged: bool = False,
    replace_filters: bool = False,
    dry_run: bool = False,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> BuildReport:
    """Build the indexes of a Paimon table's live files, as :func:`secure_bloom.paimon.build_index`.

    Executors write the indexes, and the driver commits them.  The executors need this package, and
    the policy's KMS or keyring file.

    Args:
        spark: The session.
        table: The table's folder, which driver and executors see alike, or
            ``paimon://WAREHOUSE/DATABASE.TABLE``.
        columns: Top-level columns, or keys of maps, ``m[k]``; names, or a mapping to options; by
            default those of the table's own options.
        policy: A KeyPolicy, or the path of one.
        where: Condition on partition columns that chooses files.
        since: Number of a snapshot. Only files that the table got later are indexed.
        commit_every: Number of files after which to commit. By default once, at the end.
        allow_clear_index: Index encrypted columns too, although the index is in clear.
        replace_damaged: Write a new index in place of an unreadable one.
        replace_filters: Build filters that the index of a file has already anew.
        dry_run: Write nothing, but report what a run would do.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        storage_options: Endpoint and region of S3, as Polars, deltalake and pandas take them.
            Credentials are refused: driver and executors have their own.

    Returns:
        The BuildReport that :func:`secure_bloom.paimon.build_index` returns, and not a DataFrame as
            other functions on Spark do: ``to_dict()`` has a record for each file.

    Raises:
        PolicyError: The request cannot be met.  No index was written.
        UnfinishedWriteError: It is unknown whether the snapshot was created.
    """
    asked = BuildOptions(
        policy=policy,
        where=where,
        since=since,
        commit_every=commit_every,
        allow_clear_index=allow_clear_index,
        replace_damaged=replace_damaged,
        replace_filters=replace_filters,
        dry_run=dry_run,
        allow_unverified=allow_unverified,
        allow_unprotected=allow_unprotected,
    )
    place = table_folder(table if is_named(table) else absolute_path(table))
    return build_table(place, columns, asked, ExecutorRunner(spark=spark, folder=place))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorRunner:
    """Does the work on files of the table in ``folder`` on the executors of a session."""

    spark: SparkSession
    folder: str

    def process(
        self, work: Work[R], open_work: OpenWork[R], tasks: Sequence[FileTask], meter: Meter
    ) -> dict[str, R]:
        """Return the report of each task by the path of its file.

        No attempt at a task writes a file after this has returned or has raised an error.
        """
        items = [base64.b64encode(pickle.dumps(task)).decode() for task in tasks]
        planned = plan_tasks([task.listed.size for task in tasks], cores_of(self.spark))
        writes = bool(items) and not work.writes_nothing
        with offered_permit(self.folder) if writes else nullcontext() as permit:
            done = functools.partial(_done, ship(Shipped(open_work=open_work)), work.failed, permit)
            results = run_tasks(self.spark, items, done, tasks=planned)
        for task, result in zip(tasks, results, strict=True):
            meter.finish(task, work.steps_of(result))
        return {result.path: result for result in results}


def _done(
    shipped: bytes,
    failed: Callable[[FileTask, SecureBloomError], Any],
    permit: Permit | None,
    item: str,
) -> Any:
    # Safe to unpickle: the driver has just written this.
    task: FileTask = pickle.loads(base64.b64decode(item))  # noqa: S301
    with nullcontext() if permit is None else written_under(permit):
        return process(task, shared=shipped, failed=failed)
