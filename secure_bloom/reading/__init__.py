"""Rows of encrypted tables through their filters: prune, decrypt, explain.

What is asked (predicates, structures, texts) is used by others too, so the reader with its pyarrow
is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.lazy_names import lazy_names

if TYPE_CHECKING:
    from secure_bloom.reading.pruning.plan import PlannedFile, ReadPlan
    from secure_bloom.reading.read import (
        TableRead,
        explain,
        plan_read,
        read_batches,
        read_row_groups,
        read_table,
    )
    from secure_bloom.reading.report import FileReport, ReadReport

_HOMES = {
    "pruning.plan": ["PlannedFile", "ReadPlan"],
    "read": ["TableRead", "explain", "plan_read", "read_batches", "read_row_groups", "read_table"],
    "report": ["FileReport", "ReadReport"],
}

__all__ = [
    "FileReport",
    "PlannedFile",
    "ReadPlan",
    "ReadReport",
    "TableRead",
    "explain",
    "plan_read",
    "read_batches",
    "read_row_groups",
    "read_table",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
