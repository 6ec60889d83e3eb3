"""The part of the step that runs in tasks.

A Python worker imports this module and what it needs, and nothing of the driver's part, which would
take each worker half a second more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TypeAlias

from secure_bloom.adding.preflight import Survey, survey_file
from secure_bloom.adding.report import FileAddReport
from secure_bloom.adding.request import FilterRequest
from secure_bloom.adding.rewrite import Rewriter, WriteMode, failed_report
from secure_bloom.encryption.access import Access
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import SecureBloomError
from secure_bloom.spark.package_archive import opened_once
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.tasks import Row
from secure_bloom.storage.store_grants import StoreGrant

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
    }
)


#: The request, its access, and what opens the files of a table.
Shipped: TypeAlias = tuple[FilterRequest, Access, StoreGrant | None]


def rows(report: FileAddReport) -> Iterator[Row]:
    """Yield a file's report as rows."""
    file = asdict(report)
    for filter_ in file.pop("filters") or [{}]:
        fpp = filter_.get("fpp")
        # As people read it in `report.show()`.
        rounded = {} if fpp is None else {"fpp": float(f"{fpp:.3g}")}
        yield REPORT.row({**file, **filter_, **rounded})
        file["notes"] = ()


@opened_once
def _opened(
    shipped: Shipped,
) -> tuple[FilterRequest, KeyResolver, StoreGrant | None]:
    request, access, grant = shipped
    # The grant counts while it is kept here.
    return request, access.checked_resolver(), grant


# If an executor cannot reach the KMS, its files fail and not the whole job: hence two `except`.


def survey(path: str, *, shared: bytes) -> Survey:
    """Check the request against the footer of a file."""
    try:
        request, resolver, _ = _opened(shared)
    except SecureBloomError as error:
        return Survey(path=path, failure=error)
    return survey_file(path, request, resolver)


def rewrite(
    path: str, target: str | None = None, *, shared: bytes, mode: WriteMode
) -> FileAddReport:
    """Add the filters of the request to a file, and return its report."""
    try:
        request, resolver, _ = _opened(shared)
    except SecureBloomError as error:
        return failed_report(path, error)
    return Rewriter(request=request, resolver=resolver, mode=mode).rewrite(path, target=target)
