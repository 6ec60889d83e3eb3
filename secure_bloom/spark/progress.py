"""How far the tasks of one Spark job are, told while the driver waits for it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Called with the number of files done and the number of files in all.
Progress = Callable[[int, int], None]

_POLL_SECONDS = 0.2


@contextmanager
def task_progress(spark: SparkSession, progress: Progress | None, total: int) -> Iterator[None]:
    """Tell ``progress`` how many tasks of the jobs run inside the block are done.

    A Spark Connect session tells nothing of its tasks: there only the start and end are told.
    """
    if progress is None:
        yield
        return
    progress(0, total)
    context = _context(spark)
    if context is None:
        yield
    else:
        with _polled(context, progress, total):
            yield
    progress(total, total)


def _context(spark: SparkSession) -> Any | None:
    from pyspark.errors import PySparkException

    try:
        return spark.sparkContext
    except PySparkException:
        return None


@contextmanager
def _polled(context: Any, progress: Progress, total: int) -> Iterator[None]:
    group = f"secure-bloom-{uuid.uuid4().hex}"
    over = threading.Event()
    watcher = threading.Thread(
        target=_watch, args=(context.statusTracker(), group, over, progress, total), daemon=True
    )
    context.setJobGroup(group, "secure-bloom: Bloom filters")
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


def _watch(tracker: Any, group: str, over: threading.Event, progress: Progress, total: int) -> None:
    while not over.wait(_POLL_SECONDS):
        progress(min(_completed(tracker, group), total), total)


def _completed(tracker: Any, group: str) -> int:
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group))
    stages = (stage for job in jobs if job is not None for stage in job.stageIds)
    infos = (tracker.getStageInfo(stage) for stage in stages)
    return sum(info.numCompletedTasks for info in infos if info is not None)
