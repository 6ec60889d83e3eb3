"""Name the new files that a run writes beside a table's old ones, and remove them after errors.

    part-0.snappy.parquet  ->  part-0.snappy.sb-<run>.parquet

The mark shows which run wrote a file, so that a run removes its own files and no others.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from urllib.parse import unquote

from secure_bloom.errors import MissingPathError
from secure_bloom.parquet.key_material_files import key_material_name
from secure_bloom.storage import DATA_SUFFIXES, is_object_uri, name_of, sibling
from secure_bloom.storage.dispatch import remove_file
from secure_bloom.storage.staged_file import temporary_name

_RUN = re.compile(r"[0-9a-f]{16}")
#: The mark of an earlier run, which the next one replaces.
_MARK = re.compile(r"\.sb-[0-9a-f]{16}(?=\.|$)")
#: Bytes that names may have on common file systems, and what a key material file adds to one.
_NAME_MAX = 255 - len("_KEY_MATERIAL_FOR_.json")


def new_run() -> str:
    """Return a unique name for one run."""
    return os.urandom(8).hex()


def is_marked(name: str, run: str) -> bool:
    """Return whether a file name carries the mark of this run."""
    return bool(_RUN.fullmatch(run)) and f".sb-{run}." in name


def marked_name(name: str, run: str, *, unique: str) -> str:
    """Return the name of the file that replaces the one called ``name``.

    If that is too long for a file system, it becomes a hash of ``unique``, the whole path of the
    old file, because two long names may begin alike.
    """
    stem, suffix = _split(_MARK.sub("", name))
    marked = f"{stem}.sb-{run}{suffix}"
    # A log may have the name percent-encoded, the file system has it decoded.
    if len(unquote(marked).encode()) <= _NAME_MAX:
        return marked
    return f"part-{hashlib.sha256(unique.encode()).hexdigest()}.sb-{run}{suffix}"


def _split(name: str) -> tuple[str, str]:
    suffix = next((it for it in DATA_SUFFIXES if name.lower().endswith(it)), "")
    stem = name[: len(name) - len(suffix)]
    return stem, name[len(stem) :] or ".parquet"


def remove_new_file(path: str) -> None:
    """Remove a data file that no table names, with its key material and its temporary file."""
    beside = [key_material_name(name_of(path))]
    if not is_object_uri(path):
        beside.append(temporary_name(name_of(path)))
    for one in (*(sibling(path, name) for name in beside), path):
        with suppress(MissingPathError):
            remove_file(one)
