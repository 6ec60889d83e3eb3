"""Read a Delta table at one version from its log: a checkpoint, and the commits after it.

A version is also found by a time.  With in-commit timestamps, each commit contains its time.
Otherwise the modification time of the commit's file is used. Where this time is not later than the
time of the version before, the time of the version before plus one millisecond is used, as the
protocol requires of readers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError, located
from secure_bloom.lakes.delta.actions import (
    Action,
    count,
    deletion_vector_of,
    fields_of,
    json_lines,
    metadata_of,
    optional_count,
    protocol_of,
    text,
    text_map,
)
from secure_bloom.lakes.delta.checkpoint import checkpoint_actions, log_actions, read_log_file
from secure_bloom.lakes.delta.live_file import LiveFile, Protocol, Snapshot, TableMetadata
from secure_bloom.lakes.delta.log_files import (
    LOG_FOLDER,
    SIDECAR_FOLDER,
    LogFiles,
    LogSegment,
    resolve,
    segment,
    sort_names,
)
from secure_bloom.lakes.table_format import milliseconds
from secure_bloom.running.memory_budget import DecodedBytes
from secure_bloom.storage import join, local_path, open_input
from secure_bloom.storage.dispatch import tree_of


def snapshot(
    path: str | os.PathLike[str],
    *,
    version: int | None = None,
    timestamp: str | datetime | None = None,
) -> Snapshot | None:
    """Return the Delta table in a folder at a version, by default the latest.

    Return None if the folder is no Delta table.  ``timestamp`` (ISO 8601, UTC without a zone) asks
    for the last version committed until then.  Raises UnsupportedFeatureError, by name, for an
    unknown reader feature.  Raises FormatError for a log that contradicts the protocol, and
    PolicyError for a version that the log does not have.
    """
    folder = local_path(path)
    log = join(folder, LOG_FOLDER)
    tree = tree_of(log)
    if version is not None and timestamp is not None:
        raise PolicyError("a version and a timestamp are given: one is enough")
    if not tree.is_folder(log):
        return None
    with located(path=folder):
        _, names = tree.level(log, sys.maxsize)
        files = sort_names(names or ())
        if timestamp is not None:
            version = version_at(log, files, timestamp)
        wanted = segment(files, version)
        replay = _Replay(folder)
        # Oldest first: later actions take the place of earlier ones (PROTOCOL.md, "Action
        # Reconciliation").
        decoded = DecodedBytes("the table's log")
        replay.take(_checkpoint(log, wanted, decoded))
        for name in wanted.commits:
            replay.take(log_actions(join(log, name), decoded))
        return replay.snapshot(wanted.version)


def _checkpoint(log: str, wanted: LogSegment, decoded: DecodedBytes) -> Iterator[Action]:
    for name in wanted.checkpoint:
        yield from checkpoint_actions(join(log, name), join(log, SIDECAR_FOLDER), decoded)


class _Replay:
    """The state of a table while its actions are read, oldest first."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._protocol: Protocol | None = None
        self._metadata: TableMetadata | None = None
        self._domains: dict[str, str] = {}
        self._commit_time: int | None = None
        #: For each path: its deletion vector, and the newest `add`.
        self._files: dict[str, tuple[str | None, Mapping[str, Any]]] = {}
        self._takers = {
            "add": self._add,
            "remove": self._remove,
            "protocol": self._set_protocol,
            "metaData": self._set_metadata,
            "domainMetadata": self._set_domain,
            "commitInfo": self._set_commit_info,
        }

    def take(self, actions: Iterable[Action]) -> None:
        """Apply the actions of one file of the log."""
        # Only the last file's counts: the commit of the version that is asked for.
        self._commit_time = None
        for action in actions:
            for name in action:
                taker = self._takers.get(name)
                fields = fields_of(action, name) if taker else None
                if taker is not None and fields is not None:
                    taker(fields)

    def snapshot(self, version: int) -> Snapshot:
        """Return the table after the actions applied so far."""
        if self._protocol is None or self._metadata is None:
            raise FormatError("the table's log has no protocol or no metadata")
        refuse_unknown(self._protocol, self._metadata)
        logical = {physical: name for name, physical in self._metadata.physical_names.items()}
        files = [
            _live_file(path, add, logical, self._metadata.partition_columns)
            for path, (_, add) in self._files.items()
        ]
        return Snapshot(
            folder=self._folder,
            version=version,
            protocol=self._protocol,
            metadata=self._metadata,
            domains=self._domains,
            in_commit_timestamp=self._commit_time,
            files=tuple(sorted(files, key=lambda file: file.path)),
        )

    def _key(self, fields: Mapping[str, Any]) -> tuple[str, str | None]:
        # A logical file is a path with its deletion vector: a `remove` that names another vector is
        # of another logical file (PROTOCOL.md, "Add File and Remove File").
        vector = deletion_vector_of(fields)
        path = resolve(self._folder, text(fields, "path"))
        return path, None if vector is None else vector.unique_id

    def _add(self, fields: Mapping[str, Any]) -> None:
        path, vector = self._key(fields)
        self._files[path] = vector, fields

    def _remove(self, fields: Mapping[str, Any]) -> None:
        path, vector = self._key(fields)
        # One commit may replace a file's vector by another, and its order says nothing.
        if path in self._files and self._files[path][0] == vector:
            del self._files[path]

    def _set_protocol(self, fields: Mapping[str, Any]) -> None:
        self._protocol = protocol_of(fields)
        # Under a feature that is not known, all that follows may mean something else.
        if self._metadata is not None:
            refuse_unknown(self._protocol, self._metadata)

    def _set_metadata(self, fields: Mapping[str, Any]) -> None:
        self._metadata = metadata_of(fields)

    def _set_domain(self, fields: Mapping[str, Any]) -> None:
        domain = text(fields, "domain")
        if fields.get("removed") is True:
            self._domains.pop(domain, None)
        else:
            self._domains[domain] = text(fields, "configuration")

    def _set_commit_info(self, fields: Mapping[str, Any]) -> None:
        self._commit_time = optional_count(fields, "inCommitTimestamp")


def _live_file(
    path: str, add: Mapping[str, Any], logical: Mapping[str, str], partitions: Iterable[str]
) -> LiveFile:
    given = text_map(add, "partitionValues")
    values = {logical.get(name, name): value or None for name, value in given.items()}
    missing = [name for name in partitions if name not in values]
    if missing:
        raise FormatError(f"a file of the log has no value of partition column {missing[0]}")
    return LiveFile(
        path=path,
        size=count(add, "size"),
        # An empty text is null in every type, says the protocol.
        partition_values={name: values[name] for name in partitions},
        deletion_vector=deletion_vector_of(add),
        add=add,
    )


_HINT = "read the table with its own engine"


#: Reader features that are honoured here.  Which files live, none of them changes.  Files of other
#: types are promoted as those of bare folders; rows of variants are refused where they are read.
KNOWN = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)


#: Reader versions from this one on list features by name; an older version implies its features.
_FEATURES_FROM = 3


_MAPPING_MODES = frozenset({"none", "name", "id"})


def refuse_unknown(protocol: Protocol, metadata: TableMetadata) -> None:
    """Raise UnsupportedFeatureError, by name, for an unknown feature that readers must know."""
    if protocol.min_reader_version > _FEATURES_FROM:
        raise UnsupportedFeatureError(
            f"the Delta table wants readers of version {protocol.min_reader_version}, "
            f"and {_FEATURES_FROM} is the last one known here",
            hint=_HINT,
        )
    # Only features of readers count: a feature of writers alone changes nothing of what a file
    # means.
    unknown = sorted(protocol.reader_features - KNOWN)
    if unknown:
        raise UnsupportedFeatureError(
            f"the Delta table has the reader feature {', '.join(unknown)}, which is not known here",
            hint=_HINT,
        )
    if metadata.column_mapping_mode not in _MAPPING_MODES:
        raise FormatError(f"delta.columnMapping.mode is {metadata.column_mapping_mode!r}")


_NANOS_PER_MILLI = 1_000_000
#: The first line of a commit mostly fits.
_FIRST_READ = 16 * 1024


def version_at(log: str, files: LogFiles, timestamp: str | datetime) -> int:
    """Return the last version that was committed at or before ``timestamp``.

    Raises PolicyError if there is none.
    """
    wanted = milliseconds(timestamp)
    at = None
    for version, committed in _commit_times(log, files).items():
        if committed > wanted:
            break
        at = version
    if at is None:
        raise PolicyError(
            "the table has no version as old as the timestamp",
            hint="versions that were cleaned up cannot be read",
        )
    return at


def _commit_times(log: str, files: LogFiles) -> Mapping[int, int]:
    """Return the time of each commit in milliseconds after 1970, oldest first."""
    tree = tree_of(log)
    found: dict[int, int] = {}
    last = None
    for version, name in sorted(files.commits.items()):
        path = join(log, name)
        said = in_commit_timestamp(path)
        written = tree.written_ns(path) // _NANOS_PER_MILLI if said is None else said
        # Files of a log that was copied may have any times, and a version is later than the one
        # before.
        last = written if last is None else max(written, last + 1)
        found[version] = last
    return found


def _first_line(path: str) -> bytes:
    """Return the first line of a commit. The whole commit may have megabytes."""
    with open_input(path) as file:
        head = file.read_at(0, min(file.size, _FIRST_READ))
    line, newline, _ = head.partition(b"\n")
    return line if newline or len(head) < _FIRST_READ else read_log_file(path).split(b"\n", 1)[0]


def in_commit_timestamp(path: str) -> int | None:
    """Return the time in a commit's first action, or None."""
    with located(path=path):
        first = next(json_lines(_first_line(path), DecodedBytes("a commit of the log")), {})
        return optional_count(fields_of(first, "commitInfo") or {}, "inCommitTimestamp")
