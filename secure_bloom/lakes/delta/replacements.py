"""The actions of a commit that replaces old files by new ones.

PROTOCOL.md, "Add File and Remove File": a `remove` and an `add` with `dataChange` false mean that
the same rows are in another file now.  Statistics, partition values, tags and the deletion vector
are kept unchanged, because no row changes its position.  Bounds of columns that are to be secret
are removed from the statistics. An `add` of a file's own path replaces what the log says about the
file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any

from secure_bloom.errors import located
from secure_bloom.lakes.delta.log_bounds import IsSecret, without_bounds

Action = Mapping[str, Any]

#: Fields of an `add` that are in a `remove` too.
_OF_BOTH = (
    "partitionValues",
    "size",
    "stats",
    "tags",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
)
#: Forms that checkpoints have of other fields; a commit has none of them.
_OF_CHECKPOINTS = ("partitionValues_parsed", "stats_parsed")


@cache
def _engine() -> str:
    return f"secure-bloom/{version('secure-bloom')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A live file, by its `add` action, and the new file that is to replace it.

    If the new path is the old one, the file stays, and only the log's entry for it is new.
    """

    old: Action
    path: str
    size: int

    @property
    def is_new_file(self) -> bool:
        """Whether there is a new file."""
        return bool(self.path != self.old["path"])

    @property
    def key(self) -> tuple[str, str | None]:
        """What identifies a file of a table: its path and its deletion vector."""
        return file_key(self.old)

    def actions(self, now: int) -> tuple[Action, ...]:
        """Return the `remove` and the `add`. ``now`` is in milliseconds after 1970."""
        if not self.is_new_file:
            return ({"add": self._add(self.old["modificationTime"])},)
        return {"remove": self._remove(now)}, {"add": self._add(now)}

    def _remove(self, now: int) -> Action:
        return {
            "path": self.old["path"],
            "deletionTimestamp": now,
            "dataChange": False,
            # Without it readers take no notice of the partition values, size and tags that follow.
            "extendedFileMetadata": True,
            # A null field would be a value to some readers, so what the `add` lacks, the `remove`
            # lacks too.
            **{name: self.old[name] for name in _OF_BOTH if self.old.get(name) is not None},
        }

    def _add(self, modified: int) -> Action:
        # Every field of the old `add`, known here or not: a new one of the protocol must not get
        # lost.
        carried = {
            name: value
            for name, value in self.old.items()
            if value is not None and name not in _OF_CHECKPOINTS
        }
        return {
            **carried,
            "path": self.path,
            "size": self.size,
            "modificationTime": modified,
            "dataChange": False,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """How `commitInfo` describes a commit: its name, and the parameters of the call."""

    name: str
    parameters: Mapping[str, str]
    #: Columns whose bounds must not be in the log.
    is_secret: IsSecret | None = None
    #: Found out here, and not when nothing may fail any more.
    engine: str = field(default_factory=_engine)


def without_secret_bounds(add: Action, schema: Action, operation: Operation) -> Action:
    """Return an `add` action without the bounds that this operation removes from the log."""
    if operation.is_secret is None:
        return add
    with located(path=add["path"]):
        stats = without_bounds(add, schema, operation.is_secret)
    return add if stats == add.get("stats") else {**add, "stats": stats}


def file_key(add: Action) -> tuple[str, str | None]:
    """Return what identifies a file of a table: its path and its deletion vector."""
    vector = add.get("deletionVector")
    if not vector:
        return add["path"], None
    # The protocol's `uniqueId` of a vector, whose file may hold the vectors of many data files.
    offset = vector.get("offset")
    end = "" if offset is None else f"@{offset}"
    return add["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}{end}"


def metrics(replacements: Iterable[Replacement]) -> dict[str, str]:
    """Return the ``operationMetrics`` as texts, as every engine writes them."""
    every = list(replacements)
    new = [it for it in every if it.is_new_file]
    restated = len(every) - len(new)
    return {
        "numAddedFiles": str(len(new)),
        "numRemovedFiles": str(len(new)),
        "numAddedBytes": str(sum(it.size for it in new)),
        "numRemovedBytes": str(sum(it.old["size"] for it in new)),
        **({"numUpdatedStatistics": str(restated)} if restated else {}),
    }


def commit_info(
    operation: Operation,
    replacements: Iterable[Replacement],
    *,
    now: int,
    read_version: int,
    transaction: str,
    in_commit_timestamp: int | None,
) -> Action:
    """Return the `commitInfo` action, which says who made the commit, and how.

    It is the first action of a commit, as tables with in-commit timestamps require.
    """
    stamp = {} if in_commit_timestamp is None else {"inCommitTimestamp": in_commit_timestamp}
    return {
        "commitInfo": {
            **stamp,
            "timestamp": now if in_commit_timestamp is None else in_commit_timestamp,
            "operation": operation.name,
            "operationParameters": dict(operation.parameters),
            "readVersion": read_version,
            # Delta's own commits say so if they change no data.
            "isolationLevel": "SnapshotIsolation",
            # Files were read: a blind append would let other writers pass this commit over when
            # they check for conflicts.
            "isBlindAppend": False,
            "operationMetrics": metrics(replacements),
            "engineInfo": operation.engine,
            "txnId": transaction,
        }
    }


def encode(actions: Iterable[Action]) -> bytes:
    """Return the content of a commit: one action on each line."""
    lines = (json.dumps(action, separators=(",", ":"), ensure_ascii=False) for action in actions)
    return "".join(f"{line}\n" for line in lines).encode()


def now_ms() -> int:
    """Return the current time in milliseconds after 1970."""
    return time.time_ns() // 1_000_000
