"""Progress is told from the first file to the last; what the caller set for jobs stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from secure_bloom.spark import jobs_of_call
from secure_bloom.spark.jobs_of_call import task_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FILES, TASKS = 8, 4
Told = list[tuple[int, int]]


@pytest.fixture
def job_group(spark: SparkSession) -> Iterator[str]:
    """A job group that the caller set."""
    spark.sparkContext.setJobGroup("mine", "my own job", interruptOnCancel=True)
    yield "mine"
    for name in ("jobGroup.id", "job.description", "job.interruptOnCancel"):
        spark.sparkContext.setLocalProperty(f"spark.{name}", None)


def test_it_counts_files_to_the_end_and_the_callers_job_group_stays(
    spark: SparkSession, job_group: str
) -> None:
    told: Told = []
    context = spark.sparkContext
    with task_progress(spark, lambda *it: told.append(it), total=FILES, tasks=TASKS):
        (tag,) = context.getJobTags()
        assert spark.range(0, TASKS, 1, TASKS).count() == TASKS
        # What the trackers know comes by events, behind the job's end.
        context._jsc.sc().listenerBus().waitUntilEmpty()
        assert jobs_of_call._completed(context, tag) == TASKS
    assert context.getLocalProperty("spark.jobGroup.id") == job_group
    assert context.getLocalProperty("spark.job.description") == "my own job"
    assert context.statusTracker().getJobIdsForGroup(job_group)
    assert not context.getJobTags()
    assert (told[0], told[-1]) == ((0, FILES), (FILES, FILES))
    assert told == sorted(told)


def test_nobody_is_told_where_nobody_asked(spark: SparkSession) -> None:
    with task_progress(spark, None, total=FILES, tasks=TASKS):
        assert not spark.sparkContext.getJobTags()
