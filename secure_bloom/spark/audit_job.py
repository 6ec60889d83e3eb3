"""Audit on the executors: groups of files in each task, one DataFrame of findings.

The driver checks the policy, the folders, and what only all files together show.  Executors get the
policy and the names of files, and ask the policy's KMS themselves.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from secure_bloom.auditing.audit_plan import AuditOptions, AuditPlan, plan_audit
from secure_bloom.auditing.auditor import conclude, searched_words
from secure_bloom.auditing.checks.subjects import AuditRequest, AuditRun
from secure_bloom.auditing.failures import file_failure
from secure_bloom.auditing.file_audit import FileAudit, audit_file
from secure_bloom.auditing.findings import AuditReport, Severity, audit_numbers
from secure_bloom.calling.arguments import Progress, checked_arguments
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import KmsUnavailableError, UnsupportedFeatureError
from secure_bloom.lakes.output_rules import require_report_file
from secure_bloom.spark.jobs_of_call import task_progress, with_cancelled_jobs
from secure_bloom.spark.package_archive import opened_once, ship, with_shared_storage
from secure_bloom.spark.session import warn_of_other_policy
from secure_bloom.spark.tasks import cores_of, plan_tasks, run_tasks
from secure_bloom.storage.listing import file_sizes
from secure_bloom.storage.output_files import write_metrics
from secure_bloom.storage.paths import Paths, absolute_path, as_paths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: One row per finding.
FINDINGS_SCHEMA = (
    "id string, severity string, path string, row_group int, column string, message string, "
    "fix string, ignored boolean, causes array<string>, table string"
)
_FIELDS = [field.split()[0] for field in FINDINGS_SCHEMA.split(", ")]


@checked_arguments
@with_cancelled_jobs
@with_shared_storage
def audit(
    spark: SparkSession,
    paths: Paths,
    policy: KeyPolicy | str | os.PathLike[str],
    *,
    ignore: Iterable[str] = (),
    severity: Severity | str | None = None,
    sample: int | None = None,
    without_keys: bool = False,
    check_values: bool = False,
    strict: bool = False,
    baseline: str | os.PathLike[str] | None = None,
    metrics: str | os.PathLike[str] | None = None,
    spark_properties: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> DataFrame:
    """Check every Parquet file at ``paths`` against ``policy``, a group of files in each task.

    The executors need this package, and the policy's KMS or keyring file.

    Args:
        spark: The session.
        paths: Files, folders or globs that driver and executors see alike, or names of tables in
            Spark's catalog (``"db.customers"``), or the folder of one Delta table.
        policy: A KeyPolicy, or the path of one.
        ignore: Findings that do not count: texts ``ID`` or ``ID:COLUMN``.
        severity: The lowest severity that counts; by default low.
        sample: Number of files to check, spread evenly. By default all.
        without_keys: Check only what an outsider sees.
        check_values: Read all values of each column that has a filter, and look them up in the
            filter.  Search all files for values of sensitive columns: executors
            search the files of tables, and the driver the other files and all names.  The driver
            and each Python worker read the values of sensitive columns once.  If a column does not
            fit into memory, the driver and each task read its values twice more.
        strict: A column that no rule of the policy names is a finding.
        baseline: An earlier report in JSON, read by the driver. Its findings are ``ignored``.
        metrics: File on the driver for the numbers of the run, for Prometheus' node exporter: files
            that were checked or could not be read, filters, bytes, and findings by severity.
        spark_properties: Properties of a Spark session, which are checked against the policy too.
        progress: Called with the number of files done and the number of all files.
        storage_options: Endpoint and region of S3, as Polars, deltalake and pandas take them.
            Credentials are refused: driver and executors have their own.

    Returns:
        A DataFrame with one row per finding (:data:`FINDINGS_SCHEMA`), empty if all is clean.  It
            holds results, and using it runs nothing again.

    Raises:
        PolicyError: There is nothing to audit: no file, or no readable policy.  Or ``metrics`` is
            no file for numbers.
        SparkUnavailableError: The executors' Python lacks this package.
    """
    started = time.perf_counter()
    numbers_file = None if metrics is None else Path(metrics)
    own_policy = None if isinstance(policy, KeyPolicy) else Path(policy)
    require_report_file(numbers_file, own_policy, None if baseline is None else Path(baseline))
    options = AuditOptions(
        ignore=ignore,
        severity=severity,
        sample=sample,
        without_keys=without_keys,
        check_values=check_values,
        strict=strict,
        baseline=baseline,
        spark_properties=spark_properties,
    )
    plan = _plan(paths, policy, options)
    warn_of_other_policy(spark, None if plan.request is None else plan.request.policy)
    shared = ship((plan.request, plan.files))
    # Without a look at values a large file takes no longer than a small one.
    sizes = file_sizes(plan.files) if check_values else [0] * len(plan.files)
    tasks = plan_tasks(sizes, cores_of(spark))
    groups = [json.dumps([plan.files[place] for place in places]) for places in tasks]
    work = functools.partial(_audit, shared=shared)
    each = [[number] for number in range(len(groups))]
    with task_progress(spark, progress, total=len(plan.files), tasks=len(groups)):
        found = run_tasks(spark, groups, work, tasks=each)
    audited = {file.path: file for group in found for file in _audited(group)}
    words = searched_words(plan.request, plan.keys, plan.files)
    if words is not None:
        # The driver's own search is of other files and of names.
        words = words.narrowed(lambda asked: conclude(plan, (), asked))
    report = conclude(plan, (audited[path] for path in plan.files), words)
    if numbers_file is not None:
        write_metrics(numbers_file, "audit", audit_numbers(report, time.perf_counter() - started))
    return spark.createDataFrame(list(_rows(report)), FINDINGS_SCHEMA)


def _plan(
    paths: Paths, policy: KeyPolicy | str | os.PathLike[str], options: AuditOptions
) -> AuditPlan:
    """Return the plan of the audit with absolute paths, because executors run in other folders."""
    roots = list(map(absolute_path, as_paths(paths)))
    plan = plan_audit(roots, policy, None, options)
    if plan.tables.names:
        raise UnsupportedFeatureError(
            "a Delta table with column mapping is not audited on executors",
            hint="secure-bloom audit and secure_bloom.audit know the names of its columns",
        )
    return replace(
        plan,
        files=tuple(map(absolute_path, plan.files)),
        listed=tuple(map(absolute_path, plan.listed)),
    )


def _rows(report: AuditReport) -> Iterator[tuple[object, ...]]:
    for findings, ignored in (
        (report.findings, False),
        (report.notes, True),
        (report.ignored, True),
    ):
        for finding in findings:
            row = {**finding.to_dict(), "ignored": ignored}
            yield tuple(row[field] for field in _FIELDS)


@opened_once
def _opened(shared: tuple[AuditRequest, Sequence[str]]) -> AuditRun:
    request, files = shared
    keys = request.key_source()
    words = searched_words(request, keys, files)
    return AuditRun(request=request, resolver=KeyResolver(keys), words=words)


def _audit(group: str, *, shared: bytes) -> list[FileAudit] | KmsUnavailableError:
    """Audit some files.

    A KMS outage is returned, not raised, so that the driver can raise it once.
    """
    paths: list[str] = json.loads(group)
    try:
        run = _narrowed(_opened(shared), paths)
        return [_without_words(audit_file(path, run), run) for path in paths]
    except KmsUnavailableError as error:
        return error
    except Exception as error:
        # If an executor cannot make the KMS client, its files are unchecked; the job goes on.
        return [FileAudit(path=path, findings=(file_failure(path, error),)) for path in paths]


def _narrowed(run: AuditRun, paths: Sequence[str]) -> AuditRun:
    """Return the run with an index of only the words that the files at ``paths`` contain.

    If all words fit into memory, the run is returned unchanged.
    """
    if run.words is None:
        return run
    return run.with_words(
        run.words.narrowed(
            lambda asked: [audit_file(path, run.with_words(asked)) for path in paths]
        )
    )


def _without_words(audited: FileAudit, run: AuditRun) -> FileAudit:
    """Return a result without words of sensitive columns, which must stay on the executor.

    They are confirmed here, and become findings without values.
    """
    if run.words is None:
        return audited
    from secure_bloom.auditing.checks.traced_values import (
        confirmed_findings,
        partly_searched,
        unread_values,
    )

    found = confirmed_findings(audited.traced, run.words, audited.findings)
    partly = partly_searched(run.words, audited.path)
    findings = (*audited.findings, *found, *partly)
    unread = unread_values(audited.traced, run.words, findings, audited.path)
    return replace(audited, findings=(*findings, *unread), traced=())


def _audited(found: list[FileAudit] | KmsUnavailableError) -> list[FileAudit]:
    if isinstance(found, KmsUnavailableError):
        raise found
    return found
