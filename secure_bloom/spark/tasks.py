"""Work on many items in the tasks of one Spark job; the results come back in order."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from secure_bloom.errors import SparkUnavailableError
from secure_bloom.spark.progress import context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


def task_count(spark: SparkSession, items: int, *, at_least: int, per_core: int) -> int:
    """The number of tasks for these items: one task an item, unless there are many.

    A task costs about 30 ms whatever it does, most of it in the socket between Spark and Python.
    ``at_least`` is for sessions without executors so far, or with an unknown number of cores.
    """
    context = context_of(spark)
    cores = 0 if context is None else context.defaultParallelism
    return min(items, max(at_least, per_core * cores))


def run_tasks(
    spark: SparkSession, items: Sequence[str], work: Callable[[str], T], *, tasks: int
) -> list[T]:
    """Do ``work`` on each item, in ``tasks`` tasks; the results are in the order of ``items``."""
    if not items:
        return []
    from pyspark.errors import PythonException
    from pyspark.sql import functions as f

    # A plain Python UDF: it needs no pandas, and Spark Connect has it too.
    task = f.udf(lambda i: pickle.dumps(work(items[i])), "binary", useArrow=False)
    numbers = spark.range(0, len(items), 1, tasks)
    try:
        rows = numbers.select("id", task.asNondeterministic()("id").alias("result")).collect()
    except PythonException as error:
        if "No module named 'secure_bloom" not in str(error):
            raise
        raise SparkUnavailableError(
            "the Python of the executors does not have secure-bloom",
            hint="install it there, or set PYSPARK_PYTHON, before the session starts, to a Python "
            "that has it",
        ) from error
    results = {row.id: row.result for row in rows}
    # Safe to unpickle: our own tasks have just written this.
    return [pickle.loads(results[i]) for i in range(len(items))]  # noqa: S301
