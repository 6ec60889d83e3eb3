"""Read the logs of tables, which say which files are live, so that verbs read only live files.

    formats          the one list of formats; `table_format` is their interface
    table_listing    the files that the paths of a verb mean, and the tables among them
    managed_tables   refuses files of tables whose log a verb does not honour
    delta/snapshot   the state of a Delta table, by the rules of Delta's PROTOCOL.md
    iceberg/table    the state of an Iceberg table, from its metadata and manifests
                     (`schema_fields` its columns, `old_metadata` what older metadata files show)
    paimon/table     the state of a Paimon table, from its snapshots and manifests
    streaming_sink   the log of Spark's file sink
    plain_files      the target of files that belong to no table

The order of calls; readers of logs are imported when a table with a log is found::

    listing = list_tables(["out/"], TableVersion(version=3))
    paths, tables = listing.paths, listing.tables
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names

if TYPE_CHECKING:
    from secure_bloom.lakes.delta.actions import column_names
    from secure_bloom.lakes.delta.live_file import (
        DeletionVector,
        LiveFile,
        Protocol,
        Snapshot,
        TableMetadata,
    )
    from secure_bloom.lakes.delta.snapshot import snapshot
    from secure_bloom.lakes.iceberg.catalog import is_in_catalog
    from secure_bloom.lakes.table_format import TableVersion
    from secure_bloom.lakes.table_listing import TableListing, list_tables

_HOMES = {
    "delta.actions": ["column_names"],
    "delta.snapshot": ["snapshot"],
    "iceberg.catalog": ["is_in_catalog"],
    "delta.live_file": [
        "DeletionVector",
        "LiveFile",
        "Protocol",
        "Snapshot",
        "TableMetadata",
    ],
    "table_listing": ["TableListing", "list_tables"],
    "table_format": ["TableVersion"],
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
