"""Files under other keys, on the executors: re-encryption and rotation as Spark jobs.

The driver ships the policy and file names, never a key.  A task that runs twice finds the file as
it should be.
"""

from __future__ import annotations

import functools
import os
import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from secure_bloom.encryption.access import loaded_policy
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import SecureBloomError
from secure_bloom.rekeying.rekey_report import RekeyedFile, failed_file
from secure_bloom.rekeying.run import check_columns, reencryption, rotation
from secure_bloom.spark.add_job import absolute_path
from secure_bloom.spark.progress import Progress, task_progress
from secure_bloom.spark.tasks import run_tasks, task_count
from secure_bloom.storage import find_files, refuse_managed
from secure_bloom.storage.output_paths import output_paths
from secure_bloom.storage.paths import Paths, as_paths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: One row per file and column; a file without columns, or one that failed, has one row.
REKEY_SCHEMA = (
    "path string, status string, column string, key_before string, key string, "
    "footer_before string, footer string, bytes_before long, bytes_after long, seconds double, "
    "error string, hint string"
)
_FIELDS = [field.split()[0] for field in REKEY_SCHEMA.split(", ")]
Work = Callable[[str, str | None], RekeyedFile]


def reencrypt(
    spark: SparkSession,
    paths: Paths,
    policy: KeyPolicy | str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = None,
    new_data_keys: bool = False,
    progress: Progress | None = None,
) -> DataFrame:
    """Bring files under ``policy`` on the executors; see :func:`secure_bloom.reencrypt`.

    Returns a DataFrame with one row per file and column (:data:`REKEY_SCHEMA`).  A file that fails
    has a row with its ``error``, and is as it was.
    """
    wanted = loaded_policy(policy)
    every, files = _files(paths)
    work = reencryption(policy, None, new_data_keys=new_data_keys)
    check_columns(files, work)
    targets = {} if output is None else output_paths(files, every, absolute_path(os.fspath(output)))
    return _run(spark, files, ("reencrypt", wanted, new_data_keys), targets, progress)


def rotate_keys(
    spark: SparkSession,
    paths: Paths,
    policy: KeyPolicy | str | os.PathLike[str],
    *,
    moves: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Change the master keys of files on the executors; see :func:`secure_bloom.rotate_keys`.

    Returns and reports as :func:`reencrypt` does.
    """
    wanted = loaded_policy(policy)
    _, files = _files(paths)
    rotation(policy, moves or {}, None)
    return _run(spark, files, ("rotate", wanted, dict(moves or {})), {}, progress)


def _files(paths: Paths) -> tuple[list[str], list[str]]:
    every = [absolute_path(path) for path in as_paths(paths)]
    refuse_managed(every)
    return every, [absolute_path(path) for path in find_files(every)]


def _run(
    spark: SparkSession,
    files: list[str],
    what: tuple[str, KeyPolicy | None, object],
    targets: Mapping[str, str],
    progress: Progress | None,
) -> DataFrame:
    # The id makes keys unwrapped for this run unfit for the next one in the same worker.
    shared = pickle.dumps((*what, uuid.uuid4().hex))
    work = functools.partial(_done, shared=shared, targets=dict(targets))
    tasks = task_count(spark, len(files), at_least=64, per_core=16)
    with task_progress(spark, progress, done=0, total=len(files), tasks=tasks):
        reports = run_tasks(spark, files, work, tasks=tasks)
    return spark.createDataFrame([row for it in reports for row in _rows(it)], REKEY_SCHEMA)


def _done(path: str, *, shared: bytes, targets: Mapping[str, str]) -> RekeyedFile:
    try:
        return _work(shared)(path, targets.get(path))
    except SecureBloomError as error:
        # An executor that cannot reach the KMS fails its files, not the whole job.
        return failed_file(path, error, 0.0)


@functools.lru_cache(maxsize=1)
def _work(shared: bytes) -> Work:
    """The run's work, made once per Python worker with the policy's KMS."""
    verb, policy, setting, _ = pickle.loads(shared)  # noqa: S301 - the driver's own bytes
    if verb == "rotate":
        return rotation(policy, setting, None).rotate
    return reencryption(policy, None, new_data_keys=setting).reencrypt


def _rows(report: RekeyedFile) -> Iterator[tuple[object, ...]]:
    file = asdict(report)
    for column in file.pop("columns") or [{}]:
        row = {**file, **column}
        yield tuple(row.get(name) for name in _FIELDS)
