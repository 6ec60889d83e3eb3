# The base classes document the methods.
# ruff: noqa: D102
"""Objects of S3, Google Cloud Storage, Azure and HDFS through pyarrow.fs.

Only this module of ``storage`` imports pyarrow, and the package imports this module when it meets
the first object-store URI.  Region and endpoint come from the URI's query (pyarrow's
``FileSystem.from_uri``) or from the environment.  S3 is written by the package ``s3``, which loads
boto3, and tested against servers; the others take the same way through pyarrow and have not been
run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow
from pyarrow import fs

from secure_bloom.errors import (
    FileChangedError,
    FormatError,
    PolicyError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.storage.folder_trees import Level, Tree
from secure_bloom.storage.inputs import Extent, InputFile
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import is_object_uri, object_uri
from secure_bloom.storage.uploads import upload

if TYPE_CHECKING:
    from secure_bloom.storage.s3 import Origin, S3Object

#: Names of the metadata that changes with every write.
_WRITE_MARKS = ("ETag", "etag", "generation")
#: Where the first of them stands in an identity.
_ETAG_AT = 3
#: One request brings so much of the end of an object: the footer, and the filters before it.  In
#: the time that a store takes to answer, far more would arrive.
_END = 128 * 1024
#: Bytes that are fetched ahead of one object.
_AHEAD = 8 * 1024 * 1024
#: Smaller objects are put whole, as S3 has no parts that are smaller.
_WHOLE = 5 * 1024 * 1024
#: A request of its own costs more than to fetch so many bytes for nothing.
_GAP = 64 * 1024
#: Name of the metadata with the time of writing, if the store gives it when an object is opened.
_WRITTEN = "Last-Modified"


class ObjectFile(InputFile):
    """One object; ``identity`` is its size, time of writing and entity tag, on every machine."""

    def __init__(self, path: str) -> None:
        filesystem, key = _locate(path)
        self._file, identity = _open(filesystem, key)
        super().__init__(
            path=path,
            location=path,
            name=key.rpartition("/")[2],
            size=self._file.size(),
            identity=identity,
        )
        self._held = _Held()
        self._is_aside = False

    def check_unchanged(self) -> None:
        with _store_errors(self.path):
            try:
                file, now = _open(*_locate(self.path))
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
        self._held = _Held()

    def set_aside(self) -> None:
        self._is_aside = True

    def holds(self, offset: int, length: int) -> bool:
        return self._held.find(offset, length) is not None

    def read_ahead(self, extents: Sequence[Extent], *, to_replace: bool = False) -> None:
        if to_replace and extents and self.size <= _WHOLE:
            extents = [(0, self._held.end_from(self.size))]
        # A footer may lie about them; whoever reads them says so.
        there = [(start, end) for start, end in extents if 0 <= start < end <= self.size]
        for start, end in _joined(there):
            if self._held.room >= end - start and not self.holds(start, end - start):
                self._held.add(start, self._fetched(start, end - start))

    def _read(self, offset: int, length: int) -> bytes:
        found = self._held.find(offset, length)
        if found is not None:
            return found
        if offset + length < self.size or length > _END:
            return self._fetched(offset, length)
        start = max(0, self.size - _END)
        self._held.add(start, self._fetched(start, self.size - start))
        return self._read(offset, length)

    def _fetched(self, offset: int, length: int) -> bytes:
        if self._is_aside:
            # What is held is of the object as it was; the rest must not be of another.
            self.check_unchanged()
            self._is_aside = False
        with _store_errors(self.path):
            try:
                data: bytes = self._file.read_at(length, offset)
            except OSError:
                # A shorter object has no such bytes, and one that is gone has none.
                self.check_unchanged()
                raise
        return data

    def _read_sibling(self, name: str, limit: int) -> bytes | None:
        uri = object_uri(self.path)
        sibling = str(uri.at(uri.key.rpartition("/")[0] + "/" + name))
        filesystem, key = _locate(sibling)
        with _store_errors(sibling):
            try:
                with filesystem.open_input_file(key) as file:
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
        """Hold bytes from an offset on; with those that follow them they are one piece."""
        self.room -= len(content)
        for piece in self._pieces:
            if piece[0] == offset + len(content):
                self._pieces.remove(piece)
                content += piece[1]
                break
        self._pieces.append((offset, content))

    def end_from(self, size: int) -> int:
        """Where the piece starts that reaches to the end, which is at ``size``."""
        return min((start for start, it in self._pieces if start + len(it) == size), default=size)

    def find(self, offset: int, length: int) -> bytes | None:
        """The bytes, if all of them are here in one piece."""
        for start, content in self._pieces:
            if start <= offset and offset + length <= start + len(content):
                return content[offset - start : offset - start + length]
        return None


def _joined(extents: Sequence[Extent]) -> Iterator[Extent]:
    """The extents in order, those that lie close as one."""
    joined: list[Extent] = []
    for start, end in sorted(extents):
        if joined and start <= joined[-1][1] + _GAP:
            before, until = joined.pop()
            joined.append((before, max(until, end)))
        else:
            joined.append((start, end))
    yield from joined


def open_object(path: str) -> ObjectFile:
    """Open an object-store URI for reading; errors as those of :func:`open_input`."""
    with _store_errors(path):
        return ObjectFile(path)


def arrow_location(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a URI, and what pyarrow calls the path in it."""
    return _locate(path)


def replace_object(
    source: InputFile, keep: int, tail: Sequence[bytes], path: str, *, must_be_new: bool = False
) -> int:
    """Make the object at ``path`` ``keep`` bytes of source and the tail; the new size in bytes.

    With ``must_be_new`` none may stand there.  S3 takes both as conditions (see ``s3``).  Other
    stores are asked right before the new object becomes visible, so another writer can still be
    faster; and they carry no tags, access lists and user metadata over.
    """
    filesystem, key = _locate(path)
    with _store_errors(path), source.exclusive():
        if filesystem.type_name == "s3":
            return _replace_in_s3(source, keep, tail, path, must_be_new=must_be_new)
        size = keep + sum(map(len, tail))

        def check() -> None:
            source.check_unchanged()
            if must_be_new and filesystem.get_file_info(key).type != fs.FileType.NotFound:
                raise FileChangedError("the object is there already", path=path)

        check()
        upload(filesystem, key, source.chunks(keep, tail), size, check)
    return size


def _replace_in_s3(
    source: InputFile, keep: int, tail: Sequence[bytes], path: str, *, must_be_new: bool
) -> int:
    s3 = _writing_to_s3()
    target = s3.s3_object(path, _locate(path)[0].region)
    origin = _origin(source, target)
    size: int = s3.replace(source, keep, tail, target, origin=origin, must_be_new=must_be_new)
    return size


def _origin(source: InputFile, target: S3Object) -> Origin | None:
    """The source as an object that the store of ``target`` can copy from."""
    if not is_object_uri(source.path):
        return None
    filesystem, _ = _locate(source.path)
    etag = source.identity[_ETAG_AT]
    if filesystem.type_name != "s3" or not isinstance(etag, bytes):
        return None
    s3 = _writing_to_s3()
    found = s3.s3_object(source.path, filesystem.region)
    return s3.Origin(object=found, etag=etag.decode()) if found.store == target.store else None


def create_object(path: str, content: bytes) -> None:
    """Create an object; FileChangedError where one stands: of many writers one succeeds.

    Raises UnsupportedFeatureError for stores other than S3.
    """
    filesystem, _ = _locate(path)
    if filesystem.type_name != "s3":
        raise UnsupportedFeatureError(
            f"no way to create an object of {filesystem.type_name} only where none stands",
            path=path,
        )
    s3 = _writing_to_s3()
    s3.create(s3.s3_object(path, filesystem.region), content)


def _writing_to_s3() -> ModuleType:
    try:
        from secure_bloom.storage import s3
    except ImportError as exc:
        raise PolicyError("writing to S3 needs boto3", hint="pip install boto3") from exc
    return s3


def remove_object(path: str) -> None:
    """Remove the object at ``path``."""
    filesystem, key = _locate(path)
    with _store_errors(path):
        filesystem.delete_file(key)


class ObjectTree(Tree):
    """Object stores.  A folder there is a prefix that keys share, up to a slash."""

    def __init__(self) -> None:
        self._written: dict[str, int] = {}

    def is_file(self, path: str) -> bool:
        return bool(self._kind(path) == fs.FileType.File)

    def is_folder(self, path: str) -> bool:
        return bool(self._kind(path) == fs.FileType.Directory)

    def can_see_folder(self, path: str) -> bool:
        try:
            return self.is_folder(path)
        except PolicyError as error:
            if "ACCESS_DENIED" in error.message:
                return False
            raise

    def names(self, folder: str) -> list[str]:
        return [info.base_name for info in self._infos(folder, recursive=False)]

    def join(self, folder: str, name: str) -> str:
        uri = object_uri(folder)
        return str(uri.at(f"{uri.key}/{name}".lstrip("/")))

    def walk(
        self,
        folder: str,
        refused: list[PolicyError] | None = None,  # noqa: ARG002 - one listing, one answer
    ) -> Iterator[Level]:
        folders: dict[str, list[str]] = defaultdict(list)
        files: dict[str, list[str]] = defaultdict(list)
        for info in self._infos(folder, recursive=True):
            parent = info.path.rpartition("/")[0]
            kind = folders if info.type == fs.FileType.Directory else files
            kind[parent].append(info.base_name)
            self._written[info.path] = info.mtime_ns
        yield from self._levels(folder, folders, files)

    def _levels(
        self, folder: str, folders: dict[str, list[str]], files: dict[str, list[str]]
    ) -> Iterator[Level]:
        _, key = _locate(folder)
        below = sorted(folders[key])
        yield folder, below, sorted(files[key])
        for name in below:
            yield from self._levels(self.join(folder, name), folders, files)

    def level(self, folder: str, most: int) -> tuple[list[str], list[str] | None]:
        infos = self._infos(folder, recursive=False)
        folders = [info.base_name for info in infos if info.type == fs.FileType.Directory]
        files = [info.base_name for info in infos if info.type != fs.FileType.Directory]
        self._written |= {info.path: info.mtime_ns for info in infos}
        return sorted(folders), sorted(files) if len(files) <= most else None

    def written_ns(self, path: str) -> int:
        filesystem, key = _locate(path)
        # A listing tells it of all its files; a question for each would be a request for each.
        if key not in self._written:
            with _store_errors(path):
                self._written[key] = filesystem.get_file_info(key).mtime_ns
        return self._written[key]

    def parents(self, path: str) -> list[str]:
        uri = object_uri(path)
        parts = uri.key.split("/")[:-1]
        return [str(uri.at("/".join(parts[:n]))) for n in range(len(parts), -1, -1)]

    def key(self, path: str) -> Hashable:
        uri = object_uri(path)
        return (uri.store(), uri.key)

    def _kind(self, path: str) -> fs.FileType:
        filesystem, key = _locate(path)
        with _store_errors(path):
            return filesystem.get_file_info(key).type

    def _infos(self, folder: str, *, recursive: bool) -> list[fs.FileInfo]:
        filesystem, key = _locate(folder)
        with _store_errors(folder):
            infos: list[fs.FileInfo] = filesystem.get_file_info(
                fs.FileSelector(key, recursive=recursive, allow_not_found=True)
            )
        return infos


def _locate(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a URI, and what pyarrow calls the path in it."""
    uri = object_uri(path)
    with _store_errors(path):
        filesystem, root = _connect(uri.store())
    return filesystem, f"{root}/{uri.key}" if uri.key else root or "/"


@lru_cache(maxsize=16)
def _connect(store: str) -> tuple[fs.FileSystem, str]:
    filesystem, root = fs.FileSystem.from_uri(store)
    return filesystem, root.rstrip("/")


def _open(filesystem: fs.FileSystem, key: str) -> tuple[pyarrow.NativeFile, tuple[object, ...]]:
    """The opened object and its identity; from S3 in one request."""
    try:
        file = filesystem.open_input_file(key)
    except OSError:
        _refuse_folder(filesystem.get_file_info(key))
        raise
    metadata = file.metadata() or {}
    written: object = metadata.get(_WRITTEN)
    if written is None:
        info = filesystem.get_file_info(key)
        _refuse_folder(info)
        written = info.mtime_ns
    marks = tuple(metadata.get(name) for name in _WRITE_MARKS)
    return file, (None, file.size(), written, *marks)


def _refuse_folder(info: fs.FileInfo) -> None:
    if info.type == fs.FileType.Directory:
        raise FormatError("is a folder, not a file")


@contextmanager
def _store_errors(path: str) -> Iterator[None]:
    """Errors of pyarrow, most of which are OSErrors, as :class:`PolicyError`."""
    with located(path=path), system_errors(path):
        try:
            yield
        except pyarrow.ArrowException as exc:
            if isinstance(exc, OSError):
                raise
            raise OSError(str(exc)) from exc
