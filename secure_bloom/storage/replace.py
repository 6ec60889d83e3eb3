# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH100, PTH103, PTH112, PTH120
"""A new local file in the place of an old one: the whole old file or the whole new one.

The order makes every moment safe to die in:

    new file built and synced | old file still the one that was read | stale .crc removed, synced
    | rename | folder synced

Until the rename the old file stands; without its .crc, Spark reads it unchecked.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from secure_bloom.errors import PolicyError
from secure_bloom.storage.durable_writes import remove_sidecars
from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import local_path
from secure_bloom.storage.staged_file import staged_file


def replace_local(
    source: InputFile,
    keep: int,
    tail: Sequence[bytes],
    output: str | None,
    *,
    must_be_new: bool = False,
) -> int:
    """Write ``keep`` bytes of source and the tail to ``output`` or back; the new size in bytes.

    With ``must_be_new`` no file may stand at ``output``.
    """
    path = source.path if output is None else output
    location = source.location if output is None else os.path.abspath(local_path(output))
    target = os.path.realpath(location)
    if os.path.isdir(target):
        raise PolicyError("is a folder, a file is to be written here", path=path)
    with system_errors(path):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with source.exclusive():
            return _replace(source, keep, tail, location, target, must_be_new=must_be_new)


def _replace(
    source: InputFile,
    keep: int,
    tail: Sequence[bytes],
    location: str,
    target: str,
    *,
    must_be_new: bool,
) -> int:
    source.check_unchanged()  # before the work, as after it: the loser of a race waited for this
    with staged_file(target) as staged:
        # First, while the file is empty: nobody may read more here than in the old file.
        source.carry_attributes(staged.fd)
        size = source.copy_to(staged.fd, keep, tail)
        staged.give_name()
        source.check_unchanged()
        remove_sidecars(location, target)
        if must_be_new:
            staged.publish_new()
        else:
            staged.publish()
    return size
