"""What S3 answers when it does not do what it was asked, as our errors.

A store repeats nothing by itself: the SDK does, with growing pauses, before an error gets here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import botocore.exceptions
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)

from secure_bloom.errors import (
    AccessDeniedError,
    FileChangedError,
    MissingPathError,
    PolicyError,
    SecureBloomError,
    UnsupportedFeatureError,
)
from secure_bloom.storage.os_errors import CREDENTIALS, DENIED, EXPIRED, UNREACHABLE
from secure_bloom.storage.s3.connection import S3Object

_CHANGED = "another program writes here; run again when it is done"
#: A condition did not hold, or another conditional request for the object was under way.
_CONFLICTS = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")
_AGAIN = "run again later; every file is as it was, or done"

#: The store's word -> our class, what happened, and what to do.
_KNOWN: dict[str, tuple[type[SecureBloomError], str, str]] = {
    **dict.fromkeys(
        _CONFLICTS,
        (FileChangedError, "the object was changed after it was read", _CHANGED),
    ),
    **dict.fromkeys(
        ("NoSuchKey", "404"),
        (FileChangedError, "the object is gone", _CHANGED),
    ),
    "NoSuchUpload": (FileChangedError, "the upload was ended by another program", _CHANGED),
    "NoSuchBucket": (MissingPathError, "there is no such bucket", "check its name and the region"),
    **dict.fromkeys(
        ("AccessDenied", "403", "InvalidAccessKeyId", "InvalidClientTokenId", "AllAccessDisabled"),
        (AccessDeniedError, DENIED, CREDENTIALS),
    ),
    "SignatureDoesNotMatch": (AccessDeniedError, DENIED, CREDENTIALS),
    **dict.fromkeys(
        ("ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"),
        (AccessDeniedError, DENIED, EXPIRED),
    ),
    **dict.fromkeys(
        ("SlowDown", "ServiceUnavailable", "503", "RequestTimeout", "Throttling", "429"),
        (PolicyError, "the store is too busy, after several attempts", _AGAIN),
    ),
    **dict.fromkeys(
        ("InternalError", "500", "502", "504"),
        (PolicyError, "the store failed, after several attempts", _AGAIN),
    ),
    **dict.fromkeys(
        ("NotImplemented", "501"),
        (
            UnsupportedFeatureError,
            "the store does not do what keeps updates of others safe (conditional writes)",
            "write new objects with --output instead",
        ),
    ),
}


@contextmanager
def s3_errors(path: str) -> Iterator[None]:
    """Raise what boto3 raises as an error of ours about ``path``."""
    try:
        yield
    except ClientError as exc:
        raise _refusal(exc, path) from exc
    except (NoCredentialsError, PartialCredentialsError) as exc:
        raise AccessDeniedError(
            "there are no credentials for the store", hint=CREDENTIALS, path=path
        ) from exc
    except (botocore.exceptions.ConnectionError, HTTPClientError) as exc:
        message, hint = UNREACHABLE
        raise PolicyError(f"{message}: {type(exc).__name__}", hint=hint, path=path) from exc
    except BotoCoreError as exc:
        raise PolicyError(f"boto3 cannot ask the store: {exc}", path=path) from exc


def code_of(error: ClientError) -> str:
    """The store's word for what is wrong; a status where it has none."""
    return str(error.response.get("Error", {}).get("Code", "unknown"))


def is_conflict(error: ClientError) -> bool:
    """Whether a condition of the request did not hold."""
    return code_of(error) in _CONFLICTS


def already_there(target: S3Object) -> FileChangedError:
    """The error for an object where none may stand."""
    return FileChangedError("the object is there already", path=target.path)


def was_repeated(error: ClientError) -> bool:
    """Whether the SDK has sent the request more than once."""
    answer: dict[str, Any] = error.response.get("ResponseMetadata", {})
    return bool(answer.get("RetryAttempts"))


def _refusal(error: ClientError, path: str) -> SecureBloomError:
    code = code_of(error)
    if code in _KNOWN:
        kind, message, hint = _KNOWN[code]
        said = "" if kind is FileChangedError else f": {code}"
        return kind(message + said, hint=hint, path=path)
    text = error.response.get("Error", {}).get("Message", "")
    return PolicyError(f"the store refuses: {code} {text}".rstrip(), path=path)
