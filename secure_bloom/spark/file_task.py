"""The work of a run on one file, in a task of Spark.

    shared = ship(Shipped(open_work=open_work))
    work = functools.partial(process, shared=shared, failed=Rewriter.failed)
    report = work(FileTask(path))

The driver sends a function that opens the work, never a key: each Python worker asks the policy's
KMS itself. A worker imports only this module and the modules of the work. Importing the driver's
part would take half a second more in each worker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from secure_bloom.errors import SecureBloomError
from secure_bloom.runs.work import FileTask, OpenWork, R
from secure_bloom.spark.package_archive import opened_once
from secure_bloom.storage.listing import output_paths
from secure_bloom.storage.store_grants import StoreGrant


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """What the tasks of a run get: a function that opens its work, and settings to open files."""

    open_work: OpenWork[Any]
    grant: StoreGrant | None = None


@opened_once
def opened(shipped: Shipped) -> tuple[Any, StoreGrant | None]:
    """Return the :class:`Work` of a run, and its store settings, which the worker must keep."""
    return shipped.open_work(), shipped.grant


def process(
    task: FileTask, *, shared: bytes, failed: Callable[[FileTask, SecureBloomError], R]
) -> R:
    """Process one file, and return its report.

    If this executor cannot open the work, for example because it does not reach the KMS, its files
    have the report that ``failed`` makes, and the job goes on.
    """
    try:
        work, _ = opened(shared)
    except SecureBloomError as error:
        return failed(task, error)
    report: R = work.process(task, map)
    return report


def process_path(
    work: Callable[[FileTask], R],
    path: str,
    *,
    roots: tuple[str, ...] = (),
    output: str | None = None,
) -> R:
    """Process the file at ``path``, in place or to its path below the folder ``output``."""
    target = None if output is None else output_paths([path], roots, output)[path]
    return work(FileTask(path, target))
