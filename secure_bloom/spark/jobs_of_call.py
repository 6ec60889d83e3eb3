"""The Spark jobs of one call are cancelled however the call ends, and awaited after an error.

A notebook's session lives on after Ctrl-C, and without this its executors would continue the
call's jobs.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from secure_bloom.running.uninterrupted import uninterrupted
from secure_bloom.spark.progress import context_of, stages_of

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
