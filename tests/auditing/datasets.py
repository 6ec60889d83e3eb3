"""Datasets for audits, and the ids that a report has."""

from __future__ import annotations

from pathlib import Path

import secure_bloom as sb
from testing.tables import Mode, customers, write


def ids(report: sb.findings.AuditReport) -> list[str]:
    return [finding.id for finding in report.findings]


def batch(folder: Path, count: int, mode: Mode = Mode.ENCRYPTED, **options: object) -> None:
    for i in range(count):
        write(folder / f"part-{i}.parquet", customers(30, i), mode, **options)
