"""Progress of a Spark job, reported while the driver waits for its tasks."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from secure_bloom.calling.arguments import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_SECONDS = 0.2


@contextmanager
def task_progress(
    spark: SparkSession, progress: Progress | None, *, total: int, tasks: int
) -> Iterator[None]:
    """Report to ``progress`` how many files the job inside the block has done.

    ``tasks`` share the ``total`` files evenly.  A Spark Connect session does not show its tasks, so
    only the start and the end are reported there.
    """
    if progress is None:
        yield
        return
    progress(0, total)
    context = context_of(spark)
    if context is None:
        yield
    else:
        with _polled(context, lambda n: progress(total * min(n, tasks) // max(tasks, 1), total)):
            yield
    progress(total, total)


def context_of(spark: SparkSession) -> Any | None:
    """Return the session's context, or None in a Spark Connect session."""
    from pyspark.errors import PySparkException

    try:
        return spark.sparkContext
    except PySparkException:
        return None


@contextmanager
def _polled(context: Any, report: Callable[[int], None]) -> Iterator[None]:
    """Poll regularly, in a thread, and report the finished tasks of the block's jobs."""
    # A tag, not a job group: the caller keeps its own group, and the way to cancel it.
    tag = f"secure-bloom-{uuid.uuid4().hex}"
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(context, tag, over, report), daemon=True)
    context.addJobTag(tag)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        context.removeJobTag(tag)


def _watch(context: Any, tag: str, over: threading.Event, report: Callable[[int], None]) -> None:
    while not over.wait(_POLL_SECONDS):
        report(_completed(context, tag))


def _completed(context: Any, tag: str) -> int:
    # The stage that does the work has the most tasks; one before it only hands out the rows.
    return max((stage.numCompletedTasks for stage in stages_of(context, tag)), default=0)


def stages_of(context: Any, tag: str) -> Iterator[Any]:
    """Yield Spark's description of each stage of the jobs with a tag."""
    # PySpark's own tracker finds jobs by their group only.
    jobs = context._jsc.sc().statusTracker().getJobIdsForTag(tag)
    tracker = context.statusTracker()
    infos = (tracker.getJobInfo(job) for job in jobs)
    stages = (tracker.getStageInfo(s) for info in infos if info is not None for s in info.stageIds)
    return (stage for stage in stages if stage is not None)
