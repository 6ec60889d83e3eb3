# The base class documents the methods.
# ruff: noqa: D102
"""Read objects of S3, Google Cloud Storage, Azure and HDFS through pyarrow.fs.

This module, and pyarrow with it, is imported at the first object-store URI.  Region and endpoint
come from the URI's query (pyarrow's ``FileSystem.from_uri``), from the catalog of a table
(``store_grants``) or from the environment.  ``object_trees`` lists folders, and ``object_writes``
writes objects.
"""

from __future__ import annotations

import atexit
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pyarrow
from pyarrow import fs

from secure_bloom.calling import made_once
from secure_bloom.errors import (
    FileChangedError,
    FormatError,
    PolicyError,
    SecureBloomError,
    located,
)
from secure_bloom.running.first_answer import NoAnswerError, answered, has_answered, watched
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage.azure_account import credentials_of_environment, with_credentials
from secure_bloom.storage.folder_trees import Level, Tree
from secure_bloom.storage.inputs import END, Extent, InputFile
from secure_bloom.storage.os_errors import GONE, silent, system_errors
from secure_bloom.storage.paths import ObjectUri, object_uri
from secure_bloom.storage.store_grants import S3Settings, settings_for
from secure_bloom.storage.stores import store_of

T = TypeVar("T")

#: Names of the metadata that changes with every write.
_GENERATION = "generation"
_WRITE_MARKS = ("ETag", "etag", _GENERATION)
#: Bytes that are fetched ahead of one object.
_AHEAD = 8 * 1024 * 1024
#: Smaller objects are put whole, as S3 has no parts that are smaller.
_WHOLE = 5 * 1024 * 1024
#: A request of its own costs more than to fetch this many bytes for nothing.
_GAP = 64 * 1024
#: Attempts to open an object that another program replaces meanwhile.
_TRIES = 5
#: Name of the metadata with the time of writing, if the store gives it when an object is opened.
_WRITTEN = "Last-Modified"


class ObjectFile(InputFile):
    """One object. ``identity`` (size, time of writing, entity tag) is the same on every machine."""

    def __init__(self, path: str) -> None:
        filesystem, key = arrow_location(path)
        self._file, identity = _open(filesystem, key)
        super().__init__(
            path=path,
            location=path,
            name=key.rpartition("/")[2],
            size=self._file.size(),
            identity=identity,
        )
        self._drop()
        self._is_aside = False

    def check_unchanged(self) -> None:
        with store_errors(self.path):
            try:
                file, now = _open(*arrow_location(self.path))
            except FileNotFoundError as exc:
                raise FileChangedError("the object is gone", path=self.path) from exc
            file.close()
        if now != self.identity:
            raise FileChangedError(
                "the object was changed after it was read",
                hint="another program writes here; run again when it is done",
                path=self.path,
            )

    def close(self) -> None:
        self._file.close()
        self._drop()

    def _drop(self) -> None:
        """Drop the bytes that are kept in memory."""
        self._held = _Held()

    def hold(self, offset: int, content: bytes) -> None:
        """Keep bytes of the object, so that reading them makes no request."""
        self._held.add(offset, content)

    def set_aside(self) -> None:
        self._is_aside = True

    def holds(self, offset: int, length: int) -> bool:
        return self._held.find(offset, length) is not None

    def read_ahead(
        self, extents: Sequence[Extent], *, to_replace: bool = False, room: int = 0
    ) -> None:
        self._held.room = max(self._held.room, room)
        if to_replace and extents and self.size <= _WHOLE:
            extents = [(0, self._held.end_from(self.size))]
        # A footer may lie about them; whoever reads them says so.
        there = [(start, end) for start, end in extents if 0 <= start < end <= self.size]
        wanted, room = list[Extent](), self._held.room
        for start, end in _joined(there):
            if room >= end - start and not self.holds(start, end - start):
                room -= end - start
                wanted.append((start, end))
        # Side by side: a store takes as long for one of them as for all.
        fetched = in_order(lambda it: self._fetched(it[0], it[1] - it[0]), wanted, len(wanted))
        for (start, _), content in zip(wanted, fetched, strict=True):
            self._held.add(start, content)

    def _read(self, offset: int, length: int) -> bytes:
        found = self._held.find(offset, length)
        if found is not None:
            return found
        # Only a read that reaches to the end is widened: a footer is found by its last bytes, and
        # read right after.
        if offset + length < self.size or length > END:
            return self._fetched(offset, length)
        start = max(0, self.size - END)
        content = self._fetched(start, self.size - start)
        self._held.add(start, content)
        return content[offset - start : offset - start + length]

    def _fetched(self, offset: int, length: int) -> bytes:
        if self._is_aside:
            # Bytes in memory are of the object as it was; the rest must not be of another one.
            self.check_unchanged()
            self._is_aside = False
        with store_errors(self.path):
            try:
                data: bytes = self._file.read_at(length, offset)
            except OSError:
                # A shorter object has no such bytes, and one that is gone has none.
                self.check_unchanged()
                raise
        if len(data) < length:
            self.check_unchanged()
        return data

    def _read_sibling(self, name: str, limit: int) -> bytes | None:
        uri = object_uri(self.path)
        sibling = str(uri.at(uri.key.rpartition("/")[0] + "/" + name))
        filesystem, key = arrow_location(sibling)
        with store_errors(sibling):
            try:
                with _opened(filesystem, key) as file:
                    data: bytes = file.read(limit)
            except FileNotFoundError:
                return None
        return data


class _Held:
    """Bytes of an object that are in memory."""

    def __init__(self) -> None:
        self.room = _AHEAD
        self._pieces: list[tuple[int, bytes]] = []

    def add(self, offset: int, content: bytes) -> None:
        """Keep bytes from an offset on. They are joined with the bytes that follow them."""
        self.room -= len(content)
        for piece in self._pieces:
            if piece[0] == offset + len(content):
                self._pieces.remove(piece)
                content += piece[1]
                break
        self._pieces.append((offset, content))

    def end_from(self, size: int) -> int:
        """Return the offset at which the kept end of the object starts.

        The object has ``size`` bytes.
        """
        return min((start for start, it in self._pieces if start + len(it) == size), default=size)

    def find(self, offset: int, length: int) -> bytes | None:
        """Return the bytes if all of them are in one piece, or None."""
        for start, content in self._pieces:
            if start <= offset and offset + length <= start + len(content):
                return content[offset - start : offset - start + length]
        return None


def _joined(extents: Sequence[Extent]) -> Iterator[Extent]:
    """Yield the extents in order. Extents that are close to each other become one."""
    joined: list[Extent] = []
    for start, end in sorted(extents):
        if joined and start <= joined[-1][1] + _GAP:
            before, until = joined.pop()
            joined.append((before, max(until, end)))
        else:
            joined.append((start, end))
    yield from joined


def open_object(path: str) -> ObjectFile:
    """Open an object-store URI for reading. Raises the errors of :func:`open_input`."""
    with store_errors(path):
        return ObjectFile(path)


def arrow_location(path: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a URI, and pyarrow's path in it."""
    uri = object_uri(path)
    settings = settings_for(uri)
    server = _server(uri, settings)
    with store_errors(path):
        if settings is None:
            filesystem, root = _connect(server, uri.store(), credentials_of_environment())
        else:
            filesystem = _connect_granted(server, settings, uri.authority)
            root = uri.authority
    if not has_answered(server):
        filesystem = _Unanswered(filesystem, server)
    if filesystem.type_name == "abfs":
        # Some URIs have the container in the key; no path there may begin with a slash.
        return filesystem, f"{root}/{uri.key}".strip("/")
    return filesystem, f"{root}/{uri.key}" if uri.key else root or "/"


def server_of(path: str) -> str:
    """Return the name of an object's store for messages: its kind, bucket and endpoint."""
    uri = object_uri(path)
    return _server(uri, settings_for(uri))


def _server(uri: ObjectUri, settings: S3Settings | None) -> str:
    endpoint = uri.option("endpoint_override") if settings is None else settings.endpoint
    bucket = uri.authority.rpartition("@")[2] if uri.kind.arrow_name != "abfs" else uri.authority
    return f"{uri.kind.name} ({bucket}{f' at {endpoint}' if endpoint else ''})"


def first_answer(path: str, ask: Callable[[], T]) -> T:
    """Return ``ask()``, a request to the store of ``path``.

    Raises StoreUnavailableError if the store's first answer does not come in time.
    """
    try:
        return answered(server_of(path), ask)
    except NoAnswerError:
        raise _without_answer(path) from None


def first_contact(path: str, make: Callable[[], T]) -> T:
    """Return the client that ``make()`` makes, if this takes no longer than a first answer may.

    Making a client may send no request, so its success does not count as an answer.
    """
    server = server_of(path)
    try:
        return make() if has_answered(server) else watched(server, make)
    except NoAnswerError:
        raise _without_answer(path) from None


def _without_answer(path: str) -> SecureBloomError:
    """Return the error for a store that does not answer.

    The program then exits without waiting for this store.
    """
    # At its end pyarrow would wait for the request that was left behind.
    atexit.unregister(getattr(fs, "ensure_s3_finalized", _without_answer))
    return silent(path)


def require_answer(filesystem: Any, key: str) -> None:
    """Send a small request to a store that has not answered yet, because a write may take long."""
    if isinstance(filesystem, _Unanswered):
        filesystem.get_file_info(key)


@dataclass(frozen=True)
class _Unanswered:
    """A file system of pyarrow whose store has not answered yet: every request is watched."""

    filesystem: fs.FileSystem
    server: str

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.filesystem, name)
        if not callable(found) or name.startswith("_"):
            return found

        def asked(*args: Any, **options: Any) -> Any:
            if args and isinstance(args[0], fs.FileSelector):
                # A listing may take long; that of a folder alone does not.
                answered(self.server, partial(self.filesystem.get_file_info, args[0].base_dir))
            return answered(self.server, partial(found, *args, **options))

        return asked

    def __reduce__(self) -> Any:
        return self.filesystem.__reduce__()


@made_once
def _connect(
    server: str, store: str, of_azure: tuple[str, str] | None
) -> tuple[fs.FileSystem, str]:
    # S3 is asked for the region of a bucket, and HDFS for a connection.
    filesystem, root = watched(server, partial(fs.FileSystem.from_uri, store))
    if filesystem.type_name == "abfs" and of_azure is not None:
        filesystem = with_credentials(filesystem, of_azure)
    return filesystem, root.rstrip("/")


@made_once
def _connect_granted(server: str, settings: S3Settings, bucket: str) -> fs.FileSystem:
    return watched(server, partial(settings.file_system, bucket))


def _open(filesystem: fs.FileSystem, key: str) -> tuple[pyarrow.NativeFile, tuple[object, ...]]:
    """Return the opened object and its identity. S3 needs one request for both."""
    # HDFS has no mark of a write.  The time is asked for first: that of a write which comes after
    # the file was opened would pass off the old bytes as the new file's.
    has_mark = store_of(filesystem).mark_at is not None
    info = None if has_mark else filesystem.get_file_info(key)
    try:
        file = _opened(filesystem, key)
    except OSError:
        _refuse_folder(filesystem.get_file_info(key))
        raise
    metadata = file.metadata() or {}
    if _GENERATION in metadata:
        # It is another one for each write, and all that answers to requests for ranges have.
        return file, (None, file.size(), None, None, None, metadata[_GENERATION])
    written: object = metadata.get(_WRITTEN)
    if written is None:
        info = info or filesystem.get_file_info(key)
        _refuse_folder(info)
        written = info.mtime_ns
    marks = tuple(metadata.get(name) for name in _WRITE_MARKS)
    # No inode: the first part of an identity is what only one machine knows.
    return file, (None, file.size(), written, *marks)


def _opened(filesystem: fs.FileSystem, key: str) -> pyarrow.NativeFile:
    """Return the opened object. Raises FileChangedError if other programs replace it all the time.

    Google Cloud Storage is asked for the generation and then for its bytes.  After a write between
    the two requests, pyarrow returns a closed file.
    """
    for _ in range(_TRIES):
        file = filesystem.open_input_file(key)
        if not file.closed:
            return file
    raise FileChangedError("the object was replaced at each attempt to open it")


def _refuse_folder(info: fs.FileInfo) -> None:
    if info.type == fs.FileType.Directory:
        raise FormatError("is a folder, not a file")


@contextmanager
def store_errors(path: str) -> Iterator[None]:
    """Turn errors of pyarrow, which are mostly OSErrors, into :class:`PolicyError`."""
    with located(path=path), system_errors(path, gone=GONE):
        try:
            yield
        except NoAnswerError:
            raise _without_answer(path) from None
        except pyarrow.ArrowException as exc:
            raise OSError(str(exc)) from exc


#: Azure's words for a name that no container has, as when a table's log is looked for above all
#: containers.
_NO_NAME = ("[InvalidResourceName]", "[OutOfRangeInput]")


class ObjectTree(Tree):
    """The folders of an object store. A folder is a common prefix of keys, up to a slash."""

    def __init__(self) -> None:
        #: What listings said of files, by their keys.
        self._known: dict[str, fs.FileInfo] = {}

    def is_file(self, path: str) -> bool:
        return bool(self._kind(path) == fs.FileType.File)

    def is_folder(self, path: str) -> bool:
        return bool(self._kind(path) == fs.FileType.Directory)

    def find_folder(self, path: str) -> bool | None:
        try:
            return self.is_folder(path) or None
        except PolicyError as error:
            # Rights are often given below one prefix alone, so a folder above may be closed.
            if "ACCESS_DENIED" in error.message:
                return None
            raise

    def names(self, folder: str) -> list[str]:
        return [info.base_name for info in self._infos(folder, recursive=False)]

    def join(self, folder: str, name: str) -> str:
        uri = object_uri(folder)
        return str(uri.at(f"{uri.key}/{name}".lstrip("/")))

    def walk(
        self,
        folder: str,
        refused: list[SecureBloomError] | None = None,  # noqa: ARG002 - one listing, one answer
    ) -> Iterator[Level]:
        folders: dict[str, list[str]] = defaultdict(list)
        files: dict[str, list[str]] = defaultdict(list)
        for info in self._infos(folder, recursive=True):
            parent = info.path.rpartition("/")[0]
            kind = folders if info.type == fs.FileType.Directory else files
            kind[parent].append(info.base_name)
            self._known[info.path] = info
        yield from self._levels(folder, folders, files)

    def _levels(
        self, folder: str, folders: dict[str, list[str]], files: dict[str, list[str]]
    ) -> Iterator[Level]:
        _, key = arrow_location(folder)
        below = sorted(folders[key])
        yield folder, below, sorted(files[key])
        for name in below:
            yield from self._levels(self.join(folder, name), folders, files)

    def level(self, folder: str, most: int) -> tuple[list[str], list[str] | None]:
        infos = self._infos(folder, recursive=False)
        folders = [info.base_name for info in infos if info.type == fs.FileType.Directory]
        files = [info.base_name for info in infos if info.type != fs.FileType.Directory]
        self._known |= {info.path: info for info in infos}
        return sorted(folders), sorted(files) if len(files) <= most else None

    def written_ns(self, path: str) -> int:
        return int(self._info(path).mtime_ns)

    def size(self, path: str) -> int:
        return int(self._info(path).size or 0)

    def listed_size(self, path: str) -> int | None:
        info = self._known.get(arrow_location(path)[1])
        return None if info is None else info.size

    def _info(self, path: str) -> fs.FileInfo:
        filesystem, key = arrow_location(path)
        # A listing has it of all its files; a question for each would be a request for each.
        if key not in self._known:
            with store_errors(path):
                self._known[key] = filesystem.get_file_info(key)
        return self._known[key]

    def parents(self, path: str) -> list[str]:
        uri = object_uri(path)
        parts = uri.key.split("/")[:-1]
        return [str(uri.at("/".join(parts[:n]))) for n in range(len(parts), -1, -1)]

    def key(self, path: str) -> Hashable:
        uri = object_uri(path)
        return (uri.store(), uri.key)

    def _kind(self, path: str) -> fs.FileType:
        filesystem, key = arrow_location(path)
        with store_errors(path):
            try:
                return filesystem.get_file_info(key).type
            except OSError as exc:
                if any(word in str(exc) for word in _NO_NAME):
                    return fs.FileType.NotFound
                raise

    def _infos(self, folder: str, *, recursive: bool) -> list[fs.FileInfo]:
        filesystem, key = arrow_location(folder)
        names_folders = store_of(filesystem).lists_folders
        with store_errors(folder):
            infos: list[fs.FileInfo] = filesystem.get_file_info(
                fs.FileSelector(key, recursive=recursive or not names_folders, allow_not_found=True)
            )
        return infos if names_folders else _with_folders(infos, key, recursive=recursive)


def _with_folders(infos: list[fs.FileInfo], top: str, *, recursive: bool) -> list[fs.FileInfo]:
    """Return everything below ``top``, including the folders in it.

    Without the folders, the log of a table would not be seen, and its files would look like files
    without a table.
    """
    folders = {
        info.path[:end]
        for info in infos
        for end in range(len(top) + 1, len(info.path))
        if info.path[end] == "/"
    }
    known = {info.path for info in infos}
    infos = [*infos, *(fs.FileInfo(path, fs.FileType.Directory) for path in folders - known)]
    return infos if recursive else [it for it in infos if it.path.rpartition("/")[0] == top]
