# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH120
"""Files that stand beside a data file and belong to it: removed when it needs them no more."""

from __future__ import annotations

import os

from secure_bloom.storage.durable_writes import remove_sidecar
from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.open_folder import OpenFolder
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import is_object_uri, sibling


def remove_sibling(file: InputFile, name: str) -> None:
    """Remove the file ``name`` beside ``file``, durably; none there is as good."""
    path = sibling(file.location, name)
    if is_object_uri(path):
        from secure_bloom.storage.objects import remove_object

        remove_object(path)
        return
    with system_errors(path), OpenFolder(os.path.dirname(path)) as folder:
        remove_sidecar(folder, name)
        folder.unlink(name)
        folder.sync()
