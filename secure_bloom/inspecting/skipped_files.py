"""Find Parquet files that readers of a table skip: copies, old versions, and what writers left."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from typing import BinaryIO, Final, NamedTuple, cast

from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.lakes import TableListing
from secure_bloom.lakes.formats import named_format
from secure_bloom.parquet.footer.locate import MAGIC, MAGIC_ENCRYPTED, TRAILER_SIZE
from secure_bloom.running.positioned_stream import PositionedStream
from secure_bloom.storage import InputFile, file_key, file_keys, local_path, open_input
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.listing import expand
from secure_bloom.tracing.packed import PIECE, Budget, UnreadError, decompressed, kind_of

_MAGICS: Final = (MAGIC, MAGIC_ENCRYPTED)
_HEAD: Final = 512
#: Where archives have their mark, and the marks: tar, zip, 7-Zip, RAR.
_ARCHIVES: Final = ((257, b"ustar"), (0, b"PK\x03\x04"), (0, b"7z\xbc\xaf\x27\x1c"), (0, b"Rar!"))
#: The most bytes that are unpacked to see how the content of a packed file begins.
_MOST_UNPACKED: Final = 64 << 20


_NO_FOLDER: Final = "the folder of the table is not known: its older files were not looked at"


class SkippedFile(NamedTuple):
    """A file that was not listed. ``reason`` says why it cannot be looked at, or is None."""

    path: str
    reason: str | None


def skipped_files(paths: Collection[str], listing: TableListing) -> Iterator[SkippedFile]:
    """Yield the Parquet files in the folders of ``paths`` that the listing leaves out.

    Yield archives and packed Parquet files too, and tables in a catalog whose folder is not known.
    Every file is looked at, because a copy may have any name.
    """
    known = set(file_keys(listing.paths))
    for path in paths:
        folders = _folders(path, listing)
        if folders is None:
            yield SkippedFile(path, _NO_FOLDER)
        for folder in folders or ():
            refused: list[SecureBloomError] = []
            tree = tree_of(folder)
            for inside, _, names in tree.walk(folder, refused):
                for name in names:
                    file = tree.join(inside, name)
                    key = file_key(file)
                    if key not in known:
                        known.add(key)
                        yield from _if_parquet(file)
            yield from (SkippedFile(it.path or folder, it.message) for it in refused)


def _folders(path: str, listing: TableListing) -> list[str] | None:
    """Return the folders that a path means, or None for a table without a known folder."""
    if named_format(path) is not None:
        table = next((it for it in listing.logs if it.named == path), None)
        return list(table.locations) or None if table is not None else None
    try:
        found = expand([path])
    except PolicyError:
        return []
    return [it for it in map(local_path, found) if tree_of(it).find_folder(it)]


def _if_parquet(path: str) -> Iterator[SkippedFile]:
    try:
        with open_input(path) as file:
            reason = _kind(file)
    except SecureBloomError as error:
        if error.message != "the file is empty":
            yield SkippedFile(path, error.message)
        return
    if reason is not _NO_PARQUET:
        yield SkippedFile(path, reason)


_NO_PARQUET: Final = "no Parquet file"


def _kind(file: InputFile) -> str | None:
    """Return None for a Parquet file, else why it cannot be looked at, or ``_NO_PARQUET``."""
    head = file.read_at(0, min(file.size, _HEAD))
    if file.size > TRAILER_SIZE + len(MAGIC):
        end = file.read_at(file.size - len(MAGIC), len(MAGIC))
        # Any first bytes: readers look at the last ones.
        if end in _MAGICS:
            return None
    if head.startswith(_MAGICS):
        return "the file begins as a Parquet file, and has no footer"
    if any(head[at:].startswith(mark) for at, mark in _ARCHIVES):
        return "an archive, in which a copy may be"
    kind = kind_of(head)
    return _NO_PARQUET if kind is None else _kind_of_packed(file, kind)


def _kind_of_packed(file: InputFile, kind: str) -> str:
    """Return the reason for a packed file. Metadata of tables and texts may be packed too."""
    stream = cast("BinaryIO", io.BufferedReader(PositionedStream(file.read_at, file.size), PIECE))
    head = b""
    try:
        for piece in decompressed(stream, kind, Budget(0, _MOST_UNPACKED, 0)):
            head += piece[:_HEAD]
            if len(head) >= _HEAD:
                break
    except UnreadError as error:
        return str(error)
    is_copy = head.startswith(_MAGICS) or any(head[at:].startswith(it) for at, it in _ARCHIVES)
    return f"a packed copy ({kind})" if is_copy else _NO_PARQUET
