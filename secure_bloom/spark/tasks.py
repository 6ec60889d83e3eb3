"""Work on rows in the tasks of a Spark job.

Many items of work are a column, never part of a closure: a closure goes to every task whole.  An
Arrow UDF does the work: Spark Connect has it too, and it needs no pandas, unlike `mapInArrow`.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from secure_bloom.errors import SparkUnavailableError
from secure_bloom.ordered_pool import in_order
from secure_bloom.spark.package_archive import opened_once, ship
from secure_bloom.spark.progress import context_of
from secure_bloom.spark.python_workers import freeze_imports
from secure_bloom.spark.row_schema import RowSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
Row = tuple[Any, ...]
#: Work on the values of one row, and the rows that it makes of them.
Work = Callable[..., Iterable[Row]]

#: Up to this number, each item has a task of its own.
_ALONE = 64
#: So has each item up to this number for each core: a few may be large, and would keep one core
#: busy.
_ALONE_OF_A_CORE = 4
#: Tasks of a core where items share them: the last one evens out what others took longer.
_OF_A_CORE = 3
#: Cores of a session that does not tell them.
_CORES = 4
#: Items of a task where cores are few and may become more; and the most, because a lost task
#: is done again as a whole.
_SOME, _MOST = 250, 1000
#: Rows of the driver that go to the tasks in their closure.  It is larger then, but nothing has to
#: be shuffled, which takes longer than such a closure.
_IN_CLOSURE = 1000
_TASK = "task"


def task_count(spark: SparkSession, items: int, *, alone: int = _ALONE) -> int:
    """Return the number of tasks for these items: one task an item, unless there are many.

    A task costs 50 to 60 ms whatever it does, most of it until its Python worker has it: as much as
    25 small files.  The way there by TCP is 40 of them.
    """
    context = context_of(spark)
    cores = _CORES if context is None else context.defaultParallelism
    if items <= max(alone, _ALONE_OF_A_CORE * cores):
        return items
    return max(_OF_A_CORE * cores, min(_ALONE, items // _SOME), -(-items // _MOST))


def rows_frame(
    spark: SparkSession, rows: Sequence[Row], schema: RowSchema, *, tasks: int
) -> DataFrame:
    """Return the driver's rows as a DataFrame, each task having a run of them, in order."""
    numbered = ((*row, i * tasks // len(rows)) for i, row in enumerate(rows))
    table = RowSchema({**schema.types, _TASK: "int"}).table(numbered)
    return _by_task(spark.createDataFrame(table), tasks)


def spread(rows: DataFrame, column: str, *, tasks: int) -> DataFrame:
    """Return the rows by the hash of a column.

    The same row is in the same task whenever it is asked.
    """
    from pyspark.sql import functions as f

    task = f.pmod(f.xxhash64(column), f.lit(tasks)).cast("int")
    return _by_task(rows.withColumn(_TASK, task), tasks)


def _by_task(rows: DataFrame, tasks: int) -> DataFrame:
    return rows.repartitionById(max(tasks, 1), _TASK).drop(_TASK)


def given_in_tasks(
    spark: SparkSession,
    given: Sequence[Row],
    columns: RowSchema,
    work: Work,
    schema: RowSchema,
    *,
    tasks: int,
    at_once: int = 1,
) -> DataFrame:
    """As :func:`in_tasks`, of rows that the driver holds; each task has a run of them, in order."""
    if len(given) > _IN_CLOSURE:
        rows = rows_frame(spark, given, columns, tasks=tasks)
        return in_tasks(rows, work, schema, at_once=at_once)
    numbers = spark.range(0, len(given), 1, max(tasks, 1))
    work = functools.partial(_on_given, work, ship(given))
    return in_tasks(numbers, work, schema, at_once=at_once)


def _on_given(work: Work, shipped: bytes, number: int) -> Iterable[Row]:
    return work(*_given(shipped)[number])


@opened_once
def _given(rows: Sequence[Row]) -> Sequence[Row]:
    return rows


def in_tasks(rows: DataFrame, work: Work, schema: RowSchema, *, at_once: int = 1) -> DataFrame:
    """Return the rows that ``work`` makes of each row, in its task.

    Nothing runs before it is asked for.
    A task works on that many rows ``at_once``, in threads.  ``work`` runs again whenever the result
    is evaluated: keep it, or write it.
    """
    from pyspark.sql.functions import inline
    from pyspark.sql.pandas.functions import arrow_udf

    # Spark chooses the kind of UDF by these annotations.
    def done(*columns: pa.Array) -> pa.Array:
        given = list(zip(*(column.to_pylist() for column in columns), strict=True))
        made = list(in_order(lambda row: list(work(*row)), given, at_once, room=len(given)))
        freeze_imports()
        return schema.lists(made)

    # The types of PySpark only know of generators here.
    task = arrow_udf(done, f"array<{schema.struct}>").asNondeterministic()  # type: ignore[call-overload]
    return rows.select(inline(task(*rows.columns)))


_ITEMS = RowSchema({"id": "long", "item": "string"})
_RESULTS = RowSchema({"id": "long", "result": "binary"})


def run_tasks(
    spark: SparkSession, items: Sequence[str], work: Callable[[str], T], *, tasks: int
) -> list[T]:
    """Do ``work`` on each item, in ``tasks`` tasks; the results are in the order of ``items``.

    The driver holds all items and all results.
    """
    if not items:
        return []
    numbered, pickled = list(enumerate(items)), functools.partial(_pickled, work)
    with executors_errors():
        rows = given_in_tasks(spark, numbered, _ITEMS, pickled, _RESULTS, tasks=tasks).collect()
    results = {row.id: row.result for row in rows}
    # Safe to unpickle: our own tasks have just written this.
    return [pickle.loads(results[i]) for i in range(len(items))]  # noqa: S301


def _pickled(work: Callable[[str], object], number: int, item: str) -> Iterator[Row]:
    yield (number, pickle.dumps(work(item)))


@contextmanager
def executors_errors() -> Iterator[None]:
    """Say it if the executors' Python lacks this package."""
    from pyspark.errors import PythonException

    try:
        yield
    except PythonException as error:
        if "No module named 'secure_bloom" not in str(error):
            raise
        raise SparkUnavailableError(
            "the Python of the executors does not have secure-bloom",
            hint="install it there, or set PYSPARK_PYTHON, before the session starts, to a Python "
            "that has it",
        ) from error
