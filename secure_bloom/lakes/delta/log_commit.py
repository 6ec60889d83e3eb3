"""Commit replacements to a table's log: exactly one writer gets each version.

A run reads a version, writes new files, and then tries to write the next version.  If another
writer was first, the run checks again which of the old files are still live, with the same deletion
vector, and tries the version after that.

Tables with rules that a commit of this package may break are refused: a writer that does not know a
feature must not write (PROTOCOL.md, "Table Features").
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from secure_bloom.errors import (
    FileChangedError,
    FormatError,
    MissingPathError,
    UnsupportedFeatureError,
)
from secure_bloom.lakes import Snapshot, snapshot
from secure_bloom.lakes.delta.log_files import LOG_FOLDER
from secure_bloom.lakes.delta.replacements import (
    Operation,
    Replacement,
    commit_info,
    encode,
    file_key,
    now_ms,
    without_secret_bounds,
)
from secure_bloom.lakes.delta.snapshot import in_commit_timestamp
from secure_bloom.storage import join
from secure_bloom.storage.commit_files import is_committed
from secure_bloom.storage.paths import without_links

#: The most times that other writers may be first; each time they have written a version.
_ATTEMPTS = 100
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.5
_UNKNOWN = "look at the table's history; the new files of this run stay until VACUUM"


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The result of a commit: the table after it, and the replacements that it contains.

    ``version`` is None if none of the old files was live any more, and nothing was written.
    """

    table: Snapshot
    version: int | None
    replaced: tuple[Replacement, ...]


def open_table(folder: str) -> Snapshot:
    """Return the latest version of a table.

    Raises an error if this package may not commit to it.
    """
    table = snapshot(folder)
    if table is None:
        raise MissingPathError("there is no Delta table", path=folder)
    refuse_unwritable(table)
    return _with_commit_time(table)


def _with_commit_time(table: Snapshot) -> Snapshot:
    """Return the table with the time of its last commit, if it has in-commit timestamps.

    The next commit must have a later timestamp.
    """
    if not has_in_commit_timestamps(table.metadata.configuration):
        return table
    said = table.in_commit_timestamp
    if said is None:
        # A checkpoint of this version does not say it, but its commit must stay beside it.
        said = in_commit_timestamp(log_file(table.folder, table.version))
    if said is None:
        raise FormatError(
            f"the table has in-commit timestamps, and its version {table.version} has none",
            path=table.folder,
        )
    return replace(table, in_commit_timestamp=said)


def commit(table: Snapshot, replacements: Sequence[Replacement], operation: Operation) -> Committed:
    """Replace each old file that is still live by its new file."""
    # Random, so that equal bytes in the log are our own commit and not another writer's.
    transaction = str(uuid.uuid4())
    pause = _FIRST_PAUSE
    for _ in range(_ATTEMPTS):
        standing = still_live(table, replacements, operation)
        # Nothing is committed for no file: a version without a change would only make others try
        # again.
        if not standing:
            return Committed(table=table, version=None, replaced=())
        content = commit_content(table, standing, operation, transaction)
        if _is_created(table, content):
            return Committed(table=table, version=table.version + 1, replaced=standing)
        # The pause is random: of two writers that were too late together, one tries again earlier.
        time.sleep(pause * (0.5 + secrets.randbelow(1000) / 1000))
        pause = min(2 * pause, _LONGEST_PAUSE)
        # The whole log is read, not only the new commits: one of them may have brought a feature
        # that rules us out.
        table = open_table(table.folder)
    raise FileChangedError(
        f"other writers were first {_ATTEMPTS} times, so nothing was committed",
        hint="run again when fewer programs write to the table",
        path=table.folder,
    )


def still_live(
    table: Snapshot, replacements: Sequence[Replacement], operation: Operation
) -> tuple[Replacement, ...]:
    """Return the replacements whose old file is still live with the same deletion vector.

    Their statistics and tags are taken from the table as it is now.
    """
    live = {file_key(file.add): file.add for file in table.files}
    schema = table.metadata.schema
    return tuple(
        Replacement(
            old=without_secret_bounds(live[it.key], schema, operation), path=it.path, size=it.size
        )
        for it in replacements
        if it.key in live
    )


def commit_content(
    table: Snapshot, replacements: Sequence[Replacement], operation: Operation, transaction: str
) -> bytes:
    """Return the commit that follows ``table``."""
    now = now_ms()
    stamp = _stamp(table, now)
    info = commit_info(
        operation,
        replacements,
        now=now,
        read_version=table.version,
        transaction=transaction,
        in_commit_timestamp=stamp,
    )
    return encode([info, *(action for it in replacements for action in it.actions(now))])


def _stamp(table: Snapshot, now: int) -> int | None:
    """Return the in-commit timestamp of the next commit, or None if the table has none.

    The timestamp is later than that of the last commit, even if the clock shows an earlier time.
    """
    said = table.in_commit_timestamp
    if said is None or not has_in_commit_timestamps(table.metadata.configuration):
        return None
    return max(now, said + 1)


def log_file(folder: str, version: int) -> str:
    """Return the path of a version's commit."""
    # Twenty digits, so that names in a listing are in the order of versions (PROTOCOL.md, "Delta
    # Log Entries").
    return join(join(folder, LOG_FOLDER), f"{version:020d}.json")


def _is_created(table: Snapshot, content: bytes) -> bool:
    """Create the next version. Return False if another writer has created it."""
    path = log_file(table.folder, table.version + 1)
    # A link in place of the log's folder would lead the version elsewhere.
    return is_committed(
        without_links(path, table.folder),
        content,
        like=log_file(table.folder, table.version),
        hint=_UNKNOWN,
    )


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
    """Raise an error if new files must hold the partition columns.

    Copies of old files may lack them.
    """
    if _BARE_PARTITIONS in table.protocol.writer_features and table.metadata.partition_columns:
        raise _refusal(
            f"it has the table feature {_BARE_PARTITIONS}: each new file must hold the partition "
            "columns, which files from before the feature lack",
            table.folder,
        )


def has_in_commit_timestamps(configuration: Mapping[str, str]) -> bool:
    """Return whether each commit must have a later timestamp than the commit before."""
    return configuration.get(_STAMPED, "").lower() == "true"


def _refusal(reason: str, path: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"this Delta table is not written to: {reason}",
        hint="reading is not affected; write filters when the table is made, with its "
        "engine's own option, or drop the feature or the property",
        path=path,
    )
