"""Refuse tables with rules that a commit of this package may break.

PROTOCOL.md, "Table Features": a writer that does not know a feature must not write.
"""

from __future__ import annotations

from collections.abc import Mapping

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.tables import Snapshot

#: The newest version of the protocol for writers that is known here.
_NEWEST = 7
#: Features whose rules a commit keeps that moves rows unchanged from one file to another.
_KEPT = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",  # "may rearrange data (i.e. ... dataChange=false)"
        "changeDataFeed",  # no row changes, so there is no change to record
        "checkConstraints",
        "checkpointProtection",  # about removing old log entries
        "clustering",  # the provider and the statistics of a file go along
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "materializePartitionColumns",  # where there are any: see _refuse_bare_partitions
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",  # about VACUUM
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
_CATALOG = "its commits go through a catalog, which would not know of one in the folder"
_ICEBERG = "the Iceberg metadata that its engine writes would go on naming the old files"
_MIRROR = "what its engine writes for readers of these would go on naming the old files"
_ROW_IDS = "a file at a new path needs fresh row ids, which only its engine can give"
_MOVED = "engines look for the table elsewhere, so a commit here would be lost"
#: Features that are known, and why they stop a commit.
_REFUSED = {
    "rowTracking": _ROW_IDS,
    "catalogManaged": _CATALOG,
    "catalogOwned": _CATALOG,
    "catalogOwned-preview": _CATALOG,
    "coordinatedCommits-preview": _CATALOG,
    "managedCommit-preview": _CATALOG,
    "icebergCompatV1": _ICEBERG,
    "icebergCompatV2": _ICEBERG,
    "icebergCompatV3": _ICEBERG,
    "icebergWriterCompatV1": _ICEBERG,
    "icebergWriterCompatV3": _ICEBERG,
    "redirectReaderWriter-preview": _MOVED,
    "redirectWriterOnly-preview": _MOVED,
}
#: Properties of a table that stop a commit, whatever the protocol lists.
_REFUSED_PROPERTIES = {
    "delta.universalFormat.enabledFormats": _MIRROR,
    "delta.compatibility.symlinkFormatManifest.enabled": _MIRROR,
    "delta.enableIcebergCompatV1": _ICEBERG,
    "delta.enableIcebergCompatV2": _ICEBERG,
    "delta.enableIcebergCompatV3": _ICEBERG,
    "delta.enableIcebergWriterCompatV1": _ICEBERG,
    "delta.enableIcebergWriterCompatV3": _ICEBERG,
    "delta.enableRowTracking": _ROW_IDS,
    "delta.coordinatedCommits.commitCoordinator-preview": _CATALOG,
    "delta.redirectReaderWriter-preview": _MOVED,
    "delta.redirectWriterOnly-preview": _MOVED,
}
_STAMPED = "delta.enableInCommitTimestamps"
_BARE_PARTITIONS = "materializePartitionColumns"


def refuse_unwritable(table: Snapshot) -> None:
    """Raise UnsupportedFeatureError for a table with rules that a commit may break."""
    version = table.protocol.min_writer_version
    if not 1 <= version <= _NEWEST:
        raise _refusal(f"it asks writers for version {version} of the protocol", table.folder)
    # Below version 7 there is no list: those versions have only features that are kept here.
    for name in sorted(table.protocol.writer_features):
        if name not in _KEPT:
            reason = _REFUSED.get(name, "this program does not know what that asks of writers")
            raise _refusal(f"it has the table feature {name}: {reason}", table.folder)
    for name, reason in _REFUSED_PROPERTIES.items():
        value = table.metadata.configuration.get(name, "")
        # Not "true" alone: some of these properties hold a list of formats or a description.
        if value.lower() not in ("", "false"):
            raise _refusal(f"it has the property {name}: {reason}", table.folder)
    _refuse_bare_partitions(table)


def _refuse_bare_partitions(table: Snapshot) -> None:
    """Raise an error if each new file must hold the partition columns.

    A copy holds only the columns of the old file.
    """
    if _BARE_PARTITIONS in table.protocol.writer_features and table.metadata.partition_columns:
        raise _refusal(
            f"it has the table feature {_BARE_PARTITIONS}: each new file must hold the partition "
            "columns, which files from before the feature lack",
            table.folder,
        )


def has_in_commit_timestamps(configuration: Mapping[str, str]) -> bool:
    """Return whether each commit must have a timestamp later than that of the commit before."""
    return configuration.get(_STAMPED, "").lower() == "true"


def _refusal(reason: str, path: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"this Delta table is not written to: {reason}",
        hint="reading is not affected; write filters when the table is made, with its "
        "engine's own option, or drop the feature or the property",
        path=path,
    )
