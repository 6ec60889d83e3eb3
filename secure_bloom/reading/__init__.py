"""Read the rows of encrypted tables through their filters: prune, decrypt, explain.

A name is imported when it is first used, because the reader imports pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names

if TYPE_CHECKING:
    from secure_bloom.reading.file_reports import FileReadReport
    from secure_bloom.reading.pruning.plan import PlannedFile, ReadPlan
    from secure_bloom.reading.read import (
        explain,
        plan_read,
        read_batches,
        read_row_groups,
        read_table,
    )
    from secure_bloom.reading.read_request import ReadRequest, Where
    from secure_bloom.reading.report import ReadReport
    from secure_bloom.reading.table_read import TableRead

_HOMES = {
    "file_reports": ["FileReadReport"],
    "pruning.plan": ["PlannedFile", "ReadPlan"],
    "read": [
        "explain",
        "plan_read",
        "read_batches",
        "read_row_groups",
        "read_table",
    ],
    "read_request": ["ReadRequest", "Where"],
    "report": ["ReadReport"],
    "table_read": ["TableRead"],
}

__all__ = [
    "FileReadReport",
    "PlannedFile",
    "ReadPlan",
    "ReadReport",
    "ReadRequest",
    "TableRead",
    "Where",
    "explain",
    "plan_read",
    "read_batches",
    "read_row_groups",
    "read_table",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
