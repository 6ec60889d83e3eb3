"""Translate errors of the operating system and of object stores into :class:`PolicyError`."""

from __future__ import annotations

import errno

from secure_bloom.errors import AccessDeniedError, PolicyError, SecureBloomError, refused_by_system

_HINTS = {
    errno.EACCES: "check the permissions of the file and of its folder",
    errno.EPERM: "check the permissions of the file and of its folder",
    errno.EROFS: "the file system is mounted read-only; write to another place",
    errno.ENOSPC: "free some space and run again",
    errno.EDQUOT: "free some of your quota and run again",
    errno.EFBIG: "raise the file size limit (ulimit -f) and run again",
}
#: Messages and hints about object stores, whichever library asks them.
DENIED = "the store denies access"
CREDENTIALS = "check the credentials (AWS_PROFILE, AWS_ACCESS_KEY_ID), and what they may do there"
AZURE_CREDENTIALS = (
    "check the credentials (AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, az login), "
    "and what they may do there"
)
GOOGLE_CREDENTIALS = (
    "check the credentials (GOOGLE_APPLICATION_CREDENTIALS, gcloud auth), "
    "and what they may do there"
)
EXPIRED = "get new credentials: these expired"
UNREACHABLE = ("the store cannot be reached", "check the endpoint, the region and the network")
#: Words in pyarrow's error for an answer of a store -> our message and hint.
_STORE_ERRORS = {
    "AWS Error ACCESS_DENIED": (DENIED, CREDENTIALS),
    "AWS Error INVALID_ACCESS_KEY_ID": (DENIED, CREDENTIALS),
    "AWS Error INVALID_CLIENT_TOKEN_ID": (DENIED, CREDENTIALS),
    "AWS Error SIGNATURE_DOES_NOT_MATCH": (DENIED, CREDENTIALS),
    "AWS Error EXPIRED_TOKEN": (DENIED, EXPIRED),
    "AWS Error NETWORK_CONNECTION": UNREACHABLE,
    "Azure Error: [AuthenticationFailed]": (DENIED, AZURE_CREDENTIALS),
    "Azure Error: [AuthorizationFailure]": (DENIED, AZURE_CREDENTIALS),
    "Azure Error: [AuthorizationPermissionMismatch]": (DENIED, AZURE_CREDENTIALS),
    "Azure Error: [NoAuthenticationInformation]": (DENIED, AZURE_CREDENTIALS),
    "google::cloud::Status(PERMISSION_DENIED": (DENIED, GOOGLE_CREDENTIALS),
    "google::cloud::Status(UNAUTHENTICATED": (DENIED, GOOGLE_CREDENTIALS),
}


#: Paths are looked for before they are opened, or stand in the log of a table.
GONE = (
    "it was removed since it was listed, or, in an old version of a table, by VACUUM: run again, "
    "or take a later version"
)


class system_errors:  # noqa: N801  (used like a function; a generator takes thrice as long)
    """Raise any ``OSError`` of the block as a :class:`PolicyError` about ``path``.

    ``gone`` is the hint if nothing is at the path.
    """

    __slots__ = ("_gone", "_path")

    def __init__(self, path: str, gone: str | None = None) -> None:
        self._path = path
        self._gone = gone

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, SecureBloomError):
            # Some of ours are errors of the system too, and say already what they are about.
            return
        if isinstance(error, FileNotFoundError):
            raise refused_by_system(
                error, "no such file", hint=self._gone, path=self._path
            ) from error
        if isinstance(error, OSError):
            raise _refusal(error, self._path) from error


def _refusal(exc: OSError, path: str) -> PolicyError:
    line = _first_line(exc)
    for word, (message, hint) in _STORE_ERRORS.items():
        if word in line:
            kind = AccessDeniedError if message == DENIED else PolicyError
            return kind(f"{message}: {line}", hint=hint, path=path)
    hint_of_system = None if exc.errno is None else _HINTS.get(exc.errno)
    return refused_by_system(exc, f"the system refuses: {line}", hint=hint_of_system, path=path)


def _first_line(exc: OSError) -> str:
    if exc.strerror:
        return exc.strerror.lower()
    return next(iter(str(exc).splitlines()), type(exc).__name__)
