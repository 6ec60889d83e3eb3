"""Work on rows in the tasks of a Spark job.

Many items of work are a column, never part of a closure: a closure goes to every task whole.  A
plain Python UDF does the work, because every version of Spark has it, Spark Connect too, without
pandas.  Its argument is all that one task has to do.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from secure_bloom.errors import SparkUnavailableError
from secure_bloom.ordered_pool import in_order
from secure_bloom.spark.compat import frame_of
from secure_bloom.spark.package_archive import opened_once, ship
from secure_bloom.spark.progress import context_of
from secure_bloom.spark.python_workers import freeze_imports
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.shuffle_keys import shuffle_keys

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

T = TypeVar("T")
Row = tuple[Any, ...]
#: Work on the values of one row, and the rows that it makes of them.
Work = Callable[..., Iterable[Row]]
#: Work on all rows of a task.
TaskWork = Callable[[Sequence[Row]], Iterable[Row]]

#: Cores of a session that does not say how many it has.
_CORES = 4
#: Rows of the driver that go to the tasks in their closure.  It is larger then, but nothing has to
#: be shuffled, which takes longer than such a closure.
_IN_CLOSURE = 1000
_TASK, _ROWS = "task", "rows"


def cores_of(spark: SparkSession) -> int:
    """Return the number of tasks that the session runs at once."""
    context = context_of(spark)
    return _CORES if context is None else int(context.defaultParallelism)


def given_in_tasks(
    spark: SparkSession,
    given: Sequence[Sequence[Row]],
    columns: RowSchema,
    work: TaskWork,
    schema: RowSchema,
) -> DataFrame:
    """As :func:`in_tasks`, of rows that the driver holds: ``given`` has the rows of each task."""
    if sum(map(len, given)) > _IN_CLOSURE:
        numbered = ((*row, task) for task, rows in enumerate(given) for row in rows)
        frame = frame_of(spark, RowSchema({**columns.types, _TASK: "int"}), numbered)
        return in_tasks(frame, work, schema, tasks=len(given))
    numbers = spark.range(0, len(given), 1, max(len(given), 1))
    rows_of = functools.partial(_given_rows, ship(given))
    return _done(numbers, "id", rows_of, work, schema)


def _given_rows(shipped: bytes, task: int) -> Sequence[Row]:
    return _given(shipped)[task]


@opened_once
def _given(rows: Sequence[Sequence[Row]]) -> Sequence[Sequence[Row]]:
    return rows


def in_tasks(rows: DataFrame, work: TaskWork, schema: RowSchema, *, tasks: int) -> DataFrame:
    """Return the rows that ``work`` makes of the rows that have the same task in column ``task``.

    Nothing runs before it is asked for.  ``work`` runs again whenever the result is evaluated: keep
    it, or write it.
    """
    from pyspark.sql import functions as f

    given = [f.col(name) for name in rows.columns if name != _TASK]
    keys = f.array(*map(f.lit, shuffle_keys(max(tasks, 1))))
    placed = rows.select(f.get(keys, f.col(_TASK)).alias(_TASK), *given)
    # The rows of a task are one row, in the partition that its key has.
    shared = placed.repartition(max(tasks, 1), _TASK).groupBy(_TASK)
    together = shared.agg(f.collect_list(f.struct(*given)).alias(_ROWS)).select(_ROWS)
    return _done(together, _ROWS, _rows_as_given, work, schema)


def by_hash(column: str, tasks: int) -> Column:
    """Return the task of a row: the same for the same row whenever it is asked."""
    from pyspark.sql import functions as f

    return f.pmod(f.xxhash64(column), f.lit(tasks)).cast("int")


def with_task(rows: DataFrame, task: Column) -> DataFrame:
    """Return the rows, each with its task, as :func:`in_tasks` takes them."""
    return rows.withColumn(_TASK, task)


def _rows_as_given(rows: Sequence[Row]) -> Sequence[Row]:
    return rows


def _done(
    tasks: DataFrame,
    column: str,
    rows_of: Callable[[Any], Sequence[Row]],
    work: TaskWork,
    schema: RowSchema,
) -> DataFrame:
    """Return what the work makes of the rows that ``rows_of`` finds in the column of each task."""
    from pyspark.sql.functions import inline, udf

    def done(given: Any) -> list[Row]:
        plain = [schema.plain(row) for row in work(rows_of(given))]
        freeze_imports()
        return plain

    task = udf(done, f"array<{schema.struct}>", useArrow=False).asNondeterministic()
    return tasks.select(inline(task(column)))


def row_by_row(work: Work, *, at_once: int = 1) -> TaskWork:
    """Return work on one row as that on a task's, with that many rows ``at_once``, in threads."""
    return functools.partial(_each_row, work, at_once)


def _each_row(work: Work, at_once: int, rows: Sequence[Row]) -> Iterator[Row]:
    made = in_order(lambda row: list(work(*row)), rows, at_once, room=len(rows))
    return itertools.chain.from_iterable(made)


_ITEMS = RowSchema({"id": "long", "item": "string"})
_RESULTS = RowSchema({"id": "long", "result": "binary"})


def run_tasks(
    spark: SparkSession,
    items: Sequence[str],
    work: Callable[[str], T],
    *,
    tasks: Sequence[Sequence[int]],
) -> list[T]:
    """Do ``work`` on each item, and return the results in the order of ``items``.

    Each of ``tasks`` has the items at these places.  The driver holds all items and all results.
    """
    if not items:
        return []
    given = [[(place, items[place]) for place in places] for places in tasks]
    pickled = row_by_row(functools.partial(_pickled, work))
    with executors_errors():
        rows = given_in_tasks(spark, given, _ITEMS, pickled, _RESULTS).collect()
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
