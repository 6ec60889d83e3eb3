"""Write a file of a store that has folders (HDFS), so that it is visible whole or not at all.

pyarrow's output streams cannot be aborted: closing one, leaving its ``with`` block or losing the
last reference to it completes the file with the bytes so far (apache/arrow#40502), and opening one
cuts the old file to nothing.  So the new file is written under another name.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable
from typing import Any

from secure_bloom.errors import FormatError


def write_beside(
    filesystem: Any,
    key: str,
    chunks: Iterable[bytes],
    size: int,
    check: Callable[[], None],
) -> None:
    """Write under a hidden name, then move: atomic where the store's rename is.

    ``check`` is called right before the file becomes visible, and may raise to prevent that.
    After an exception, what stood at the key stands there still.  HDFS refuses to rename onto a
    file, and pyarrow deletes the old one first: a kill between the two leaves the new content
    under the hidden name only.  A kill earlier leaves a part of it.
    """
    folder, _, name = key.rpartition("/")
    staged = f"{folder}/.{name}.{secrets.token_hex(4)}.secure-bloom"
    filesystem.create_dir(folder)
    try:
        with filesystem.open_output_stream(staged, compression=None) as stream:
            for chunk in chunks:
                stream.write(chunk)
        written = filesystem.get_file_info(staged).size
        if written != size:
            raise FormatError(f"the store holds {written} bytes of the new file, not {size}")
        check()
        filesystem.move(staged, key)
    except BaseException:
        with contextlib.suppress(Exception):
            filesystem.delete_file(staged)
        raise
