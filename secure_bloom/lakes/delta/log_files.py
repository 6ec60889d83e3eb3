"""Sort the files of a Delta log by their names, and find the files that make up one version.

    00000000000000000042.json                            commit
    00000000000000000040.00000000000000000042.compacted.json
    00000000000000000040.checkpoint.parquet              also .checkpoint.UUID.parquet|json
    00000000000000000040.checkpoint.0000000001.0000000002.parquet

Paths in a log are percent-encoded, and mostly relative to the table's folder: :func:`resolve`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError
from secure_bloom.storage import below, is_object_uri, join, local_path
from secure_bloom.storage.paths import absolute_path, object_uri

LOG_FOLDER = "_delta_log"
#: The folder below the log for parts of a checkpoint that only names them.
SIDECAR_FOLDER = "_sidecars"

_COMMIT = re.compile(r"(\d{20})\.json")
_COMPACTED = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint\.(?:(\d{10})\.(\d{10})\.parquet|[0-9a-fA-F-]+\.(?:json|parquet)|parquet)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFiles:
    """The names of a log's files: commits and complete checkpoints by version."""

    commits: Mapping[int, str]
    checkpoints: Mapping[int, tuple[str, ...]]
    compacted: Mapping[int, tuple[tuple[int, str], ...]]

    @property
    def latest(self) -> int:
        """The last version. Raises FormatError for a log without commits and checkpoints."""
        versions = [*self.commits, *self.checkpoints]
        if not versions:
            raise FormatError("the table's log has neither a commit nor a checkpoint")
        return max(versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """The files to read for one version: the parts of a checkpoint, then commits, oldest first."""

    version: int
    checkpoint: tuple[str, ...]
    commits: tuple[str, ...]


def sort_names(names: Iterable[str]) -> LogFiles:
    """Sort the names in the folder of a log by their kinds. Other names are left out."""
    commits: dict[int, str] = {}
    compacted: dict[int, list[tuple[int, str]]] = defaultdict(list)
    parts: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for name in sorted(names):
        if found := _COMMIT.fullmatch(name):
            commits[int(found[1])] = name
        elif found := _COMPACTED.fullmatch(name):
            compacted[int(found[1])].append((int(found[2]), name))
        elif found := _CHECKPOINT.fullmatch(name):
            parts[int(found[1])].append((int(found[2] or 1), int(found[3] or 1), name))
    complete = {version: _complete(some) for version, some in parts.items()}
    return LogFiles(
        commits=commits,
        checkpoints={version: names for version, names in complete.items() if names},
        compacted={start: tuple(ends) for start, ends in compacted.items()},
    )


def _complete(parts: Iterable[tuple[int, int, str]]) -> tuple[str, ...]:
    """Return the names of one complete checkpoint among these parts.

    Several writers may each have written a complete checkpoint of the version.
    """
    by_count: dict[int, dict[int, str]] = defaultdict(dict)
    for part, of, name in parts:
        by_count[of].setdefault(part, name)
    # Fewest parts first: whichever of several checkpoints is complete says the same.
    for of, found in sorted(by_count.items()):
        # A count from a name may be huge: nothing of its size is built.
        if len(found) == of and max(found) == of and min(found) == 1:
            return tuple(found[part] for part in sorted(found))
    return ()


def segment(files: LogFiles, version: int | None) -> LogSegment:
    """Return the files to read for ``version``, by default the latest.

    Raises PolicyError for a version that the log does not have, or no longer has.
    """
    last = files.latest if version is None else version
    if last not in files.commits and last not in files.checkpoints:
        raise PolicyError(
            f"the table has no version {last}", hint=f"its latest version is {files.latest}"
        )
    start = max((v for v in files.checkpoints if v <= last), default=None)
    commits: list[str] = []
    wanted = 0 if start is None else start + 1
    while wanted <= last:
        end, name = _step(files, wanted, last)
        commits.append(name)
        wanted = end + 1
    checkpoint = () if start is None else files.checkpoints[start]
    return LogSegment(version=last, checkpoint=checkpoint, commits=tuple(commits))


def _step(files: LogFiles, wanted: int, last: int) -> tuple[int, str]:
    """Return the last version that the next file to read covers, and the name of that file.

    The file begins at version ``wanted``: the longest compacted file, or else the commit. The
    commit ``last`` is always read from its own file, because compacted files lack its time.
    """
    runs = [run for run in files.compacted.get(wanted, ()) if wanted < run[0] < last]
    if runs:
        return max(runs)
    if wanted not in files.commits:
        raise PolicyError(
            f"commit {wanted} of the table's log is gone, and version {last} needs it",
            hint="logs are cleaned up after a time; ask for a later version",
        )
    return wanted, files.commits[wanted]


_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")
_NO_NAMES = frozenset({"", ".", ".."})


def resolve(folder: str, path: str) -> str:
    """Return the path or URI that opens what a log in ``folder`` calls ``path``.

    The result is the same whether the log names the file relative to the table's folder or by its
    whole path.
    """
    if not _ABSOLUTE.match(path):
        return join(folder, _inside(unquote(path)))
    return _object(folder, path) if is_object_uri(folder) else _local(folder, path)


def _inside(path: str) -> str:
    if "\0" in path or not _NO_NAMES.isdisjoint(path.split("/")):
        raise FormatError("the log names a file by a path that leads out of the table's folder")
    return path


def _local(folder: str, path: str) -> str:
    """Return the path of a local file that the log of a shallow clone names by its whole path."""
    if not path.startswith("/") and not path.lower().startswith("file:/"):
        raise UnsupportedFeatureError("the log of a local table names a file that is not local")
    found = unquote(path) if path.startswith("/") else local_path(path)
    _inside(found[1:])
    inside = below(found, absolute_path(folder))
    return found if inside is None else join(folder, inside)


def _object(folder: str, path: str) -> str:
    """Return the URI of an object that the log names with its bucket, in the table's own form."""
    if not is_object_uri(path):
        raise UnsupportedFeatureError("the log of a table in an object store names no object")
    table, named = object_uri(folder), object_uri(path)
    # Opened with the table's credentials: a log must not lead a reader to another bucket.
    if table.kind is not named.kind or table.authority != named.authority:
        raise UnsupportedFeatureError("the log names a file in another bucket or store")
    # In the table's own spelling of the store, so that a file has one path and s3a equals s3.
    return str(table.at(_inside(unquote(named.key))))
