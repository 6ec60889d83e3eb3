"""Find and read the index of a data file: ``<data file>.index``, in clear, beside it."""

from __future__ import annotations

from collections.abc import Container, Hashable
from typing import TYPE_CHECKING, Final

from secure_bloom.errors import FormatError, PolicyError, located
from secure_bloom.lakes.formats import PAIMON
from secure_bloom.lakes.managed_tables import find_unmanaged
from secure_bloom.lakes.paimon.names import is_table
from secure_bloom.paimon.container import MAGIC, FileIndex
from secure_bloom.storage import (
    DATA_SUFFIXES,
    InputFile,
    file_key,
    file_keys,
    local_path,
    name_of,
    sibling,
)
from secure_bloom.storage.paths import Paths, as_paths

if TYPE_CHECKING:
    from secure_bloom.lakes.paimon.table import PaimonFile

SUFFIX: Final = ".index"
#: What a table's name does not end in.
_NO_TABLES: Final = (*DATA_SUFFIXES, ".orc", ".avro", SUFFIX)
#: Paimon's default filters of a thousand columns take less.
MAX_INDEX_BYTES: Final = 1 << 30


def table_alone(paths: list[str]) -> str | None:
    """Return the Paimon table that the paths name, or None if they name files.

    Raises PolicyError for a table that is not given alone.
    """
    # To look whether a data file is a table would be a request to a store for each.
    tables = [path for path in paths if not path.endswith(_NO_TABLES) and is_table(path)]
    if tables and len(paths) > 1:
        raise PolicyError(
            "a Paimon table is given alone, and other paths are given too",
            hint="run the verb for each path by itself",
            path=tables[0],
        )
    return next(iter(tables), None)


def find_indexed(paths: Paths) -> list[str]:
    """Return data files of any format at ``paths``, and index files without a data file."""
    every = find_unmanaged(
        as_paths(paths),
        suffixes=_NO_TABLES,
        honoured=[PAIMON],
    )
    keys = set(file_keys(every))
    return [path for path in every if not _stands_beside(path, keys)]


def _stands_beside(path: str, keys: Container[Hashable]) -> bool:
    name = name_of(path)
    data_file = sibling(path, name.removesuffix(SUFFIX))
    return name.endswith(SUFFIX) and file_key(data_file) in keys


def index_path(file: InputFile) -> str:
    """Return the path of the index of a data file."""
    return sibling(local_path(file.path), file.name + SUFFIX)


def data_path(index: InputFile) -> str:
    """Return the path of the data file of an index."""
    return sibling(local_path(index.path), index.name.removesuffix(SUFFIX))


def is_index(file: InputFile) -> bool:
    """Return whether the file is an index itself, by its first bytes or else by its name."""
    first = file.read_at(0, min(file.size, len(MAGIC)))
    return first == MAGIC or file.name.endswith(SUFFIX)


def read_beside(file: InputFile) -> FileIndex | None:
    """Return the index beside a data file, or None if there is none.

    Raises FormatError for a damaged index.
    """
    content = file.read_sibling(file.name + SUFFIX, limit=MAX_INDEX_BYTES)
    if content is None:
        return None
    with located(path=index_path(file)):
        return FileIndex.from_bytes(content)


def read_listed(file: InputFile, listed: PaimonFile | None) -> FileIndex | None:
    """Return the index that a table's manifest has for a data file, or None if it has none.

    Without a table, return the index beside the file. Raises FormatError for a damaged index, or
    one that the manifest lists and that is gone.
    """
    if listed is None:
        return read_beside(file)
    with located(path=listed_path(file, listed)):
        if listed.embedded_index is not None:
            return FileIndex.from_bytes(listed.embedded_index)
        if not listed.index_names:
            return None
        content = file.read_sibling(listed.index_names[0], limit=MAX_INDEX_BYTES)
        if content is None:
            raise FormatError("the index file that the manifest lists is not there")
        return FileIndex.from_bytes(content)


def listed_path(file: InputFile, listed: PaimonFile | None) -> str:
    """Return the path of the index, or of the data file if the index is in the manifest."""
    if listed is None:
        return index_path(file)
    path = local_path(file.path)
    return sibling(path, listed.index_names[0]) if listed.index_names else path


def read_whole(file: InputFile) -> FileIndex:
    """Return the index in an index file. Raises FormatError for a damaged index."""
    if file.size > MAX_INDEX_BYTES:
        raise FormatError(f"the index has {file.size} bytes, at most {MAX_INDEX_BYTES} are read")
    return FileIndex.from_bytes(file.read_at(0, file.size))
