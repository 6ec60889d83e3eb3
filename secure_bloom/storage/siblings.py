# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH100, PTH120
"""Files that are beside a data file and belong to it: removed when it needs them no more."""

from __future__ import annotations

import os

from secure_bloom.storage.durable_writes import remove_sidecar
from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.open_folder import OpenFolder
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import is_object_uri, local_path, name_of


def remove_file(path: str, *, only: InputFile | None = None) -> bool:
    """Remove the file at ``path`` with its .crc, durably; none there is as good.

    ``only`` is the file as it was read: another one by now is a FileChangedError.  Returns False,
    and removes nothing, where the system cannot see to that: without locks, or in a store that
    does not remove on a condition.
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
    folder_path = os.path.dirname(os.path.abspath(local_path(path)))
    with system_errors(path), OpenFolder(folder_path) as folder:
        # The checksum goes first: left alone, it would belong to the next file of that name.
        remove_sidecar(folder, name_of(path))
        folder.unlink(name_of(path))
        folder.sync()
