"""Errors of stores with their advice: the same words for every store.

Each store's package maps its own codes to these.
"""

from __future__ import annotations

from secure_bloom.errors import (
    AccessDeniedError,
    FileChangedError,
    PolicyError,
    SecureBloomError,
    UnsupportedFeatureError,
)
from secure_bloom.storage.os_errors import DENIED, UNREACHABLE

#: Our class, the message and the hint.
Answer = tuple[type[SecureBloomError], str, str]

_AGAIN = "run again later; every file is as it was, or done"
_OTHER_WRITER = "another program writes here; run again when it is done"
CHANGED: Answer = (FileChangedError, "the object was changed after it was read", _OTHER_WRITER)
GONE: Answer = (FileChangedError, "the object is gone", _OTHER_WRITER)
UPLOAD_ENDED: Answer = (FileChangedError, "the upload was ended by another program", _OTHER_WRITER)
BUSY: Answer = (PolicyError, "the store is too busy, after several attempts", _AGAIN)
FAILED: Answer = (PolicyError, "the store failed, after several attempts", _AGAIN)
KEPT: Answer = (
    UnsupportedFeatureError,
    "the object is under a hold or a retention policy, so it cannot be replaced",
    "write new objects with --output instead",
)


def denied(what_to_do: str) -> Answer:
    """Return the answer of a store that does not let the caller do this."""
    return (AccessDeniedError, DENIED, what_to_do)


def error_of(answer: Answer, path: str, code: str = "") -> SecureBloomError:
    """Return the error about ``path``, with the store's own code where that says more."""
    kind, message, hint = answer
    said = "" if kind is FileChangedError or not code else f": {code}"
    return kind(message + said, hint=hint, path=path)


def without_credentials(path: str, what_to_do: str) -> AccessDeniedError:
    """Return the error where nothing says who the caller is."""
    return AccessDeniedError("there are no credentials for the store", hint=what_to_do, path=path)


def unreachable(path: str, error: Exception) -> PolicyError:
    """Return the error where no answer came."""
    message, hint = UNREACHABLE
    return PolicyError(f"{message}: {type(error).__name__}", hint=hint, path=path)
