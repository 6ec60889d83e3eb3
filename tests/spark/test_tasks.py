"""Work on rows that the driver holds: it is the same however the rows come to the tasks."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from secure_bloom.spark import tasks
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.tasks import Row, given_in_tasks, run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

GIVEN = RowSchema({"number": "int", "name": "string"})
MADE = RowSchema({"name": "string", "of": "int"})


def repeated(number: int, name: str) -> Iterator[Row]:
    yield from ((name, number) for _ in range(number))


@pytest.mark.parametrize("in_closure", [0, 10], ids=["as-rows", "in-closure"])
def test_each_task_has_a_run_of_the_rows(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, in_closure: int
) -> None:
    from pyspark.sql import functions as f

    monkeypatch.setattr(tasks, "_IN_CLOSURE", in_closure)
    given = [(number, f"row {number}") for number in range(5)]
    rows = given_in_tasks(spark, given, GIVEN, repeated, MADE, tasks=2)
    found = rows.select("*", f.spark_partition_id().alias("task")).collect()
    assert sorted((row.name, row.of) for row in found) == [
        (name, number) for number, name in given for _ in range(number)
    ]
    in_order = sorted((row.of, row.task) for row in found)
    assert {task for _, task in in_order} == {0, 1}
    assert [task for _, task in in_order] == sorted(task for _, task in in_order)


def test_no_rows_are_no_error(spark: SparkSession) -> None:
    assert given_in_tasks(spark, [], GIVEN, repeated, MADE, tasks=0).collect() == []


def test_after_a_task_a_worker_does_not_look_for_garbage_among_what_it_imported(
    spark: SparkSession,
) -> None:
    before = run_tasks(spark, ["first"] * 4, unfrozen_objects, tasks=2)
    after = run_tasks(spark, ["second"] * 4, unfrozen_objects, tasks=2)
    assert max(after) < 20_000, (before, after)


def unfrozen_objects(_: str) -> int:
    return len(gc.get_objects())
