"""Commit replacements through the catalog: exactly one writer gets each state of a branch.

A commit asks for the branch to move from the snapshot that was read to the new one.  If another
writer was faster, the table is read again.  A replacement is dropped if its old file is no longer
live, or if a newer delete file names it.  The rest is tried again, as the table's
``commit.retry.*`` properties say.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import ManifestContent
from pyiceberg.table.snapshots import Snapshot

from secure_bloom.errors import (
    FileChangedError,
    MissingPathError,
    SecureBloomError,
    UnfinishedWriteError,
)
from secure_bloom.lakes.iceberg.catalog import catalog_errors, is_busy, is_denied
from secure_bloom.lakes.iceberg.commit_table import CommitTable, refuse_unwritable
from secure_bloom.lakes.iceberg.kept_entries import KeptEntry
from secure_bloom.lakes.iceberg.live_files import Manifests, paths_with_deleted_rows
from secure_bloom.lakes.iceberg.replacing_snapshot import Changes, SnapshotWriter
from secure_bloom.storage import is_object_uri
from secure_bloom.storage.dispatch import remove_file

#: Exceptions of a catalog that does not have the table.
_GONE: Final = frozenset({"NoSuchTableError", "NoSuchIcebergTableError", "NoSuchNamespaceError"})
#: Exceptions of a catalog that refuses a commit for good.
_REFUSALS: Final = _GONE | frozenset(
    {
        "AccessDeniedError",
        "ForbiddenError",
        "UnauthorizedError",
        "AuthorizationExpiredError",
        "OAuthError",
        "BadRequestError",
    }
)
#: Exceptions of a catalog after which the same commit is tried again.
_CONFLICTS: Final = frozenset({"CommitFailedException", "TooManyRequestsError"})
#: How many seconds our commit is looked for after a refusal: its first request may be under way.
_SETTLING_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCommit:
    """The result of a commit: its snapshot, and the changes that it contains.

    ``snapshot_id`` is None if nothing was left to be committed.
    """

    snapshot_id: int | None
    changes: Changes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Retries:
    """How often and how long a commit is tried: the table's ``commit.retry.*``, in milliseconds."""

    most: int
    first_wait: int
    longest_wait: int
    total: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> _Retries:
        """Return the retries in the table's properties, or Iceberg's defaults."""

        def number(name: str, default: int) -> int:
            text = properties.get(f"commit.retry.{name}", "")
            return int(text) if text.isascii() and text.isdigit() else default

        return cls(
            most=number("num-retries", 4),
            first_wait=number("min-wait-ms", 100),
            longest_wait=number("max-wait-ms", 60_000),
            total=number("total-timeout-ms", 1_800_000),
        )

    def waits(self) -> Iterator[float]:
        """Wait before each retry.

        The time is random, so that two late writers do not collide again.
        """
        ends = time.monotonic() + self.total / 1000
        wait = self.first_wait
        for _ in range(self.most):
            pause = wait / 1000 * (0.5 + secrets.randbelow(1000) / 1000)
            if time.monotonic() + pause > ends:
                return
            time.sleep(pause)
            yield pause
            wait = min(2 * wait, self.longest_wait)


def commit(
    table: CommitTable, manifests: Manifests, base: Snapshot | None, changes: Changes
) -> SnapshotCommit:
    """Replace the old files that are still live and have no new deletes by the new files.

    ``base`` is the snapshot in which the old files were chosen.  Raises FileChangedError if other
    writers were faster every time, and UnfinishedWriteError if it is unknown whether the commit was
    made.
    """
    attempts = _Attempts(table, manifests)
    try:
        return _committed(attempts, base, changes)
    except SecureBloomError as error:
        if attempts.undecided and not isinstance(error, UnfinishedWriteError):
            raise _unknown(table, attempts.undecided[-1], f": {error.message}") from error
        raise


def _committed(attempts: _Attempts, base: Snapshot | None, changes: Changes) -> SnapshotCommit:
    table, manifests = attempts.table, attempts.manifests
    if table.head != base:
        # An earlier commit of the run has looked at the catalog again, where others may have been.
        changes = still_standing(table, manifests, base, changes)
    retries = _Retries.of(table.metadata.properties).waits()
    while True:
        # The id of a snapshot is random, so a snapshot with this id is our own.
        writer = SnapshotWriter(table, manifests, table.metadata.new_snapshot_id(), changes)
        if not writer.changes_anything():
            return SnapshotCommit(snapshot_id=None, changes=changes)
        done = attempts.done_after(writer)
        if done is not None:
            return SnapshotCommit(snapshot_id=done.snapshot_id, changes=done.changes)
        if next(retries, None) is None:
            raise FileChangedError(
                "other writers were faster each time, so nothing was committed",
                hint="run again when fewer programs write to the table, or raise the table's "
                "property commit.retry.num-retries",
                path=table.path,
            )
        # `done_after` has read the table again.
        refuse_unwritable(table)
        changes = still_standing(table, manifests, base, changes)


@dataclass(slots=True)
class _Attempts:
    """The attempts at one commit.

    A layer below the catalog may repeat a request whose first answer was lost. Then a refusal may
    answer the repeated request, while the first one has succeeded or is still under way. So no
    file of an attempt is removed before the table, read again, no longer meets the attempt's
    requirements: then the attempt fails whenever it arrives. An attempt that may still arrive is
    ``undecided``. The next attempt has the same requirements, so the catalog accepts only one of
    them.

    After a refusal (a right, a login, an invalid request) the table is read again for some
    seconds. The refusal is not believed, because nobody knows how long the first request is under
    way. Only a catalog that is a database is believed, because nothing repeats its statements.
    """

    table: CommitTable
    manifests: Manifests
    undecided: list[SnapshotWriter] = field(default_factory=list)

    def done_after(self, writer: SnapshotWriter) -> SnapshotWriter | None:
        """Try to commit once.

        Return the attempt that the table now contains, or None to try again.
        """
        try:
            with catalog_errors(self.table.path):
                requirements, updates = writer.requests()
        except BaseException:
            _remove(self.table, writer)
            raise
        self.undecided.append(writer)
        try:
            self.table.commit(requirements, updates)
        except Exception as exc:
            return self._after(exc, requirements)
        self.undecided.remove(writer)
        self._give_up()
        return writer

    def _after(self, error: Exception, requirements: Sequence[Any]) -> SnapshotWriter | None:
        """Handle a refused attempt.

        Return the attempt that the table contains, or None to try again.
        """
        name = type(error).__name__
        # A store that denies a metadata file is asked before the catalog's own record changes.
        is_refused = name in _REFUSALS or is_denied(error)
        is_certain = is_denied(error) or is_busy(error)
        may_repeat = name in _CONFLICTS or is_busy(error)
        waits = _SETTLING_SECONDS if is_refused and not is_certain else 0
        try:
            found = self._found_within(waits)
        except SecureBloomError as exc:
            # Without the table, or with another one of its name, the attempt never counts.  That it
            # is gone must be the answer to the attempt too: some catalogs hide what they deny.
            is_gone = isinstance(exc, MissingPathError) and (may_repeat or name in _GONE)
            if is_gone or (isinstance(exc, FileChangedError) and (is_refused or may_repeat)):
                self._give_up()
            raise
        if found is not None:
            self.undecided.remove(found)
            self._give_up()
            return found
        if not (is_refused or may_repeat):
            raise _unknown(self.table, self.undecided[-1]) from error
        if not _hold(requirements, self.table):
            self._give_up()
        elif is_certain:
            _remove(self.table, self.undecided.pop())
        if is_refused:
            with catalog_errors(self.table.path):
                raise error
        return None

    def _found_within(self, seconds: float) -> SnapshotWriter | None:
        """Read the table again for some seconds. Return the attempt that it contains, or None."""
        ends = time.monotonic() + seconds
        while True:
            self.table.reload()
            if (found := self._found()) is not None or time.monotonic() >= ends:
                return found
            time.sleep(_LOOK_SECONDS)

    def _found(self) -> SnapshotWriter | None:
        metadata = self.table.metadata
        for writer in self.undecided:
            if metadata.snapshot_by_id(writer.snapshot_id) is not None:
                return writer
        # Another writer may have expired our snapshot already, while our files are live.
        live = self.manifests.live_paths(self.table.head)
        for writer in self.undecided:
            if any(it.new in live for it in writer.changes.replacements):
                return writer
        return None

    def _give_up(self) -> None:
        """Remove the metadata files of all attempts that were not made."""
        while self.undecided:
            _remove(self.table, self.undecided.pop())


def _hold(requirements: Sequence[Any], table: CommitTable) -> bool:
    """Return whether the requirements of a commit are still met by the table."""
    try:
        for requirement in requirements:
            requirement.validate(table.metadata)
    except CommitFailedException:
        return False
    return True


def _unknown(table: CommitTable, writer: SnapshotWriter, why: str = "") -> UnfinishedWriteError:
    return UnfinishedWriteError(
        f"the catalog did not say whether it took the commit of snapshot {writer.snapshot_id}{why}",
        hint="look at the table's snapshots; if that one is not there, the table's own removal of "
        "orphan files takes what this run wrote",
        path=table.path,
    )


def _remove(table: CommitTable, writer: SnapshotWriter) -> None:
    """Remove the metadata files of an attempt that failed."""
    for location in writer.written:
        # One that stays is an orphan file, which the table's own maintenance removes.
        with suppress(Exception):
            if is_object_uri(location):
                table.io.delete(location)
            else:
                remove_file(table.new_path(location))
    writer.written.clear()


def still_standing(
    table: CommitTable, manifests: Manifests, base: Any, changes: Changes
) -> Changes:
    """Return the changes of data files that are still live and have lost no row since ``base``.

    All snapshots since the base are read, because a delete file may have been added and removed
    again.
    """
    live = manifests.live(table.head)
    deletes = {entry.data_file.file_path for entry in manifests.deletes(table.head)}
    known = {entry.data_file.file_path for entry in manifests.deletes(base)}
    new = _deletes_since(table, manifests, base, known)
    lost = paths_with_deleted_rows(new, changes.by_path, manifests)
    standing = tuple(
        it
        for it in changes.replacements
        if (entry := live.get(it.path)) is not None
        and it.path not in lost
        # Another data sequence number: deletes apply to the file otherwise than when it was read.
        and entry.sequence_number == it.old.sequence_number
        # Rows whose deletes are gone are there again, for example after a rollback.
        and (it.deletes is None or {old.data_file.file_path for old in it.deletes.old} <= deletes)
    )
    return replace(
        changes,
        replacements=standing,
        restated=frozenset(
            path
            for path in changes.restated
            if path in live and changes.rewrite.shows(live[path].data_file)
        ),
    )


def _deletes_since(
    table: CommitTable, manifests: Manifests, base: Snapshot | None, known: set[str]
) -> list[KeptEntry]:
    """Return the delete files that snapshots of the branch after ``base`` have added.

    ``known`` are the paths of the delete files that ``base`` has.
    """
    found: dict[str, KeptEntry] = {}
    seen: set[str] = set()
    snapshot = table.head
    while snapshot is not None and snapshot != base:
        for manifest in manifests.of(snapshot, ManifestContent.DELETES):
            if manifest.manifest_path not in seen:
                seen.add(manifest.manifest_path)
                found |= {it.data_file.file_path: it for it in manifests.entries(manifest)}
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.metadata.snapshot_by_id(parent)
    return [entry for path, entry in found.items() if path not in known]
