"""Read the rows of encrypted tables through their filters: prune, decrypt, explain.

A name is imported when it is first used, because reading rows loads pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names

if TYPE_CHECKING:
    from secure_bloom.reading.file_reports import FileReadReport
    from secure_bloom.reading.open_table import Table
    from secure_bloom.reading.pruning.plan import PlannedFile, ReadPlan
    from secure_bloom.reading.read_request import Question, ReadRequest, Where
    from secure_bloom.reading.report import ReadReport
    from secure_bloom.reading.table_read import TableRead

_HOMES = {
    "file_reports": ["FileReadReport"],
    "open_table": ["Table"],
    "pruning.plan": ["PlannedFile", "ReadPlan"],
    "read_request": ["Question", "ReadRequest", "Where"],
    "report": ["ReadReport"],
    "table_read": ["TableRead"],
}

__all__ = [
    "FileReadReport",
    "PlannedFile",
    "Question",
    "ReadPlan",
    "ReadReport",
    "ReadRequest",
    "Table",
    "TableRead",
    "Where",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
