"""Check of what the log of a table shows: bounds of sensitive columns, and values of partitions.

Logs are in clear, and whoever writes them knows nothing of the files' encryption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules.leak_rules import TABLE_LOG_IN_CLEAR
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.tables import Snapshot, TableListing
from secure_bloom.tables.log_bounds import bounded_columns
from secure_bloom.text import counted


def check_table_logs(tables: TableListing, policy: KeyPolicy) -> Iterator[Finding]:
    """One finding for each table and sensitive column that its log tells of."""
    for table in tables.snapshots:
        partitions = table.metadata.partition_columns if table.files else ()
        yield from _findings(table.folder, _bounds_in_delta_log(table), partitions, policy)
    for metadata in tables.iceberg:
        shown, partitions = metadata.files_with_bounds, metadata.partition_columns
        yield from _findings(metadata.path, shown, partitions, policy)


def _findings(
    path: str, files_with_bounds: Mapping[str, int], partitions: tuple[str, ...], policy: KeyPolicy
) -> Iterator[Finding]:
    for column in partitions:
        if policy.key_for(column) is not None:
            yield TABLE_LOG_IN_CLEAR.finding(
                "the log shows the column's values, which partition the table",
                path=path,
                column=column,
            )
    for column, files in sorted(files_with_bounds.items()):
        if policy.key_for(column) is not None:
            yield TABLE_LOG_IN_CLEAR.finding(
                "the log shows the column's smallest and largest values in "
                f"{counted(files, 'file')}",
                path=path,
                column=column,
            )


def _bounds_in_delta_log(table: Snapshot) -> Mapping[str, int]:
    """The columns with bounds in the log, and in how many of the live files' entries."""
    columns = (bounded_columns(file.add, table.metadata.schema) for file in table.files)
    return Counter(".".join(path) for paths in columns for path in paths)
