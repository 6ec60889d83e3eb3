"""Create the file of a commit.

At most one of several writers creates it. UnfinishedWriteError is raised if it is unknown whether
this writer did.
"""

from __future__ import annotations

import time
from typing import Final

from secure_bloom.errors import (
    FileChangedError,
    MissingPathError,
    SecureBloomError,
    UnfinishedWriteError,
)
from secure_bloom.storage.dispatch import create_file, open_input, require_commits
from secure_bloom.storage.paths import is_object_uri, shown_path

#: Seconds for which a commit is looked for after a store's refusal.
_SETTLING_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.5


def is_committed(path: str, content: bytes, *, like: str, hint: str) -> bool:
    """Create ``path`` with this content. Return False if another writer has created it.

    The content must be unique, so that equal bytes at the path are this commit. The file gets the
    permissions of the file ``like``.

    Raises UnfinishedWriteError, with ``hint``, if it is unknown whether the commit was made. That
    is so after an error of a store if this commit is not at the path, unless the store reports the
    file of another writer. A layer below may have repeated the request, and the first request may
    still take effect.
    """
    require_commits(path)
    try:
        create_file(path, content, like=like)
    except UnfinishedWriteError:
        raise
    except SecureBloomError as error:
        # A store may have taken our first request, and refuse the second one for it.  After an
        # error of a network the commit may be there all the same, now or later.
        found = _committed_content(path, error, hint)
        if found == content:
            return True
        if isinstance(error, FileChangedError) and (found is not None or not is_object_uri(path)):
            return False
        if is_object_uri(path):
            raise _unknown(path, error, hint) from error
        raise
    return True


def _committed_content(path: str, error: SecureBloomError, hint: str) -> bytes | None:
    """Return the bytes of the commit at this path, or None if nothing is there.

    In a store this function looks repeatedly for some seconds, because this writer's first request
    may still be under way.  Raises UnfinishedWriteError, with ``hint`` and the text of ``error``,
    if the file cannot be read.
    """
    ends = time.monotonic() + (_SETTLING_SECONDS if is_object_uri(path) else 0)
    while True:
        try:
            # Through links too: where nothing may be written because of one, nothing was written.
            with open_input(shown_path(path)) as file:
                return file.all_bytes()
        except MissingPathError:
            if time.monotonic() >= ends:
                return None
        except SecureBloomError:
            raise _unknown(path, error, hint) from error
        time.sleep(_LOOK_SECONDS)


def _unknown(path: str, error: SecureBloomError, hint: str) -> UnfinishedWriteError:
    return UnfinishedWriteError(
        f"it is unknown whether the commit is in the log: {error}",
        hint=hint,
        path=shown_path(path),
    )
