"""Rows of encrypted tables through their filters: prune, decrypt, explain.

What is asked (predicates, structures, texts) is used by others too, so the reader with its pyarrow
is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from secure_bloom.reading.pruning.plans import PlannedFile, ReadPlan
    from secure_bloom.reading.reader import (
        TableRead,
        explain,
        plan_read,
        read_batches,
        read_row_groups,
        read_table,
    )
    from secure_bloom.reading.reports import FileReport, ReadReport

_HOMES = {
    "FileReport": "reports",
    "PlannedFile": "pruning.plans",
    "ReadPlan": "pruning.plans",
    "ReadReport": "reports",
    "TableRead": "reader",
    "explain": "reader",
    "plan_read": "reader",
    "read_batches": "reader",
    "read_row_groups": "reader",
    "read_table": "reader",
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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'secure_bloom.reading' has no attribute {name!r}")
    return getattr(import_module(f"secure_bloom.reading.{_HOMES[name]}"), name)
