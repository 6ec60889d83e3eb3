"""What the operating system refuses, said as a :class:`PolicyError` with a hint."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from secure_bloom.errors import PolicyError

_HINTS = {
    errno.EACCES: "check the permissions of the file and of its folder",
    errno.EPERM: "check the permissions of the file and of its folder",
    errno.EROFS: "the file system is mounted read-only; write to another place",
    errno.ENOSPC: "free some space and run again; nothing was changed",
    errno.EDQUOT: "free some of your quota and run again; nothing was changed",
    errno.EFBIG: "raise the file size limit (ulimit -f) and run again; nothing was changed",
}


@contextmanager
def system_errors(path: str, missing: str = "no such file") -> Iterator[None]:
    """Raise any ``OSError`` passing by as a :class:`PolicyError` about ``path``.

    ``missing`` is the message when the error is that the path does not exist.
    """
    try:
        yield
    except FileNotFoundError as exc:
        raise PolicyError(missing, path=path) from exc
    except OSError as exc:
        hint = None if exc.errno is None else _HINTS.get(exc.errno)
        raise PolicyError(f"the system refuses: {_first_line(exc)}", hint=hint, path=path) from exc


def _first_line(exc: OSError) -> str:
    if exc.strerror:
        return exc.strerror.lower()
    return next(iter(str(exc).splitlines()), type(exc).__name__)
