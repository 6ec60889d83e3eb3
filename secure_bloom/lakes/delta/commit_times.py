"""Find the times of a Delta table's commits, and the last version at or before a time.

With in-commit timestamps, each commit contains its time. Otherwise the modification time of the
commit's file is used. Where this time is not later than the time of the version before, the time of
the version before plus one millisecond is used, as the protocol requires of readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from secure_bloom.errors import PolicyError, located
from secure_bloom.lakes.delta.actions import fields_of, json_lines, optional_count
from secure_bloom.lakes.delta.checkpoint import read_log_file
from secure_bloom.lakes.delta.log_files import LogFiles
from secure_bloom.lakes.table_format import milliseconds
from secure_bloom.running.memory_budget import DecodedBytes
from secure_bloom.storage import join, open_input
from secure_bloom.storage.dispatch import tree_of

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
