"""Read the logs of tables, which say which files are live, so that verbs read only live files.

    table_listing    the files that the paths of a verb mean, and the tables among them
    delta/snapshot   the state of a Delta table, by the rules of Delta's PROTOCOL.md
    iceberg/table    the state of an Iceberg table, from its metadata and manifests
    streaming_sink   the log of Spark's file sink
    live_file        what a log says of one file

The order of calls; readers of logs are imported when a table with a log is found::

    listing = list_tables(["out/"], TableVersion(version=3))
    paths, tables = listing.paths, listing.tables
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names

if TYPE_CHECKING:
    from secure_bloom.lakes.delta.names import column_names
    from secure_bloom.lakes.delta.snapshot import snapshot
    from secure_bloom.lakes.iceberg.catalog import is_in_catalog
    from secure_bloom.lakes.live_file import (
        DeletionVector,
        LiveFile,
        Protocol,
        Snapshot,
        TableMetadata,
        TableVersion,
    )
    from secure_bloom.lakes.table_listing import TableListing, list_tables

_HOMES = {
    "delta.names": ["column_names"],
    "delta.snapshot": ["snapshot"],
    "iceberg.catalog": ["is_in_catalog"],
    "live_file": [
        "DeletionVector",
        "LiveFile",
        "Protocol",
        "Snapshot",
        "TableMetadata",
        "TableVersion",
    ],
    "table_listing": ["TableListing", "list_tables"],
}

__all__ = [
    "DeletionVector",
    "LiveFile",
    "Protocol",
    "Snapshot",
    "TableListing",
    "TableMetadata",
    "TableVersion",
    "column_names",
    "is_in_catalog",
    "list_tables",
    "snapshot",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
