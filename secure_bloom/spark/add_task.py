"""Functions for tasks that add filters: the rows of a report, and the survey of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from secure_bloom.adding.preflight import Survey, survey_file
from secure_bloom.adding.report import FileAddReport
from secure_bloom.adding.rewrite import Rewriter
from secure_bloom.errors import SecureBloomError
from secure_bloom.spark.file_task import opened
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.tasks import Row

_FILTER = {
    "row_group": "int",
    "column": "string",
    "action": "string",
    "reason": "string",
    "source": "string",
    "values": "long",
    "bytes": "long",
    "fpp_requested": "double",
    "fpp": "double",
    "encrypted": "boolean",
    "key": "string",
}
#: The columns of a report that are null for a file without filters.
FILTER_FIELDS = tuple(_FILTER)
REPORT = RowSchema(
    {
        "path": "string",
        "status": "string",
        **_FILTER,
        "bytes_before": "long",
        "bytes_after": "long",
        "seconds": "double",
        "error": "string",
        "hint": "string",
        "causes": "array<string>",
        "notes": "array<string>",
        "dry_run": "boolean",
        "new_path": "string",
    }
)


def rows(report: FileAddReport, *, dry_run: bool) -> Iterator[Row]:
    """Yield a file's report as rows."""
    file = asdict(report)
    for filter_ in file.pop("filters") or [{}]:
        fpp = filter_.get("fpp")
        # As people read it in `report.show()`.
        rounded = {} if fpp is None else {"fpp": float(f"{fpp:.3g}")}
        yield REPORT.row({**file, **filter_, **rounded, "dry_run": dry_run})
        file["notes"] = ()


def survey(path: str, *, shared: bytes) -> Survey:
    """Check the request against the footer of a file."""
    try:
        work: Rewriter = opened(shared)[0]
    except SecureBloomError as error:
        # An executor that cannot reach the KMS fails its files, not the whole job.
        return Survey(path=path, failure=error)
    return survey_file(path, work.request, work.resolver)
