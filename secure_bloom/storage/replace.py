# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH112, PTH114, PTH119, PTH120
"""Replace a local file: at any moment the whole old file or the whole new one is there.

The process may die between any two of these steps:

    new file built and synced | old file still the one that was read | stale .crc removed, synced
    | names exchanged, old file removed | folder synced

Until the exchange the old file is in place.  Without its .crc, Spark reads it unchecked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from secure_bloom.errors import FileChangedError, FormatError, PolicyError
from secure_bloom.storage.durable_writes import make_folders, remove_sidecar
from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.local import absolute_location, identity_of
from secure_bloom.storage.open_folder import OpenFolder
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import fenced_parts, shown_path
from secure_bloom.storage.staged_file import StagedFile, staged_file
from secure_bloom.storage.write_permit import may_write, require_permit


@contextmanager
def local_replacement(
    source: InputFile,
    keep: int,
    tail: Sequence[bytes],
    output: str | None,
    *,
    over: InputFile | None = None,
    must_be_new: bool = False,
) -> Iterator[Callable[[], int]]:
    """Build a file of ``keep`` bytes of source and the tail.

    Yield a function that puts it in place. The function returns the new size in bytes.  ``over`` is
    the only file at ``output`` that may be replaced. With ``must_be_new`` no file may be there. The
    old file and the new file are locked until the block ends.
    """
    # Before the work as well: a task whose run has ended leaves not even an empty folder.
    require_permit()
    path = source.path if output is None else output
    location = source.location if output is None else absolute_location(output)
    target = location
    is_fenced = fenced_parts(location) is not None
    # A link stays a link: the rename must take the place of what it leads to.  Of a file that was
    # read, the folders on the way may be links: the last one is opened, and its file compared.
    if not is_fenced and (output is not None or os.path.islink(location)):
        target = os.path.realpath(location)
    if os.path.isdir(target):
        raise PolicyError("is a folder, wanted the path of a file", path=shown_path(path))
    replaced = source if output is None else over
    with system_errors(shown_path(path)):
        if output is not None:
            parts = fenced_parts(location)
            make_folders(parts[0] if parts else os.path.dirname(target))
        with source.exclusive(), _exclusive(over), staged_file(target) as staged:
            check = partial(_check, source, staged, replaced)
            check()  # before the work, as after it: the loser of a race waited
            # Rights are set first, while the file is empty: nobody may read more here than in the
            # old file.
            source.carry_attributes(staged.fd)
            size = _fill(staged, source, keep, tail)
            # A new file gets its only name by a link at the end, so that nothing of it shows
            # before.
            if not must_be_new:
                staged.give_name()

            def put() -> int:
                with may_write():
                    check()
                    _remove_sidecars(staged, location, target)
                    if must_be_new:
                        staged.publish_new()
                    else:
                        staged.publish(None if replaced is None else replaced.identity)
                return size

            check()
            yield put


def _exclusive(over: InputFile | None) -> AbstractContextManager[None]:
    return nullcontext() if over is None else over.exclusive()


def _check(source: InputFile, staged: StagedFile, replaced: InputFile | None) -> None:
    """Raise FileChangedError unless source and the replaced file are still as they were read."""
    source.check_unchanged()
    found = staged.folder.status(staged.name)
    # The output is not the input, whatever links lead to it.
    is_source = found is not None and identity_of(found)[0] == source.identity[0]
    if is_source and replaced is not source:
        raise PolicyError(
            "the output is the input under another name",
            hint="name another file; add and reencrypt replace the input without --output",
        )
    if replaced is not None and (found is None or identity_of(found) != replaced.identity):
        raise FileChangedError(
            "its folder was changed after it was read",
            hint="another program moves folders here; run again when it is done",
        )


def _fill(staged: StagedFile, source: InputFile, keep: int, tail: Sequence[bytes]) -> int:
    size = source.copy_to(staged.fd, keep, tail)
    # The system is asked for the size: the footer of the new file counts on every byte before it.
    written = os.fstat(staged.fd).st_size
    if written != size:
        raise FormatError(f"the new file has {written} bytes, {size} were written to it")
    staged.sync()
    return size


def _remove_sidecars(staged: StagedFile, location: str, target: str) -> None:
    """Remove the .crc of the file, and the .crc of the symbolic link that leads to it."""
    remove_sidecar(staged.folder, staged.name)
    if location == target or (old := staged.folder.status(staged.name)) is None:
        return
    with OpenFolder(os.path.dirname(location)) as folder:
        name = os.path.basename(location)
        found = folder.status(name, follow=True)
        if found is not None and os.path.samestat(found, old):
            remove_sidecar(folder, name)
