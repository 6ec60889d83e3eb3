"""Check a request against footers before any file is written.

A few footers show most errors.  The driver reads them itself where no KMS has to be asked, because
a Spark job takes longer than 32 footers.  All footers are read only to find a column that the few
lack.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from secure_bloom.adding.preflight import (
    Survey,
    check_surveys,
    missing_in_all,
    readable_by_table,
    survey_file,
)
from secure_bloom.adding.request import FilterRequest
from secure_bloom.encryption.access import Access
from secure_bloom.encryption.kms import Keyring
from secure_bloom.encryption.trust import named_by
from secure_bloom.errors import KmsUnavailableError
from secure_bloom.lakes.misspelt_tables import check_tables
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.spark import add_task
from secure_bloom.spark.job_files import JobFiles
from secure_bloom.spark.job_reports import warn_of
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.task_plan import evenly
from secure_bloom.spark.tasks import Row, executors_errors, run_tasks
from secure_bloom.storage import files_at_once

#: Files whose footers are read first.
_FEW = 32
_SURVEYS = RowSchema({"survey": "binary"})
_WITHOUT_ZONE = (
    "a timestamp without a zone (TIMESTAMP_NTZ): Spark's own reader uses no filter of it; "
    'format("secure_bloom") and other readers do'
)

SurveyFile = Callable[[str], Survey]


def check_request(
    files: JobFiles,
    request: FilterRequest,
    access: Access,
    shared: bytes,
    *,
    needs_kms: bool = False,
) -> None:
    """Raise the errors of :func:`check_surveys` for a few files, or for all if necessary.

    ``shared`` is the work of the request as tasks get it.  With ``needs_kms`` also raises
    KmsUnavailableError if no executor reached the KMS for any of the few files: every file would
    fail like these, each after its retries.
    """
    few = files.some(_FEW)
    check_tables(request.guard.policy, files.roots, few)
    survey = partial(add_task.survey, shared=shared)
    surveys = _by_driver(few, request, access)
    if any(found.failure is not None for found in surveys) or not surveys:
        # Executors may have a key or a disk that the driver lacks.
        surveys = run_tasks(files.spark, few, survey, tasks=evenly([0] * len(few), 2))
    if needs_kms:
        _require_kms(surveys)
    if len(few) < files.count and _missing_everywhere(surveys):
        surveys = list(_of_all(files, survey))
    with named_by(request.source):
        check_surveys(surveys)
    for name in dict.fromkeys(name for survey in surveys for name in survey.without_zone):
        warn_of([f"readers: column {name} is {_WITHOUT_ZONE}"])


def _require_kms(surveys: Sequence[Survey]) -> None:
    failures = [survey.failure for survey in surveys]
    first = failures[0] if failures else None
    if isinstance(first, KmsUnavailableError) and all(
        isinstance(failure, KmsUnavailableError) for failure in failures
    ):
        raise KmsUnavailableError(
            f"executors do not reach the KMS of the policy, and no file was changed: "
            f"{first.message}",
            hint="executors ask the KMS themselves: they need its address as the policy names it, "
            f"and a login{'' if first.hint is None else f'; {first.hint}'}",
        ) from None


def _by_driver(few: Sequence[str], request: FilterRequest, access: Access) -> list[Survey]:
    """Return the surveys that the driver makes, or none if they need a KMS.

    Only the executors may be able to reach the KMS.
    """
    if not isinstance(access.key_source(), Keyring | None):
        return []
    survey = partial(survey_file, request=request, resolver=access.resolver())
    return list(in_order(survey, few, files_at_once(few)))


def _of_all(files: JobFiles, survey: SurveyFile) -> Iterator[Survey]:
    """Yield the surveys of all files. The surveys of a task are combined."""
    with executors_errors():
        rows = files.in_tasks(partial(_joined_surveys, survey), _SURVEYS).collect()
    # Safe to unpickle: our own tasks have just written this.
    yield from (pickle.loads(row.survey) for row in rows)  # noqa: S301


def _joined_surveys(survey: SurveyFile, rows: Sequence[Row]) -> Iterator[Row]:
    joined = None
    for (path,) in rows:
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
    tables = readable_by_table(surveys)
    return not tables or any(map(missing_in_all, tables))
