"""Audit reports made by hand, as audits of real tables give them."""

from __future__ import annotations

from collections.abc import Sequence

from secure_bloom.auditing.findings import AuditReport, Finding, Severity

COLUMNS = ("email", "iban", "national_id", "country")


def finding(
    id_: str = "column-in-clear",
    severity: Severity = Severity.CRITICAL,
    path: str | None = "lake/part-0.parquet",
    column: str | None = "email",
    row_group: int | None = None,
    what: str = "stored in clear, the policy asks for key k_pii",
    fix: str = "write the files anew under the policy, then delete these",
) -> Finding:
    return Finding(
        id=id_,
        severity=severity,
        what=what,
        fix=fix,
        path=path,
        row_group=row_group,
        column=column,
    )


def wrong_key(path: str, column: str = "iban") -> Finding:
    return finding(
        "column-wrong-key",
        Severity.HIGH,
        path,
        column,
        what="encrypted under k_pii, the policy asks for k_finance",
        fix="write the file anew under the policy: whoever has k_pii reads this column",
    )


def filter_missing(path: str, column: str = "email", row_group: int | None = 0) -> Finding:
    return finding(
        "filter-missing",
        Severity.LOW,
        path,
        column,
        row_group,
        what="no Bloom filter, the policy asks for one",
        fix="secure-bloom add PATH --policy FILE",
    )


def filter_in_clear(path: str, column: str = "email", row_group: int | None = 0) -> Finding:
    return finding(
        "filter-in-clear",
        Severity.CRITICAL,
        path,
        column,
        row_group,
        what="the Bloom filter of an encrypted column is in clear: "
        "anybody can ask it whether a value is there",
        fix="secure-bloom add PATH --policy FILE --replace-filters, then delete old copies of the "
        "file",
    )


def statistics_in_clear(path: str, column: str = "email") -> Finding:
    return finding(
        "statistics-in-clear",
        Severity.CRITICAL,
        path,
        column,
        0,
        what="the smallest and the largest value stand in clear in the footer",
        fix="write the file anew with an encrypted footer, or without statistics of this column",
    )


def unchecked(path: str | None, column: str | None = None) -> Finding:
    return finding(
        "unchecked-footer",
        Severity.MEDIUM,
        path,
        column,
        what="the footer is encrypted under k_footer, and that key is not at hand",
        fix="audit with a keyring or KMS that has the footer key",
    )


def small_report() -> AuditReport:
    """Five files, three mistakes; one of the files could not be opened, one mistake is ignored."""
    paths = tuple(f"lake/customers/part-{part:05d}.parquet" for part in range(5))
    return AuditReport(
        findings=(
            filter_in_clear(paths[1]),
            filter_in_clear(paths[1], row_group=1),
            wrong_key(paths[2]),
            filter_missing(paths[2], "country"),
            filter_missing(paths[3], "country"),
            unchecked(paths[4]),
        ),
        ignored=(statistics_in_clear(paths[3], "national_id"),),
        paths=paths,
        columns=COLUMNS,
        columns_checked=16,
    )


def clean_report() -> AuditReport:
    return AuditReport(
        paths=tuple(f"lake/customers/part-{part:05d}.parquet" for part in range(8)),
        columns=COLUMNS,
        columns_checked=32,
    )


def day_paths(days: int, files: int) -> list[str]:
    """``files`` files in each of ``days`` folders."""
    return [
        f"s3://lake/events/dt=2026-{1 + day // 28:02d}-{1 + day % 28:02d}/part-{part:05d}.parquet"
        for day in range(days)
        for part in range(files)
    ]


def large_report(paths: Sequence[str] | None = None) -> AuditReport:
    """10,000 files in 100 days: one mistake in all of them, others in some."""
    paths = day_paths(100, 100) if paths is None else paths
    columns = (*COLUMNS, "phone", "birthday", "address.street", "address.zip", "ip", "device_id")
    findings = [finding(path=path, column="phone", row_group=g) for path in paths for g in (0, 1)]
    findings += [wrong_key(path) for path in paths[1200:1850]]
    findings += [statistics_in_clear(path, "birthday") for path in paths[4000:4010]]
    findings += [filter_missing(path, "device_id") for path in paths[7000:]]
    findings += [filter_missing(path, "ip") for path in paths[9000:]]
    findings += [unchecked(path) for path in paths[5000:5100:3]]
    findings += [filter_in_clear(path) for path in paths[9990:]]
    return AuditReport(
        findings=tuple(findings),
        ignored=tuple(filter_missing(path, "country") for path in paths[:500]),
        paths=tuple(paths),
        columns=columns,
        columns_checked=len(paths) * len(columns) - 340,
    )
