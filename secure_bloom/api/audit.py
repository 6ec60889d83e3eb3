"""Audit files: check that every file obeys the policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from os import PathLike

from secure_bloom.adding.request import Keys
from secure_bloom.auditing.audit_plan import AuditOptions, plan_audit
from secure_bloom.auditing.auditor import audit_files
from secure_bloom.auditing.findings import AuditReport, Severity
from secure_bloom.calling.arguments import Progress, checked_arguments
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.lakes import TableVersion
from secure_bloom.storage.paths import Paths
from secure_bloom.storage.storage_options import with_storage_options


@checked_arguments
@with_storage_options
def audit(
    paths: Paths,
    *,
    policy: KeyPolicy | str | PathLike[str],
    keys: Keys | None = None,
    ignore: Iterable[str] = (),
    severity: Severity | str | None = None,
    sample: int | None = None,
    without_keys: bool = False,
    check_values: bool = False,
    strict: bool = False,
    baseline: str | PathLike[str] | None = None,
    spark_properties: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    version: int | None = None,
    timestamp: str | datetime | None = None,
    snapshot: int | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> AuditReport:
    """Check every Parquet file at ``paths`` against ``policy``.

    Only footers, Bloom filters, and bytes to which nothing refers are read.  A file that cannot be
    read or opened is a finding.  A mistake in a policy given by its path is a finding too, and then
    no file is checked.  docs/findings.md lists all findings.

    Args:
        paths: Files, folders, globs or URIs, or one table with a log.
        policy: A KeyPolicy, or the path of one.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        ignore: Findings that do not count: texts ``ID`` or ``ID:COLUMN``.
        severity: The lowest severity that counts; by default low.
        sample: Number of files to check, spread evenly. By default all.
        without_keys: Check only what an outsider sees.
        check_values: Read all values of each column that has a filter, and look them up in the
            filter.  Search all files and names for values of sensitive columns.
        strict: A column that no rule of the policy names is a finding.
        baseline: An earlier report in JSON. Its findings do not count.
        spark_properties: Properties of a Spark session, which are checked against the policy too.
        progress: Called with the number of files done and the number of all files.
        version: Version of a Delta table; by default the latest.
        timestamp: Time (ISO 8601 text or datetime) instead of a version or snapshot.
        snapshot: Id of a snapshot of an Iceberg table; by default the current one.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report; its ``findings`` are empty if every file obeys.

    Raises:
        PolicyError: There is nothing to audit: no file, or no readable policy.
        KmsUnavailableError: The KMS cannot be asked.

    Example:
        >>> sb.audit("out/", policy="keys/policy.toml")
        <AuditReport: 0 findings in 1 file>
    """
    options = AuditOptions(
        ignore=ignore,
        severity=severity,
        sample=sample,
        without_keys=without_keys,
        check_values=check_values,
        strict=strict,
        baseline=baseline,
        spark_properties=spark_properties,
        at=TableVersion(version=version, timestamp=timestamp, snapshot=snapshot),
    )
    return audit_files(plan_audit(paths, policy, keys, options), progress)
