"""The numbers of an audit, for ``reports.prometheus``."""

from __future__ import annotations

import time

from secure_bloom.auditing.findings import AuditReport


def audit_numbers(report: AuditReport, seconds: float) -> dict[str, tuple[float, str]]:
    """Return the numbers of an audit for Prometheus."""
    counts = report.to_dict()["counts"]
    unread = len(report.paths) - len(report.file_columns or ())
    return {
        "files": (report.files, "Files that were checked."),
        "files_unread": (unread, "Files of these that could not be read."),
        "failures": (unread, "Files that could not be read, as files_unread."),
        "files_left_out": (len(report.left_out), "Files that the sample left out."),
        "bytes": (report.bytes, "Bytes of the files that could be read."),
        "filters": (report.filters, "Bloom filters of these files."),
        "columns_checked": (report.columns_checked, "Columns of files that were checked whole."),
        **{
            f'findings{{severity="{severity}"}}': (counts[severity], "Findings that count.")
            for severity in ("critical", "high", "medium", "low", "note")
        },
        "findings_ignored": (counts["ignored"], "Findings that do not count."),
        "seconds": (seconds, "Duration of the audit."),
        "finished_timestamp_seconds": (time.time(), "When the audit ended, in Unix time."),
    }
