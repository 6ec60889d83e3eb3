"""Which tables may be written to: those with no rule that a commit of ours could break.

PROTOCOL.md, "Table Features": a writer that does not know a feature must not write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from secure_bloom.errors import UnsupportedFeatureError

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
        "materializePartitionColumns",
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
#: Features that are known, and why they stop a commit.
_REFUSED = {
    "rowTracking": "a file at a new path needs fresh row ids, which only its engine can give",
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
}
_STAMPED = "delta.enableInCommitTimestamps"
_MIRRORED = "delta.universalFormat.enabledFormats"


def refuse_unwritable(
    version: int, features: Iterable[str], configuration: Mapping[str, str], path: str
) -> None:
    """Raise UnsupportedFeatureError for a table with rules that a commit of ours may break."""
    if not 1 <= version <= _NEWEST:
        raise _refusal(f"it asks writers for version {version} of the protocol", path)
    for name in sorted(features):
        if name not in _KEPT:
            reason = _REFUSED.get(name, "it is not known here what that asks of writers")
            raise _refusal(f"it has the table feature {name}: {reason}", path)
    if configuration.get(_MIRRORED):
        raise _refusal(f"it has {_MIRRORED} = {configuration[_MIRRORED]}: {_ICEBERG}", path)


def has_in_commit_timestamps(configuration: Mapping[str, str]) -> bool:
    """Whether each commit must say when it was made, later than the one before."""
    return configuration.get(_STAMPED, "").lower() == "true"


def _refusal(reason: str, path: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"this Delta table is not written to: {reason}",
        hint="reading is not concerned by this; write filters when the table is made, with its "
        "engine's own option, or drop the feature",
        path=path,
    )
