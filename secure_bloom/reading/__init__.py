"""Read the rows of encrypted tables through their filters: prune, decrypt, explain.

    read_request   what is asked: files, version, columns, predicate, limits
    kept_table     an open table: listing, footers, keys and filters, kept for many questions
    table_read     one read: its plan, its rows, its report
    table          the files of a table and their schema under one set of names
    pruning        which row groups, and rows of them, cannot match
    rows           the rows of what is left: decrypted, decoded, filtered

The order of calls, for one read or for many::

    with open_table("out/", keys=keys) as table:
        table.probe("email", ["m@x"])
        rows = table.read(where=[("email", "=", "m@x")])

A name is imported when it is first used, because reading rows loads pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names

if TYPE_CHECKING:
    from secure_bloom.reading.file_reports import FileReadReport
    from secure_bloom.reading.kept_table import Table
    from secure_bloom.reading.pruning.plan import PlannedFile, ReadPlan
    from secure_bloom.reading.read_report import ReadReport
    from secure_bloom.reading.read_request import Question, ReadRequest, Where
    from secure_bloom.reading.table_read import TableRead

_HOMES = {
    "file_reports": ["FileReadReport"],
    "kept_table": ["Table"],
    "pruning.plan": ["PlannedFile", "ReadPlan"],
    "read_request": ["Question", "ReadRequest", "Where"],
    "read_report": ["ReadReport"],
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
