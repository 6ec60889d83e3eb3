"""Create the file of a commit: exactly one of several writers, whatever errors come between."""

from __future__ import annotations

from secure_bloom.errors import (
    FileChangedError,
    MissingPathError,
    SecureBloomError,
    UnfinishedWriteError,
)
from secure_bloom.storage.dispatch import create_file, may_arrive, open_input
from secure_bloom.storage.paths import shown_path


def is_committed(path: str, content: bytes, *, like: str, hint: str) -> bool:
    """Create ``path`` with this content. Return False if another writer has created it.

    The content must be unique, so that equal bytes there are this commit and not another's.  The
    file gets the permissions of the file ``like``.

    Raises UnfinishedWriteError, with ``hint``, if it is unknown whether the commit is there.
    """
    try:
        create_file(path, content, like=like)
    except FileChangedError as error:
        # A store may have taken our first request, and refuse the second one for it.
        return _committed_content(path, error, hint) == content
    except UnfinishedWriteError:
        raise
    except SecureBloomError as error:
        # After an error of a network the commit may be there all the same, now or a little later.
        if _committed_content(path, error, hint) != content:
            if may_arrive(path, error):
                raise _unknown(path, error, hint) from error
            raise
    return True


def _committed_content(path: str, error: SecureBloomError, hint: str) -> bytes | None:
    """Return the bytes of the commit at this path, or None if nothing is there.

    Raises UnfinishedWriteError, with ``hint`` and the text of ``error``, if it cannot be read.
    """
    try:
        # Through links too: where nothing may be written because of one, nothing was written.
        with open_input(shown_path(path)) as file:
            return file.all_bytes()
    except MissingPathError:
        return None
    except SecureBloomError:
        raise _unknown(path, error, hint) from error


def _unknown(path: str, error: SecureBloomError, hint: str) -> UnfinishedWriteError:
    return UnfinishedWriteError(
        f"it is unknown whether the commit is in the log: {error}",
        hint=hint,
        path=shown_path(path),
    )
