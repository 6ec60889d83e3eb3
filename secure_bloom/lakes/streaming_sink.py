"""Read the log of a file sink of Spark Structured Streaming: the files that batches committed.

_spark_metadata/12           v1 | {"path":"file:///t/part-0.parquet","action":"add",...} | ...
_spark_metadata/9.compact    the same, of batch 9 and all before it
"""

from __future__ import annotations

import re
import sys

from secure_bloom.errors import FormatError, UnsupportedFeatureError, located
from secure_bloom.lakes.delta.actions import json_lines, text
from secure_bloom.lakes.delta.checkpoint import read_log_file
from secure_bloom.lakes.delta.log_files import resolve
from secure_bloom.running.memory_budget import DecodedBytes
from secure_bloom.storage import join
from secure_bloom.storage.dispatch import tree_of

LOG_FOLDER = "_spark_metadata"
_BATCH = re.compile(r"(\d{1,18})(\.compact)?")
_VERSION = b"v1"


def committed_files(folder: str) -> tuple[str, ...]:
    """Return the files that the log of the table in ``folder`` names, by path.

    Raises FormatError for a log that is damaged or has a gap, UnsupportedFeatureError for a log of
    another version.
    """
    log = join(folder, LOG_FOLDER)
    with located(path=folder):
        live: set[str] = set()
        decoded = DecodedBytes("the log of the streaming query")
        for name in _batches(tree_of(log).level(log, sys.maxsize)[1] or ()):
            _take(folder, read_log_file(join(log, name)), live, decoded)
    return tuple(sorted(live))


def _batches(names: list[str] | tuple[str, ...]) -> list[str]:
    """Return the names of the last compacted batch and of the batches after it.

    Raises FormatError for a gap.
    """
    batches = {int(m[1]): m[0] for name in names if (m := _BATCH.fullmatch(name)) and not m[2]}
    compacted = {int(m[1]): m[0] for name in names if (m := _BATCH.fullmatch(name)) and m[2]}
    # Batches are counted from 0, so without a compacted one the next is 0.
    start = max(compacted, default=-1)
    later = sorted(batch for batch in batches if batch > start)
    # Files of a batch that is lost would be missing from the table without a word.
    if later != list(range(start + 1, start + 1 + len(later))):
        raise FormatError(f"the log of the streaming query lacks a batch after {start}")
    return [*([compacted[start]] if start in compacted else []), *(batches[n] for n in later)]


def _take(folder: str, data: bytes, live: set[str], decoded: DecodedBytes) -> None:
    version, _, rest = data.partition(b"\n")
    if version.strip() != _VERSION:
        raise UnsupportedFeatureError("the log of the streaming query is not of version v1")
    for entry in json_lines(rest, decoded):
        path, action = resolve(folder, text(entry, "path")), text(entry, "action")
        if action == "add":
            live.add(path)
        elif action == "delete":
            live.discard(path)
        else:
            raise UnsupportedFeatureError("the log of the streaming query has an unknown action")
