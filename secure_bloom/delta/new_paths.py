"""The path of a file that replaces another one in a table: a generated name beside the old one.

    day=1/part-0.snappy.parquet  ->  day=1/part-0.snappy.sb-<run>.parquet

Paths are as the log has them: URIs relative to the table's folder, percent-encoded.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from secure_bloom.adding.new_files import is_marked, marked_name

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def is_of_run(path: str, run: str) -> bool:
    """Return whether a path of the log has the name of a file that this run writes in the table."""
    parts = unquote(path).split("/")
    is_inside = _SCHEME.match(path) is None and not {"", ".", ".."} & {*parts}
    # Files whose paths pass are removed, so both must hold.
    return is_inside and is_marked(parts[-1], run)


def new_path(path: str, run: str) -> str:
    """Return the path, for the log, of the file that replaces ``path``.

    A file of another table, which a shallow clone names by its full path, is replaced by a file in
    this table's own folder. The VACUUM of the other table would remove a file in that table.
    """
    is_elsewhere = path.startswith("/") or _SCHEME.match(path) is not None
    folder, slash, name = path.rpartition("/")
    marked = marked_name(name, run, unique=path)
    # Beside the old file: folders of partitions are no more than names, and engines go by the log.
    return marked if is_elsewhere else f"{folder}{slash}{marked}"
