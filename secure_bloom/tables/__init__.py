"""Tables whose own log says which files live: read, so that verbs look at live files alone.

The door for a Delta table is :func:`snapshot`.  The rules are those of Delta's PROTOCOL.md.
"""

from secure_bloom.tables.delta_snapshot import snapshot
from secure_bloom.tables.live_file import (
    DeletionVector,
    LiveFile,
    Protocol,
    Snapshot,
    TableMetadata,
)

__all__ = [
    "DeletionVector",
    "LiveFile",
    "Protocol",
    "Snapshot",
    "TableMetadata",
    "snapshot",
]
