"""The one list of the formats of tables. A new format is a class, and its row here.

format = named_format("iceberg://lake/db.t")  # or format_above, by the log in a folder
table = format.list_table(path, TableVersion())
"""

from __future__ import annotations

from typing import Final

from secure_bloom.lakes.delta_tables import DeltaTables
from secure_bloom.lakes.hudi_tables import HudiTables
from secure_bloom.lakes.iceberg_tables import IcebergTables
from secure_bloom.lakes.paimon_tables import PaimonTables
from secure_bloom.lakes.streaming_tables import StreamingTables
from secure_bloom.lakes.table_format import TableFormat

DELTA: Final = DeltaTables()
HUDI: Final = HudiTables()
STREAMING: Final = StreamingTables()
ICEBERG: Final = IcebergTables()
PAIMON: Final = PaimonTables()
#: A folder with logs of several formats is refused by the name of the first.
FORMATS: tuple[TableFormat, ...] = (DELTA, HUDI, STREAMING, ICEBERG, PAIMON)


def named_format(path: str) -> TableFormat | None:
    """Return the format of a table that a path names by itself, or None."""
    # Backwards: the last have schemes of their own, which the others cannot read.
    return next((it for it in reversed(FORMATS) if it.recognizes(path)), None)


def listed_by_log() -> frozenset[TableFormat]:
    """Return the formats whose tables are listed where a folder has their log."""
    return frozenset(it for it in FORMATS if it.is_found_by_log)
