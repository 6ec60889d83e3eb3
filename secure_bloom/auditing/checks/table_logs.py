"""Check of a Delta table's log: it is in clear, and shows what encrypted files hide.

Whoever writes the log knows nothing of the files' encryption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules.leak_rules import TABLE_LOG_IN_CLEAR
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.tables import Snapshot
from secure_bloom.tables.log_bounds import bounded_columns
from secure_bloom.text import counted


def check_table_logs(tables: Iterable[Snapshot], policy: KeyPolicy) -> Iterator[Finding]:
    """One finding for each table and sensitive column whose bounds its log shows."""
    for table in tables:
        shown: Counter[str] = Counter()
        for file in table.files:
            paths = bounded_columns(file.add, table.metadata.schema)
            shown.update(".".join(it) for it in paths if policy.key_for(it) is not None)
        for column, files in sorted(shown.items()):
            yield TABLE_LOG_IN_CLEAR.finding(
                "the log shows the column's smallest and largest values in "
                f"{counted(files, 'file')}",
                path=table.folder,
                column=column,
            )
