# The base class documents the methods.
# ruff: noqa: D102
"""Folders of object stores, as pyarrow.fs lists them: common prefixes of keys, up to a slash."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

from pyarrow import fs

from secure_bloom.errors import PolicyError
from secure_bloom.storage.folder_trees import Level, Tree
from secure_bloom.storage.objects import arrow_location, store_errors
from secure_bloom.storage.paths import object_uri

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

    def can_see_folder(self, path: str) -> bool:
        try:
            return self.is_folder(path)
        except PolicyError as error:
            # Rights are often given below one prefix alone, so a folder above may be closed.
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
        # pyarrow lists no folders for Google's store, only keys.
        names_folders = filesystem.type_name != "gcs"
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
