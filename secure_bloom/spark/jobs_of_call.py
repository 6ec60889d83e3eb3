"""The Spark jobs of one call: their progress, their end, and their cancellation.

Progress is reported while the driver waits for tasks.  The jobs are cancelled however the call
ends, and awaited after an error: a notebook's session lives on after Ctrl-C, and without this its
executors would continue the call's jobs.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from secure_bloom.calling.arguments import Progress
from secure_bloom.running.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = ParamSpec("P")
R = TypeVar("R")
#: Seconds that a cancelled call waits for its tasks.  A task whose machine does not answer is lost
#: after Spark's own, longer, limit; it cannot write any more, see ``storage/write_permit``.
_PATIENCE = 30.0
_PAUSE = 0.05


def with_cancelled_jobs(verb: Callable[P, R]) -> Callable[P, R]:
    """Make a verb cancel its jobs however it ends: by Ctrl-C, an error, or its return.

    The verb's first argument is the session.
    """

    @wraps(verb)
    def cancelling(*args: P.args, **kwargs: P.kwargs) -> R:
        spark: Any = args[0] if args else kwargs.get("spark")
        if not hasattr(spark, "createDataFrame"):
            # Not a session: the check of the arguments says so.
            return verb(*args, **kwargs)
        with cancelled_jobs(spark):
            return verb(*args, **kwargs)

    return cancelling


@contextmanager
def cancelled_jobs(spark: SparkSession) -> Iterator[None]:
    """Cancel the jobs that the block has started and not finished.

    After an error, also wait for their tasks. If the block ends without an error, all that may be
    left is the slower copy of a task, which Spark takes seconds to end.
    """
    # A tag, not a job group: the caller keeps its own group, and the way to cancel it.
    tag = f"secure-bloom-call-{uuid.uuid4().hex}"
    context = context_of(spark)
    tagged: Any = spark if context is None else context
    add, remove = (
        (tagged.addTag, tagged.removeTag)
        if context is None
        else (tagged.addJobTag, tagged.removeJobTag)
    )
    add(tag)
    is_done = False
    try:
        yield
        is_done = True
    except Exception as error:
        # What PySpark does after Ctrl-C may fail, and hide it.
        if _was_interrupted(error):
            raise KeyboardInterrupt from error
        raise
    finally:
        try:
            # An error here would hide the one that led here.
            with suppress(Exception):
                remove(tag)
        finally:
            # In a thread, which has a connection of its own to the JVM: Ctrl-C may have broken the
            # one of this thread, and a second one would break it in mid-request.
            with suppress(Exception):
                uninterrupted(partial(_cancel, spark, context, tag, waits=not is_done))


def _was_interrupted(error: BaseException) -> bool:
    found: BaseException | None = error
    while found is not None and not isinstance(found, KeyboardInterrupt):
        found = found.__cause__ or found.__context__
    return found is not None


def _cancel(spark: SparkSession, context: Any, tag: str, *, waits: bool) -> None:
    if context is None:
        spark.interruptTag(tag)
        return
    context.cancelJobsWithTag(tag)
    if waits:
        deadline = time.monotonic() + _PATIENCE
        while _is_at_work(context, tag) and time.monotonic() < deadline:
            time.sleep(_PAUSE)


def _is_at_work(context: Any, tag: str) -> bool:
    tracker = context.statusTracker()
    active = {*tracker.getActiveJobsIds()}
    jobs = context._jsc.sc().statusTracker().getJobIdsForTag(tag)
    return any(job in active for job in jobs) or any(
        stage.numActiveTasks > 0 for stage in stages_of(context, tag)
    )


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
