"""Tasks of about equal bytes: how many, which files each has, and in what order they start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.spark.task_plan import (
    OPENING,
    evenly,
    hash_of_int,
    plan_tasks,
    shuffle_keys,
    task_count,
)

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("sizes", "cores", "tasks"),
    [
        ([], 2, 0),
        ([5 * MIB] * 32, 2, 6),  # three a core
        ([1000] * 64, 2, 2),  # small files: no more tasks than cores
        ([1000] * 10, 2, 2),
        ([1000], 2, 1),
        ([100 * MIB] * 3, 8, 3),  # more cores than files: each has its own
        ([1000] * 8, 8, 8),
        ([1000] * 10_000, 2, 40),  # cores may become more
        ([1000] * 100_000, 2, 100),  # at most a thousand files a task
        ([64 * 1024 * MIB] * 8, 2, 8),
        ([MIB] * 20_000, 2, 64),
    ],
)
def test_how_many_tasks(sizes: list[int], cores: int, tasks: int) -> None:
    assert task_count(len(sizes), sum(sizes), cores) == tasks
    assert len(plan_tasks(sizes, cores)) == tasks


def test_a_large_file_is_alone_and_starts_first() -> None:
    sizes = [1000] * 20 + [2000 * MIB] + [1000] * 20
    plan = plan_tasks(sizes, 2)
    assert plan[0] == [20]
    assert sum(map(len, plan[1:])) == 40


def test_equal_files_are_dealt_out_in_their_order() -> None:
    assert evenly([7] * 5, 2) == [[0, 2, 4], [1, 3]]
    assert evenly([7] * 3, 5) == [[0], [1], [2]]


@given(st.lists(st.integers(0, 1 << 40), max_size=60), st.integers(1, 9))
def test_each_file_has_one_task_and_tasks_are_even(sizes: list[int], tasks: int) -> None:
    plan = evenly(sizes, tasks)
    assert sorted(place for places in plan for place in places) == list(range(len(sizes)))
    work = [sum(sizes[place] + OPENING for place in places) for places in plan]
    assert work == sorted(work, reverse=True)
    if sizes:
        # Graham: the largest task has at most the mean and one whole file more.
        assert work[0] <= sum(work) / tasks + max(sizes) + OPENING


if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_the_hash_is_that_of_spark(spark: SparkSession) -> None:
    rows = spark.range(200).selectExpr("hash(cast(id AS int)) AS hash").collect()
    assert [row.hash for row in rows] == list(map(hash_of_int, range(200)))


@pytest.mark.parametrize("partitions", [1, 2, 7, 64])
def test_each_row_is_in_the_partition_that_its_key_names(
    spark: SparkSession, partitions: int
) -> None:
    keys = [(partition, key) for partition, key in enumerate(shuffle_keys(partitions))]
    rows = spark.createDataFrame(keys, "wanted int, key int").repartition(partitions, "key")
    found = rows.selectExpr("wanted", "spark_partition_id() AS found").collect()
    assert len(found) == partitions
    assert all(row.wanted == row.found for row in found)
