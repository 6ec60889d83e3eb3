"""The path of a file that takes another one's place in a table: a name of ours beside the old one.

    day=1/part-0.snappy.parquet  ->  day=1/part-0.snappy.sb-<run>.parquet

Paths are as the log has them: URIs relative to the table's folder, percent-encoded.
"""

from __future__ import annotations

import hashlib
import os
import re
from urllib.parse import unquote

from secure_bloom.storage import DATA_SUFFIXES

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_RUN = re.compile(r"[0-9a-f]{16}")
#: The mark of an earlier run, which the next one replaces.
_MARK = re.compile(r"\.sb-[0-9a-f]{16}(?=\.|$)")
#: Bytes that names may have on common file systems, and what a key material file adds to one.
_NAME_MAX = 255 - len("_KEY_MATERIAL_FOR_.json")


def new_run() -> str:
    """A name for one run, that no other run has."""
    return os.urandom(8).hex()


def is_of_run(path: str, run: str) -> bool:
    """Whether a path of the log has the name of a file that this run writes, inside the table."""
    parts = unquote(path).split("/")
    is_inside = _SCHEME.match(path) is None and not {"", ".", ".."} & {*parts}
    # Files whose paths pass are removed, so each of the three must hold.
    return bool(_RUN.fullmatch(run)) and is_inside and f".sb-{run}." in parts[-1]


def new_path(path: str, run: str) -> str:
    """The path in the log of the file that takes the place of ``path``.

    A file of another table, which a shallow clone names in full, gets its new place in this table's
    own folder: the VACUUM of the other table would remove it.
    """
    is_elsewhere = path.startswith("/") or _SCHEME.match(path) is not None
    folder, slash, name = path.rpartition("/")
    stem, suffix = _split(_MARK.sub("", name))
    marked = f"{stem}.sb-{run}{suffix}"
    if len(unquote(marked).encode()) > _NAME_MAX:
        # Two long names may begin alike, so the hash of the whole one stands for it.
        marked = f"part-{hashlib.sha256(path.encode()).hexdigest()}.sb-{run}{suffix}"
    # Beside the old file: folders of partitions are no more than names, and engines go by the log.
    return marked if is_elsewhere else f"{folder}{slash}{marked}"


def _split(name: str) -> tuple[str, str]:
    suffix = next((it for it in DATA_SUFFIXES if name.lower().endswith(it)), "")
    stem = name[: len(name) - len(suffix)]
    return stem, name[len(stem) :] or ".parquet"
