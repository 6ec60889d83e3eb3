"""Hold a request against footers before any file is written.

A few footers tell of most mistakes.  All are read only for a column that none of those has.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from secure_bloom.adding.preflight import Survey, check_surveys
from secure_bloom.spark.job_files import JobFiles
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.tasks import Row, executors_errors, in_tasks, run_tasks, task_count

#: Files whose footers are read first, and in how many tasks: a task costs more than ten footers.
_FEW, _FEW_TASKS = 32, 2


_SURVEYS = RowSchema({"survey": "binary"})


SurveyFile = Callable[[str], Survey]


def check_request(files: JobFiles, survey: SurveyFile) -> None:
    """Raise what :func:`check_surveys` raises, of a few files, or of all where it takes them."""
    few = files.some(_FEW)
    surveys = run_tasks(files.spark, few, survey, tasks=min(len(few), _FEW_TASKS))
    if len(few) < files.count and _missing_everywhere(surveys):
        surveys = list(_of_all(files, survey))
    check_surveys(surveys)


def _of_all(files: JobFiles, survey: SurveyFile) -> Iterator[Survey]:
    """Yield the surveys of all files, those of a task as one."""
    from pyspark.sql import functions as f

    tasks = task_count(files.spark, files.count)
    shares = files.rows(tasks).groupBy(f.spark_partition_id()).agg(f.collect_list("path"))
    paths = shares.toDF("task", "paths").select("paths").repartition(tasks)
    with executors_errors():
        rows = in_tasks(paths, partial(_joined_surveys, survey), _SURVEYS).collect()
    # Safe to unpickle: our own tasks have just written this.
    yield from (pickle.loads(row.survey) for row in rows)  # noqa: S301


def _joined_surveys(survey: SurveyFile, paths: Sequence[str]) -> Iterator[Row]:
    joined = None
    for path in paths:
        found = survey(path)
        if found.refusal is not None:
            joined = found
            break
        if found.failure is None:
            joined = found if joined is None else _joined(joined, found)
    if joined is not None:
        yield (pickle.dumps(joined),)


def _joined(one: Survey, other: Survey) -> Survey:
    missing = tuple(name for name in one.missing if name in other.missing)
    return replace(one, missing=missing, columns=tuple(dict.fromkeys(one.columns + other.columns)))


def _missing_everywhere(surveys: Iterable[Survey]) -> bool:
    missing = [set(survey.missing) for survey in surveys if survey.failure is None]
    return not missing or bool(set.intersection(*missing))
