"""Paths and URIs: local or of an object store, and the parts of an object's URI.

    s3://bucket/folder/key?endpoint_override=host:port&scheme=http
    scheme  authority  key           query

Keys are not decoded, as in Spark and the AWS command line: ``%3A`` in a key is three characters.
``file:`` URIs are percent-decoded, as RFC 8089 says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.storage.stores import STORE_OF_SCHEME, ObjectStore
from secure_bloom.storage.table_objects import name_in_catalog, refused_path, table_path

#: pyarrow has 25 connections to a store; with more the requests wait for each other.
_OBJECTS_AT_ONCE = 24
#: Files whose sizes are looked at.
_SAMPLE = 64
#: Also a table of deltalake or pyiceberg, for which types are missing without these packages.
Paths = str | PathLike[str] | Iterable[str | PathLike[str]]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
#: The beginning of the path in a file: URI of Windows.
_DRIVE = re.compile(r"/[A-Za-z]:(/|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectUri:
    """One object or folder of an object store. ``str`` returns the URI as it was written."""

    scheme: str
    authority: str
    key: str
    query: str

    def __str__(self) -> str:
        return self._with(self.scheme, "/" + self.key if self.key else "")

    def store(self) -> str:
        """Return the URI of the whole store for pyarrow: without the key, with the query."""
        return self._with(self.kind.schemes[self.scheme.lower()], "/")

    @property
    def kind(self) -> ObjectStore:
        """The kind of store that the URI's scheme names."""
        return STORE_OF_SCHEME[self.scheme.lower()]

    def option(self, name: str) -> str | None:
        """Return the last value of a setting in the query, or None."""
        values = parse_qs(self.query).get(name)
        return values[-1] if values else None

    def at(self, key: str) -> ObjectUri:
        """Return the URI of another key in the store."""
        return replace(self, key=key)

    def _with(self, scheme: str, path: str) -> str:
        query = "?" + self.query if self.query else ""
        return f"{scheme}://{self.authority}{path}{query}"


def is_object_uri(path: str) -> bool:
    """Return whether the path is in an object store.

    Raises an error for a scheme that this package cannot read.
    """
    scheme = _SCHEME.match(path)
    if scheme is None or scheme[1].lower() == "file":
        return False
    if scheme[1].lower() not in STORE_OF_SCHEME:
        known = ", ".join(f"{name}://" for name in STORE_OF_SCHEME)
        raise UnsupportedFeatureError(
            f"no way to read {scheme[0]} paths", hint=f"local paths, file: and {known} can be read"
        )
    return True


def files_at_once(paths: Iterable[str]) -> int:
    """Return how many files to open in parallel: more for object stores, which answer late."""
    return _OBJECTS_AT_ONCE if any(map(is_object_uri, paths)) else 1


def mean_size(paths: Sequence[str]) -> int | None:
    """Return the mean size of a sample of the files, or None for objects."""
    some = paths[:: max(1, len(paths) // _SAMPLE)]
    # Objects are waited for, whatever their size is.
    if any(map(is_object_uri, some)):
        return None
    sizes = []
    for path in some:
        with suppress(OSError):
            sizes.append(Path(local_path(path)).stat().st_size)
    return sum(sizes) // max(1, len(some))


def total_size(paths: Iterable[str]) -> int | None:
    """Return the size of all files, or None for objects, which would take a request each."""
    total = 0
    for path in paths:
        if is_object_uri(path):
            return None
        # A file that is gone fails when its turn comes.
        with suppress(OSError):
            total += Path(local_path(path)).stat().st_size
    return total


def object_uri(path: str) -> ObjectUri:
    """Return the parts of a URI.

    Raises PolicyError for a URI with a password, because paths are in reports and logs.
    """
    scheme, rest = path.split("://", 1)
    # A key of S3 may hold a question mark; pyarrow takes it for the query all the same, so we do
    # too.
    rest, _, query = rest.partition("?")
    authority, _, key = rest.partition("/")
    # Before the @: after it a colon precedes a port.
    if ":" in authority.rpartition("@")[0]:
        raise PolicyError(
            "the URI holds a password or secret key",
            hint="give credentials in the environment, e.g. AWS_ACCESS_KEY_ID",
        )
    return ObjectUri(scheme=scheme, authority=authority, key=key.strip("/"), query=query)


def sibling(path: str, name: str) -> str:
    """Return the path of ``name`` in the folder of ``path``."""
    if not is_object_uri(path):
        folder, slash, _ = path.rpartition("/")
        return f"{folder}{slash}{name}"
    uri = object_uri(path)
    folder, slash, _ = uri.key.rpartition("/")
    return str(uri.at(f"{folder}{slash}{name}"))


def folder_of(path: str) -> str:
    """Return the folder of the file at an absolute path."""
    if not is_object_uri(path):
        return path.rpartition("/")[0] or "/"
    uri = object_uri(path)
    return str(uri.at(uri.key.rpartition("/")[0]))


def join(folder: str, name: str) -> str:
    """Return the path of ``name``, which may contain slashes, in ``folder``."""
    if not is_object_uri(folder):
        return f"{folder.rstrip('/')}/{name}"
    uri = object_uri(folder)
    return str(uri.at(f"{uri.key}/{name}".lstrip("/")))


def below(path: str, folder: str) -> str | None:
    """Return the path of a file relative to ``folder``, or None if it is outside."""
    if is_object_uri(path) and is_object_uri(folder):
        file, top = object_uri(path), object_uri(folder)
        if file.store() != top.store():
            return None
        # With a slash in front, so that the folder of a whole store is a prefix too.
        path, folder = f"/{file.key}", f"/{top.key}"
    prefix = folder.rstrip("/") + "/"
    return path.removeprefix(prefix) if path.startswith(prefix) else None


#: Between the part of a local path that may lead through links, and the part that must not.  To
#: the system it means nothing (rsync has "/./" for a like purpose).
_FENCE = "/././"
#: An absolute path without empty parts, and without parts that begin with a dot.
_ABSOLUTE = re.compile(r"(?:/[^/.\0][^/\0]*)+")


def without_links(path: str, root: str) -> str:
    """Return a path below ``root`` that storage opens, writes and removes without following links.

    A link in place of a folder below the root, or of the file, is an error: whoever may write the
    folder could redirect a run with it. Stores have no links: a URI is returned unchanged.
    """
    if is_object_uri(path):
        return path
    inside = below(path, root)
    if inside is None:
        raise PolicyError("the file would be outside the table's folder", path=path)
    return f"{absolute_path(root)}{_FENCE}{inside}"


def fenced_parts(path: str) -> tuple[str, list[str]] | None:
    """Return the root of a path that :func:`without_links` made, and the names below the root.

    Return None for any other path.
    """
    root, fence, inside = path.rpartition(_FENCE)
    return (root, [it for it in inside.split("/") if it not in ("", ".")]) if fence else None


def shown_path(path: str) -> str:
    """Return a path as an error shows it."""
    return path.replace(_FENCE, "/")


def shown_beside(path: str, old: str) -> str:
    """Return a path of :func:`without_links` with its folder as ``old``, a file below it, has it.

    Then reports of several runs can be joined by paths.
    """
    root, fence, inside = path.rpartition(_FENCE)
    known = below(absolute_path(old), root) if fence else None
    if known is None or not old.endswith(f"/{known}"):
        return shown_path(path)
    return old.removesuffix(known) + inside


def name_of(path: str) -> str:
    """Return the last part of a path."""
    return (object_uri(path).key if is_object_uri(path) else path).rpartition("/")[2]


def local_path(path: str | PathLike[str]) -> str:
    """Return the file system's path for a local path or a ``file:`` URI.

    A URI is file:/x or file:///x, on Windows also file:///C:/x.
    """
    text = os.fspath(path)
    if not text.lower().startswith("file:/"):
        return with_slashes(text)
    rest = text[len("file:") :]
    if rest.startswith("//"):
        host, _, rest = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise PolicyError(f"the file URI names the host {host!r}", path=text)
    local = unquote("/" + rest.lstrip("/"))
    # Elsewhere /C:/x is a path like any other.
    return local[1:] if os.sep == "\\" and _DRIVE.match(local) else local


def with_slashes(path: str) -> str:
    """Return a local path with slashes as separators, which Windows accepts too."""
    return path if os.sep == "/" else path.replace(os.sep, "/")


def absolute_path(path: str | PathLike[str]) -> str:
    """Return the absolute path, or the URI, for processes that run in another folder."""
    text = os.fspath(path)
    if is_object_uri(text):
        return text
    local = local_path(text)
    # pathlib takes longer than the rest of a small file's path, and would leave it as it is.
    return local if _ABSOLUTE.fullmatch(local) else str(Path(local).absolute())


def as_paths(paths: Paths, *, to_commit: bool = False) -> list[str]:
    """Return one path or many as a list of texts. Raises PolicyError for an empty list.

    A path may be a table of deltalake or pyiceberg.  The latter is its metadata file, and with
    ``to_commit`` its name in the catalog.
    """
    is_one = isinstance(paths, str | PathLike) or table_path(paths) is not None
    many: Any = [paths] if is_one else paths
    # Who iterates over a frame gets its columns.
    is_frame = type(many).__name__ == "DataFrame"
    if is_frame or isinstance(many, bytes | bytearray) or not hasattr(many, "__iter__"):
        raise refused_path(paths)
    texts = [_as_text(path, to_commit=to_commit) for path in many]
    if not texts:
        raise PolicyError("no path is given")
    return texts


def _as_text(path: object, *, to_commit: bool) -> str:
    if to_commit and (name := name_in_catalog(path)) is not None:
        return name
    text = os.fspath(path) if isinstance(path, str | PathLike) else table_path(path)
    if not isinstance(text, str):
        kind = type(path if text is None else text).__name__
        raise PolicyError(f"paths hold {kind}, wanted texts or Paths")
    return as_path(text)


def as_path(path: str | PathLike[str]) -> str:
    """Return the path as a text. ``~`` at its start is the home of the user, as in a shell.

    Raises PolicyError for a text that no file can have as its name.
    """
    # Not the text itself: the system takes numpy's texts for bytes.
    text = str(os.fspath(path))
    if not text:
        raise PolicyError("a path is empty", hint="the current folder is .")
    if text == "~" or text.startswith("~/"):
        text = str(Path(text).expanduser())
    with suppress(UnicodeEncodeError):
        if b"\0" not in os.fsencode(text):
            return text
    raise PolicyError("a path has a character that no file can have in its name")
