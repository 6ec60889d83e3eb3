"""Work on rows that the driver holds: it is the same however the rows come to the tasks."""

from __future__ import annotations

import enum
import gc
import importlib
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import secure_bloom as sb
from secure_bloom.spark import tasks
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.tasks import (
    OPENING,
    Row,
    evenly,
    given_in_tasks,
    hash_of_int,
    plan_tasks,
    row_by_row,
    run_tasks,
    shuffle_keys,
    task_count,
)
from testing.tables import keyring_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

GIVEN = RowSchema({"number": "int", "name": "string"})
MADE = RowSchema({"name": "string", "of": "int"})


def repeated(number: int, name: str) -> Iterator[Row]:
    yield from ((name, number) for _ in range(number))


@pytest.mark.parametrize("in_closure", [0, 10], ids=["as-rows", "in-closure"])
@pytest.mark.parametrize("at_once", [1, 3])
def test_each_task_has_the_rows_that_are_planned_for_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, in_closure: int, at_once: int
) -> None:
    from pyspark.sql import functions as f

    monkeypatch.setattr(tasks, "_IN_CLOSURE", in_closure)
    given = [[(number, f"row {number}") for number in numbers] for numbers in ([3], [4, 1], [2, 0])]
    work = row_by_row(repeated, at_once=at_once)
    rows = given_in_tasks(spark, given, GIVEN, work, MADE)
    found = rows.select("*", f.spark_partition_id().alias("task")).collect()
    assert sorted((row.name, row.of, row.task) for row in found) == sorted(
        (name, number, task)
        for task, numbers in enumerate(given)
        for number, name in numbers
        for _ in range(number)
    )


def test_no_rows_are_no_error(spark: SparkSession) -> None:
    assert given_in_tasks(spark, [], GIVEN, row_by_row(repeated), MADE).collect() == []


class Status(enum.StrEnum):
    ADDED = "added"


ODD = RowSchema(
    {"a": "double", "b": "string", "c": "long", "d": "binary", "e": "array<string>", "f": "boolean"}
)


def odd_values(_number: int, _name: str) -> Iterator[Row]:
    yield (0, Status.ADDED, True, b"\x00\xff", (Status.ADDED, "x"), 1)
    yield (None,) * 6


def test_values_come_to_the_driver_as_the_types_of_their_columns(spark: SparkSession) -> None:
    """The JVM takes a whole number in a column of doubles for null, and knows no enumerations."""
    rows = given_in_tasks(spark, [[(1, "x")]], GIVEN, row_by_row(odd_values), ODD).collect()
    assert rows == [(0.0, "added", 1, b"\x00\xff", ["added", "x"], True), (None,) * 6]


def test_after_a_task_a_worker_does_not_look_for_garbage_among_what_it_imported(
    spark: SparkSession,
) -> None:
    both = [[0, 1], [2, 3]]
    before = run_tasks(spark, ["first"] * 4, unfrozen_objects, tasks=both)
    after = run_tasks(spark, ["second"] * 4, unfrozen_objects, tasks=both)
    assert max(after) < 20_000, (before, after)


def unfrozen_objects(_: str) -> int:
    return len(gc.get_objects())


def work_with(module: str) -> list[Row]:
    importlib.import_module(module)
    return [(module,)]


def test_a_module_that_is_missing_in_mid_work_is_named() -> None:
    shipped = pickle.dumps(work_with)
    done = tasks._with_same_version(shipped, "secure_bloom", sb.__version__, "it ", raises=False)
    assert done("no_such_module") == [
        "it has secure-bloom without the module no_such_module, which it needs"
    ]
    assert done("colorsys") == [("colorsys",)]


@pytest.mark.parametrize(
    ("module", "command"),
    [("numpy", "pip install numpy"), ("hvac.api", "pip install 'secure-bloom[EXTRA]'")],
)
def test_the_hint_on_a_missing_module_is_what_installs_it(module: str, command: str) -> None:
    error = tasks._unfit(f"has secure-bloom without the module {module}, which it needs")
    assert command in (error.hint or "")
    assert "pip" not in (tasks._unfit("does not have secure-bloom").hint or "")


def test_a_task_leaves_a_warning_of_the_keyring_to_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each of the executors' processes repeats it."""
    monkeypatch.setattr(tasks, "freeze_imports", lambda: None)
    path = tmp_path / "keyring.json"
    path.write_text(keyring_json())
    path.chmod(0o644)

    def work(_: object) -> list[Row]:
        return [("x", len(sb.Keyring.load(path).master_keys))]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert tasks._done_plainly(tasks._all_rows, work, MADE, None, []) != []
    assert [str(it.message) for it in caught] == []


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
