"""The operations on one file or folder, local or in a store: open, replace, append, create, remove.

This module only decides whether a path is local or in a store.  pyarrow is loaded with the first
path of an object store, not before.

A commit of a table's log is a small file that must be new. Of all writers that try at once, exactly
one succeeds.  The whole content becomes visible at once, and durably.

A file that belongs to a data file, such as its key material, is removed when the data file no
longer needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from secure_bloom.errors import (
    FileChangedError,
    FormatError,
    UnsupportedFeatureError,
)
from secure_bloom.storage.append import append_local
from secure_bloom.storage.column_mapping import ColumnMapping
from secure_bloom.storage.durable_writes import remove_sidecar, write_all
from secure_bloom.storage.folder_trees import LocalTree, Tree
from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.local import LocalFile, open_local
from secure_bloom.storage.open_folder import open_folder_of
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import (
    fenced_parts,
    is_object_uri,
    local_path,
    name_of,
    object_uri,
    shown_path,
)
from secure_bloom.storage.replace import local_replacement
from secure_bloom.storage.staged_file import NO_LINKS, StagedFile, staged_file
from secure_bloom.storage.write_permit import may_write


def open_input(path: str) -> InputFile:
    """Open a local path, a ``file:`` URI or an object-store URI for reading.

    Raises :class:`PolicyError` when there is no such file or it may not be read, and
    :class:`FormatError` when it is a folder or empty.
    """
    if not is_object_uri(path):
        return open_local(path)
    from secure_bloom.storage.objects import open_object

    return open_object(path)


def open_in_table(path: str, names: ColumnMapping | None) -> InputFile:
    """Open a file as :func:`open_input` does. Its columns get the names of its table."""
    file = open_input(path)
    file.column_names = names
    return file


def open_pinned(path: str, listed_size: int | None = None) -> InputFile:
    """Open a file as :func:`open_input` does. The end of an object is fetched in one request.

    Later reads of the object raise FileChangedError if it was replaced. This needs the store's
    SDK; without it pyarrow reads the object. ``listed_size`` is the size that a listing has
    shown.
    """
    if is_object_uri(path):
        from secure_bloom.storage.pinned_objects import open_pinned_object

        if (found := open_pinned_object(path, listed_size)) is not None:
            return found
    return open_input(path)


def reopen_pinned(
    path: str, size: int, identity: tuple[object, ...], held: tuple[int, bytes] = (0, b"")
) -> InputFile:
    """Open a file of known size and identity again. For an object this makes no request.

    ``held`` has an offset in the object and the bytes from there on. Reading these bytes makes no
    request either.
    """
    if is_object_uri(path):
        from secure_bloom.storage.pinned_objects import reopen_pinned_object

        if (found := reopen_pinned_object(path, size, identity, held)) is not None:
            return found
    return open_input(path)


def replace_tail(
    source: InputFile,
    keep: int,
    tail: Sequence[bytes],
    *,
    output: str | None = None,
    must_be_new: bool = False,
) -> int:
    """Write ``keep`` bytes of source and then the tail as a new file, in the place of source.

    ``output`` is another path for the new file, local or not. Missing folders are made.  With
    ``must_be_new``, an existing file is a :class:`FileChangedError`, even if it was created a
    moment ago. HDFS is only asked right before the write, so another writer can still be faster
    there.

    Returns the new size in bytes.  The change is atomic: readers find the old file or the new one.
    After any exception the old file is there, unchanged, with no temporary file beside it.  Raises
    :class:`FileChangedError` when source was changed after it was opened.

    Local files keep permission bits, extended attributes and, as far as the process may, the owner.
    A symbolic link stays and its target is replaced.  Another hard link keeps the old content.  The
    stale ``.<name>.crc`` is removed.
    """
    with replacement(source, keep, tail, output=output, must_be_new=must_be_new) as put:
        return put()


@contextmanager
def replacement(
    source: InputFile,
    keep: int,
    tail: Sequence[bytes],
    *,
    output: str | None = None,
    over: InputFile | None = None,
    must_be_new: bool = False,
) -> Iterator[Callable[[], int]]:
    """Build the replacement that :func:`replace_tail` makes.

    Yield a function that puts it in place. The function returns the new size. A local file is
    complete before the call; an object is uploaded by the call.  Other writers of this package are
    locked out of a local file until the block ends, so files that belong to it can change with it.
    ``over`` is the only file at ``output`` that may be replaced. If another file is there,
    :class:`FileChangedError` is raised.
    """
    # The number of bytes to keep comes from offsets in a footer, and those may lie.
    if not 0 <= keep <= source.size:
        raise FormatError(f"keeps {keep} bytes, the file has {source.size}", path=source.path)
    target = source.location if output is None else output
    if not is_object_uri(target):
        with local_replacement(
            source, keep, tail, output, over=over, must_be_new=must_be_new
        ) as put:
            yield put
        return
    from secure_bloom.storage.object_writes import replace_object

    yield partial(replace_object, source, keep, tail, target, over=over, must_be_new=must_be_new)


def write_new(source: InputFile, keep: int, tail: Sequence[bytes], output: str) -> int:
    """Write a file that must be new, or accept the file of an earlier attempt at the same task.

    Returns the size of the file at the path.
    """
    try:
        return replace_tail(source, keep, tail, output=output, must_be_new=True)
    except FileChangedError:
        # A task of Spark may run twice.  A file is visible when it is whole.
        source.check_unchanged()
        with open_input(output) as written:
            return written.size


def append_tail(source: InputFile, tail: Sequence[bytes]) -> int:
    """Write the tail after the last byte of source, in the same file. Return the new size in bytes.

    Only the new bytes are written, and a full disk is noticed before the first of them.  After any
    exception the file is unchanged.  A tail that ends on a multiple of :data:`APPEND_ALIGNMENT` is
    written at once if the file system can do that (see ``append``): then a SIGKILL leaves the old
    file or the new one.  Elsewhere a SIGKILL or a power cut in mid-write leaves the old bytes and a
    part of the tail, which :func:`truncate_to` removes.  The file's other hard links change too.

    Raises :class:`FileChangedError` when source was changed after it was opened, and
    :class:`UnsupportedFeatureError` for objects, which no store can extend.
    """
    if not isinstance(source, LocalFile):
        raise _cannot_extend(source.path)
    return append_local(source, tail)


def has_conditional_writes(path: str) -> bool:
    """Return whether a file at ``path`` is replaced only if it is still the file that was read.

    True for local files.  A store of the S3 protocol is tried once, because some stores ignore
    conditions.
    """
    if not is_object_uri(path):
        return True
    from secure_bloom.storage.object_writes import conditions_at

    return conditions_at(path).writes


def refuse_append(paths: Iterable[str]) -> None:
    """Raise :class:`UnsupportedFeatureError` for the first object among the paths."""
    for path in paths:
        if is_object_uri(path):
            raise _cannot_extend(path)


def _cannot_extend(path: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        "objects cannot be extended in place",
        hint="replace the object instead: leave out --in-place",
        path=path,
    )


def require_commits(path: str) -> None:
    """Raise UnsupportedFeatureError for a path in a store that takes no commits."""
    if is_object_uri(path) and not object_uri(path).kind.takes_commits:
        raise UnsupportedFeatureError(
            "commits are written to S3 and to local disks, not to other stores",
            hint="use the table's own engine for other stores",
            path=path,
        )


def create_file(path: str, content: bytes, *, like: str) -> None:
    """Create ``path`` with this content. Raises :class:`FileChangedError` if a file is there.

    The file gets the permissions of the file ``like``.  After any other error the file may exist or
    not: read it to know.  Raises UnsupportedFeatureError if the disk or the store cannot create a
    file only if it is new.
    """
    with open_input(like) as pattern:
        create_like(pattern, path, content)


def create_like(
    pattern: InputFile, path: str, content: bytes, *, is_name_durable: bool = True
) -> None:
    """Create ``path`` as :func:`create_file` does, with the permissions of an open file.

    Unless ``is_name_durable``, a power cut may take the file's name away until
    :func:`make_names_durable` is called.
    """
    if is_object_uri(path):
        require_commits(path)
        replace_tail(pattern, 0, [content], output=path, must_be_new=True)
        return
    target = path if fenced_parts(path) else os.path.realpath(local_path(path))
    with system_errors(shown_path(path)), staged_file(target) as staged:
        pattern.carry_attributes(staged.fd)
        write_all(staged.fd, [content], 0)
        # The content before the name: a commit that a power cut left empty would break the table
        # for every reader.
        staged.sync()
        with may_write():
            _publish(staged, path, is_name_durable=is_name_durable)


def make_names_durable(paths: Iterable[str]) -> None:
    """Make the names of new files durable, with one sync of each folder.

    Processes of this machine may have created the files. Names in stores are durable already.
    """
    one_of_each = {path.rpartition("/")[0]: path for path in paths if not is_object_uri(path)}
    for path in one_of_each.values():
        with system_errors(shown_path(path)), open_folder_of(path) as folder:
            folder.sync()


def _publish(staged: StagedFile, path: str, *, is_name_durable: bool) -> None:
    try:
        staged.publish_if_absent(is_durable=is_name_durable)
    except OSError as exc:
        if exc.errno not in NO_LINKS:
            raise
        raise UnsupportedFeatureError(
            "this file system has no hard links, so two writers could create the same new file",
            hint="write to the table from another file system, or from an object store",
            path=path,
        ) from exc


def remove_file(path: str, *, only: InputFile | None = None) -> bool:
    """Remove the file at ``path`` with its .crc, durably. A missing file is no error.

    ``only`` is the file as it was read. If another file is there by now, FileChangedError is
    raised.  Returns False, and removes nothing, if the system cannot guarantee that: without locks,
    or in a store that ignores conditions of deletes.
    """
    if is_object_uri(path):
        from secure_bloom.storage.object_writes import remove_object

        return remove_object(path, only=only)
    if only is None:
        _remove_local(path)
        return True
    with only.exclusive():
        only.check_unchanged()
        if only.is_locked:
            _remove_local(path)
        return only.is_locked


def _remove_local(path: str) -> None:
    with system_errors(shown_path(path)), open_folder_of(path) as folder, may_write():
        # The checksum goes first: left alone, it would belong to the next file of that name.
        remove_sidecar(folder, name_of(path))
        folder.unlink(name_of(path))
        folder.sync()


def tree_of(path: str) -> Tree:
    """Return the tree that a path belongs to. pyarrow is loaded only for object stores."""
    if not is_object_uri(path):
        return LocalTree()
    from secure_bloom.storage.objects import ObjectTree

    return ObjectTree()
