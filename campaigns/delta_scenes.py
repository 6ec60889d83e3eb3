"""A Delta table: whatever happens, each version's files are there, whole, and none is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import secure_bloom as sb
from secure_bloom.adding.report import AddReport
from secure_bloom.lakes.delta import log_commit
from testing import delta_logs
from testing.tables import KEYRING

#: Name below the folder -> content and permission bits.
Files = dict[str, tuple[bytes, int]]
_MODE = 0o640
_FIRST = f"_delta_log/{0:020}.json"


def table(files: Files) -> Files:
    """A table of one version and one file, which may have key material beside it."""
    size = len(files["x.parquet"][0])
    columns = [delta_logs.column("id"), delta_logs.column("email", "string")]
    add = delta_logs.add("x.parquet", size, stats='{"numRecords":40,"minValues":{"email":"a"}}')
    actions = [*delta_logs.start(*columns), add]
    return {_FIRST: (delta_logs.lines(actions).encode(), _MODE), **files}


def add(folder: Path, fpp: float) -> AddReport:
    """The verb."""
    columns = dict.fromkeys(("email", "id"), sb.BloomFilterOptions(fpp=fpp))
    return sb.add_bloom_filters(str(folder), columns=columns, keys=KEYRING, jobs=1)


@contextmanager
def at_one_moment() -> Iterator[None]:
    """Two runs write the same commit."""
    with mock.patch.object(log_commit, "now_ms", return_value=1_700_000_000_000):
        yield


def lost(files: Mapping[str, bytes]) -> str | None:
    """Which file a version names that is not there, or is of another size."""
    for name, content in files.items():
        if "_delta_log/" not in name or not name.endswith(".json"):
            continue
        folder = name.partition("_delta_log/")[0]
        for action in map(json.loads, content.splitlines()):
            add = action.get("add", {})
            if add and len(files.get(folder + add["path"], b"")) != add["size"]:
                return f"{name} names {add['path']}, which is not there whole"
    return None
