# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH108, PTH120
"""Files that stand beside a data file and belong to it: removed when it needs them no more."""

from __future__ import annotations

import contextlib
import os

from secure_bloom.storage.durable_writes import sync_folder
from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import is_object_uri, sibling


def remove_sibling(file: InputFile, name: str) -> None:
    """Remove the file ``name`` beside ``file``, durably; none is there is as good."""
    path = sibling(file.location, name)
    if is_object_uri(path):
        from secure_bloom.storage.objects import remove_object

        remove_object(path)
        return
    with system_errors(path), contextlib.suppress(FileNotFoundError):
        os.unlink(path)
        sync_folder(os.path.dirname(path))
