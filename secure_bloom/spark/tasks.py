"""Plan the tasks of a Spark job, and do the work on rows in them.

The items of work are values of a column, never part of a closure, because a closure is sent whole
to every task.  A plain Python UDF does the work, because every version of Spark supports it without
pandas, also with Spark Connect.  Its argument has all items of one task.

A task costs tens of milliseconds whatever it does, so small files share one.  A large file has a
task of its own.  Tasks are in the order of their bytes, because Spark starts them in this order: a
large task that starts last would keep one core busy while the others wait.

Spark sends a row to the partition `pmod(hash(column), n)` of `repartition(n, column)`, where `hash`
of an INT is Murmur3_x86_32 with seed 42, the same in each Spark since 2.0.  So each task gets its
rows by a chosen key.  Spark 4.1 has `repartitionById`; older versions have no other way.
"""

from __future__ import annotations

import functools
import gc
import heapq
import importlib
import itertools
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from secure_bloom.errors import DriverLostError, RunEnded, SparkUnavailableError
from secure_bloom.running.ordered_pool import in_growing_threads
from secure_bloom.spark.compat import frame_of
from secure_bloom.spark.jobs_of_call import context_of
from secure_bloom.spark.package_archive import call_grant, opened_once, ship
from secure_bloom.spark.row_schema import RowSchema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from secure_bloom.storage.store_grants import StoreGrant

T = TypeVar("T")
Row = tuple[Any, ...]
#: Work on the values of one row, and the rows that it makes of them.
Work = Callable[..., Iterable[Row]]
#: Work on all rows of a task.
TaskWork = Callable[[Sequence[Row]], Iterable[Row]]

_PACKAGE = __name__.partition(".")[0]
#: The face has it, which no room imports from.
_VERSION: str = importlib.import_module(_PACKAGE).__version__
#: How the error of an executor without the package begins.
_UNFIT = "this Python is no executor of secure-bloom, it "
#: Cores of a session that does not say how many it has.
_CORES = 4
#: Rows of the driver that go to the tasks in their closure.  It is larger then, but nothing has to
#: be shuffled, which takes longer than a large closure.
_IN_CLOSURE = 1000
#: The numbers of modules that this worker had when it froze its objects.
_frozen_with: set[int] = set()
_TASK, _ROWS, _KEY = "task", "rows", "shuffle key"


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
    """Return the rows that :func:`in_tasks` returns, for rows that are on the driver.

    ``given`` has the rows of each task.
    """
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
    """Return the rows that ``work`` makes from the rows that have the same task in column ``task``.

    The result is lazy, and ``work`` runs again whenever it is evaluated: keep it, or write it.
    """
    from pyspark.sql import functions as f

    given = [name for name in rows.columns if name != _TASK]
    shared = in_partitions(rows, _TASK, max(tasks, 1)).groupBy(_KEY)
    together = shared.agg(f.collect_list(f.struct(*given)).alias(_ROWS)).select(_ROWS)
    return _done(together, _ROWS, _all_rows, work, schema)


def in_partitions(rows: DataFrame, column: str, partitions: int) -> DataFrame:
    """Return the rows in ``partitions`` partitions. ``column`` has each row's partition number."""
    from pyspark.sql import functions as f

    keys = f.array(*map(f.lit, shuffle_keys(partitions)))
    return rows.withColumn(_KEY, f.get(keys, f.col(column))).repartition(partitions, _KEY)


def by_hash(column: str, tasks: int) -> Column:
    """Return the task of a row: always the same for the same row."""
    from pyspark.sql import functions as f

    return f.pmod(f.xxhash64(column), f.lit(tasks)).cast("int")


def with_task(rows: DataFrame, task: Column) -> DataFrame:
    """Return the rows, each with its task, as :func:`in_tasks` takes them."""
    return rows.withColumn(_TASK, task)


def _done(
    tasks: DataFrame,
    column: str,
    rows_of: Callable[[Any], Sequence[Row]],
    work: TaskWork,
    schema: RowSchema,
) -> DataFrame:
    """Return a DataFrame of the rows that ``work`` makes from the input rows of each task.

    ``column`` of ``tasks`` holds the input of a task, and ``rows_of`` decodes it to rows.
    """
    from pyspark.sql.functions import inline, udf

    done = _in_worker(rows_of, work, schema, raises=True)
    task = udf(done, f"array<{schema.struct}>", useArrow=False).asNondeterministic()
    return tasks.select(inline(task(column)))


def _in_worker(
    rows_of: Callable[[Any], Sequence[Row]], work: TaskWork, schema: RowSchema, *, raises: bool
) -> Callable[[Any], list[Row]]:
    from pyspark import cloudpickle

    # Unpickled, the grant counts as long as the function: where the task finds the store.
    run = functools.partial(_done_plainly, rows_of, work, schema, call_grant())
    shipped: bytes = cloudpickle.dumps(run)  # type: ignore[no-untyped-call]
    return _with_same_version(shipped, _PACKAGE, _VERSION, _UNFIT, raises=raises)


def _done_plainly(
    rows_of: Callable[[Any], Sequence[Row]],
    work: TaskWork,
    schema: RowSchema,
    grant: StoreGrant | None,
    given: Any,
) -> list[Row]:
    del grant
    leave_warnings_to_driver()
    plain = [schema.plain(row) for row in work(rows_of(given))]
    freeze_imports()
    return plain


def _with_same_version(
    shipped: bytes, package: str, version: str, unfit: str, *, raises: bool
) -> Callable[[Any], list[Row]]:
    """Return the shipped function, with a check of the executor's Python before it.

    If this Python lacks the package or one of its modules, or has another version of the package,
    the function raises ImportError. Without ``raises`` it returns the error's text in place of
    rows, and Spark shows no traceback.
    """

    # The closure is pickled by value: it must not name anything of this package before it looked.
    def done(given: Any) -> list[Any]:
        import importlib
        import pickle

        try:
            found = importlib.import_module(package).__version__
            if found == version:
                # The driver's own bytes.  What the work needs may be imported only when it is done.
                return pickle.loads(shipped)(given)  # type: ignore[no-any-return]  # noqa: S301
            lacks = f"has secure-bloom {found}, and the driver has {version}"
        except ImportError as error:
            if error.name is None:
                raise
            lacks = "does not have secure-bloom"
            if error.name != package:
                is_there = not isinstance(error, ModuleNotFoundError)
                how = "with a broken module" if is_there else "without the module"
                lacks = f"has secure-bloom {how} {error.name}, which it needs"
        if raises:
            raise ImportError(unfit + lacks)
        return [unfit + lacks]

    return done


def row_by_row(work: Work, *, at_once: int = 1) -> TaskWork:
    """Return work on a task's rows from work on one row.

    Up to ``at_once`` rows are worked on at a time, in threads, if the work mostly waits.
    """
    return functools.partial(_each_row, work, at_once)


def _each_row(work: Work, at_once: int, rows: Sequence[Row]) -> Iterator[Row]:
    def done(row: Row) -> list[Row]:
        return list(work(*row))

    made = map(done, rows) if at_once == 1 else in_growing_threads(done, rows, at_once)
    return itertools.chain.from_iterable(made)


def result_rows(
    rows: Callable[[T], Iterable[Row]], work: Callable[[str], T], path: str
) -> Iterable[Row]:
    """Return the rows that ``rows`` makes from the result of ``work(path)``."""
    return rows(work(path))


def collected(
    spark: SparkSession,
    given: Sequence[Sequence[Row]],
    columns: RowSchema,
    work: TaskWork,
    schema: RowSchema,
) -> list[Row]:
    """Return the rows of :func:`given_in_tasks`, computed now and held by the driver.

    This uses no query where it can, because planning it and generating its code takes a session's
    first job two seconds. Spark Connect has only queries.
    """
    context = context_of(spark)
    with executors_errors():
        if context is None or not given:
            found = given_in_tasks(spark, given, columns, work, schema).collect()
            return list(map(tuple, found))
        done = _in_worker(_all_rows, work, schema, raises=False)
        made: list[Row | str] = context.parallelize(given, len(given)).flatMap(done).collect()
    for row in made:
        if isinstance(row, str):
            raise _unfit(row.removeprefix(_UNFIT))
    return cast("list[Row]", made)


def _all_rows(rows: Sequence[Row]) -> Sequence[Row]:
    return rows


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

    ``tasks`` lists the indexes of the items of each task.  The driver holds all items and all
    results.
    """
    if not items:
        return []
    given = [[(place, items[place]) for place in places] for places in tasks]
    pickled = row_by_row(functools.partial(_pickled, work))
    results: dict[int, bytes] = dict(collected(spark, given, _ITEMS, pickled, _RESULTS))
    # Safe to unpickle: our own tasks have just written this.
    return [pickle.loads(results[i]) for i in range(len(items))]  # noqa: S301


def _pickled(work: Callable[[str], object], number: int, item: str) -> Iterator[Row]:
    yield (number, pickle.dumps(work(item)))


@contextmanager
def executors_errors() -> Iterator[None]:
    """Raise SparkUnavailableError if the executors' Python lacks the package or its version.

    Raises DriverLostError if tasks stopped because another program removed the file that permits
    them to write (:mod:`secure_bloom.storage.write_permit`).
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PythonException

    try:
        yield
    except (PythonException, Py4JJavaError) as error:
        text = str(error)
        if RunEnded.__name__ in text:
            raise DriverLostError(
                "another program removed the file .call-ID.secure-bloom that this call keeps in "
                "the folder while it runs, so its tasks have stopped",
                hint="run again when nothing else removes files there; finished files keep "
                "their changes",
            ) from None
        lacks = re.search(rf"ImportError: {_UNFIT}(.*)", text)
        if lacks is None:
            raise
        # Spark's traceback, of four attempts, says no more than this sentence.
        raise _unfit(lacks[1]) from None


def _unfit(lacks: str) -> SparkUnavailableError:
    module = re.search(r"the module (\w+)", lacks)
    wanted = "install the driver's version there" if module is None else _install(module[1])
    return SparkUnavailableError(
        f"the Python of the executors {lacks}",
        hint=f"{wanted}, or set PYSPARK_PYTHON, before the session starts, to a Python that has it",
    )


def _install(module: str) -> str:
    """Return how to install a module on executors. Some packages have other names than modules."""
    name = module if module in _SAME_NAME else "'secure-bloom[EXTRA]' with the driver's extras"
    return f"install it there, pip install {name}"


#: Modules whose packages have their name.
_SAME_NAME = frozenset({"click", "cryptography", "numpy", "pyarrow"})


def leave_warnings_to_driver() -> None:
    """Turn off this worker's warning of a keyring that others may read. The driver warns."""
    from secure_bloom.encryption.kms import KeyringPermissionWarning

    warnings.simplefilter("ignore", KeyringPermissionWarning)


def freeze_imports() -> None:
    """Hide all objects of this worker from the garbage collector, if it imported new modules.

    Call this at the end of a task. After each task PySpark collects garbage among everything that
    was ever imported, which takes 40 to 100 ms. Frozen objects are still freed with their last
    reference.
    """
    modules = len(sys.modules)
    if modules not in _frozen_with:
        # Frozen garbage would stay for ever.
        gc.collect()
        gc.freeze()
        _frozen_with.add(modules)


#: The cost of opening a file, in bytes of work on one.
OPENING = 512 * 1024
#: Tasks of a core: the last ones even out what the first ones took longer.
_OF_A_CORE = 3
#: Bytes that are worth a task of their own, where each core has one already.
_LEAST = 16 * 1024 * 1024
#: A job has a task for each 250 files, up to 64 tasks: a cluster may get more cores meanwhile.
_SOME, _TASKS = 250, 64
#: The most of a task, because a lost task is done again as a whole.
_MOST_FILES, _MOST_BYTES = 1000, 16 * 1024**3


def task_count(files: int, size: int, cores: int) -> int:
    """Return the number of tasks for ``files`` files of ``size`` bytes together.

    There are no fewer tasks than cores, unless there are fewer files.
    """
    work = size + files * OPENING
    even = max(cores, min(_OF_A_CORE * cores, work // _LEAST))
    bounds = (min(_TASKS, files // _SOME), -(-files // _MOST_FILES), -(-work // _MOST_BYTES))
    return min(files, max(even, *bounds))


def plan_tasks(sizes: Sequence[int], cores: int) -> list[list[int]]:
    """Return the files of each task, by their indexes in ``sizes``."""
    return evenly(sizes, task_count(len(sizes), sum(sizes), cores))


def evenly(sizes: Sequence[int], tasks: int) -> list[list[int]]:
    """Return ``tasks`` tasks of about equal bytes, the largest one first.

    Each file in turn, the largest one first, goes to the task that has the fewest bytes.  No task
    then has more than 4/3 of the bytes of the best plan's largest task (Graham's LPT rule).
    """
    # Of equally full tasks the first one is taken: equal files are dealt out in their order.
    filled: list[tuple[int, int, list[int]]] = [(0, task, []) for task in range(tasks)]
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        work, task, places = filled[0]
        places.append(place)
        heapq.heapreplace(filled, (work + sizes[place] + OPENING, task, places))
    filled.sort(key=lambda entry: (-entry[0], entry[1]))
    return [sorted(places) for _, _, places in filled if places]


_SEED = 42
_BITS = 0xFFFFFFFF


@functools.lru_cache(maxsize=16)
def shuffle_keys(partitions: int) -> tuple[int, ...]:
    """Return one key for each of ``partitions`` partitions."""
    found: dict[int, int] = {}
    key = 0
    while len(found) < partitions:
        found.setdefault(hash_of_int(key) % partitions, key)
        key += 1
    return tuple(found[partition] for partition in range(partitions))


def hash_of_int(value: int) -> int:
    """Return what Spark's `hash(value)` of an INT returns: signed, 32 bits."""
    word = _rotated(value * 0xCC9E2D51 & _BITS, 15) * 0x1B873593 & _BITS
    mixed = _rotated(_SEED ^ word, 13) * 5 + 0xE6546B64 & _BITS
    mixed ^= 4  # the length of an INT in bytes
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _BITS
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _BITS
    mixed ^= mixed >> 16
    return mixed - (mixed >> 31 << 32)


def _rotated(word: int, bits: int) -> int:
    return word << bits & _BITS | word >> 32 - bits
