"""Paths as a Delta log writes them: percent-encoded, mostly relative to the table's folder."""

from __future__ import annotations

import re
from urllib.parse import unquote

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.storage import below, is_object_uri, join, local_path
from secure_bloom.storage.paths import OBJECT_SCHEMES, absolute_path, object_uri

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
    same = OBJECT_SCHEMES[table.scheme.lower()] == OBJECT_SCHEMES[named.scheme.lower()]
    # Opened with the table's credentials: a log must not lead a reader to another bucket.
    if not same or table.authority != named.authority:
        raise UnsupportedFeatureError("the log names a file in another bucket or store")
    # In the table's own spelling of the store, so that a file has one path and s3a equals s3.
    return str(table.at(_inside(unquote(named.key))))
