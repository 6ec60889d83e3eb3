"""Name the new files that a run writes beside a table's old ones, and remove them after errors.

    part-0.snappy.parquet  ->  part-0.snappy.sb-<run>.parquet

The mark shows which run wrote a file, so that a run removes its own files and no others.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterable
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


def new_paths(old: Iterable[str], new: Callable[[str, bool], str]) -> dict[str, str]:
    """Return the new path of each old one. No two old paths get one new path.

    ``new`` returns the new path of an old path. Its second argument is whether the name is to be a
    hash of the old path, because another old path has got the same new path.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for path in old:
        place = new(path, False)
        if _as_stored(place) in taken:
            place = new(path, True)
        taken.add(_as_stored(place))
        found[path] = place
    return found


def _as_stored(path: str) -> str:
    """Return a normalized path. It is equal for two paths that any file system treats as one."""
    return unicodedata.normalize("NFC", unquote(path).casefold())


def marked_name(name: str, run: str, *, unique: str, hashed: bool = False) -> str:
    """Return the name of the file that replaces the file ``name``.

    With ``hashed``, or if the name is too long for a file system, it is a hash of ``unique``, the
    whole path of the old file, because two long names may begin alike.
    """
    stem, suffix = _split(_MARK.sub("", name))
    marked = f"{stem}.sb-{run}{suffix}"
    # A log may have the name percent-encoded, the file system has it decoded.
    if not hashed and len(unquote(marked).encode()) <= _NAME_MAX:
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
