"""Create a small file that must be new: of all writers that try at once, exactly one succeeds.

A commit of a table's log is a file of this kind.  The whole content becomes visible at once, and
durably.
"""

from __future__ import annotations

import os

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.storage.dispatch import open_input, replace_tail
from secure_bloom.storage.durable_writes import write_all
from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import OBJECT_SCHEMES, is_object_uri, local_path, object_uri
from secure_bloom.storage.staged_file import NO_LINKS, StagedFile, staged_file


def create_file(path: str, content: bytes, *, like: str) -> None:
    """Create ``path`` with this content; :class:`FileChangedError` where something is there.

    The file gets the permissions of the file ``like``.  After any other error it may be there or
    not: read it to know.  Raises UnsupportedFeatureError where the disk or the store has no way to
    do this.
    """
    with open_input(like) as pattern:
        if is_object_uri(path):
            _create_object(path, content, pattern)
        else:
            _create_local(path, content, pattern)


def _create_object(path: str, content: bytes, pattern: InputFile) -> None:
    if OBJECT_SCHEMES[object_uri(path).scheme.lower()] != "s3":
        raise UnsupportedFeatureError(
            "commits are written to S3 and to local disks, not to other stores",
            hint="use the table's own engine for other stores",
            path=path,
        )
    replace_tail(pattern, 0, [content], output=path, must_be_new=True)


def _create_local(path: str, content: bytes, pattern: InputFile) -> None:
    with system_errors(path), staged_file(os.path.realpath(local_path(path))) as staged:
        pattern.carry_attributes(staged.fd)
        write_all(staged.fd, [content], 0)
        # The content before the name: a commit that a power cut left empty would break the table
        # for every reader.
        staged.sync()
        _publish(staged, path)


def _publish(staged: StagedFile, path: str) -> None:
    try:
        staged.publish_if_absent()
    except OSError as exc:
        if exc.errno not in NO_LINKS:
            raise
        raise UnsupportedFeatureError(
            "this file system has no hard links, so a file cannot be put where none is in one step",
            hint="write to the table from another file system, or from an object store",
            path=path,
        ) from exc
