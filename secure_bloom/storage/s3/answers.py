"""Refusals of S3 as our errors.

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
    MissingPathError,
    PolicyError,
    SecureBloomError,
    UnsupportedFeatureError,
)
from secure_bloom.storage.os_errors import CREDENTIALS, EXPIRED
from secure_bloom.storage.store_answers import (
    BUSY,
    CHANGED,
    FAILED,
    GONE,
    UPLOAD_ENDED,
    Answer,
    denied,
    error_of,
    unreachable,
    without_credentials,
)

#: A condition did not hold, or another conditional request for the object was under way.
_CONFLICTS = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")
_DENIED = (
    "AccessDenied",
    "403",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "AllAccessDisabled",
    "SignatureDoesNotMatch",
)
_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired")
_BUSY = ("SlowDown", "ServiceUnavailable", "503", "RequestTimeout", "Throttling", "429")
_NO_CONDITIONS: Answer = (
    UnsupportedFeatureError,
    "the store does not do what keeps updates of others safe (conditional writes)",
    "write new objects with --output instead",
)
#: The store's word -> what is wrong.
_KNOWN: dict[str, Answer] = {
    **dict.fromkeys(_CONFLICTS, CHANGED),
    **dict.fromkeys(("NoSuchKey", "404"), GONE),
    "NoSuchUpload": UPLOAD_ENDED,
    "NoSuchBucket": (MissingPathError, "there is no such bucket", "check its name and the region"),
    **dict.fromkeys(_DENIED, denied(CREDENTIALS)),
    **dict.fromkeys(_EXPIRED, denied(EXPIRED)),
    **dict.fromkeys(_BUSY, BUSY),
    **dict.fromkeys(("InternalError", "500", "502", "504"), FAILED),
    **dict.fromkeys(("NotImplemented", "501"), _NO_CONDITIONS),
}


@contextmanager
def errors(path: str) -> Iterator[None]:
    """Raise what boto3 raises as an error of this package about ``path``."""
    try:
        yield
    except ClientError as exc:
        raise _refusal(exc, path) from exc
    except (NoCredentialsError, PartialCredentialsError) as exc:
        raise without_credentials(path, CREDENTIALS) from exc
    except (botocore.exceptions.ConnectionError, HTTPClientError) as exc:
        raise unreachable(path, exc) from exc
    except BotoCoreError as exc:
        raise PolicyError(f"boto3 cannot ask the store: {exc}", path=path) from exc


def code_of(error: ClientError) -> str:
    """Return the store's word for what is wrong; a status where it has none."""
    return str(error.response.get("Error", {}).get("Code", "unknown"))


def is_conflict(error: ClientError) -> bool:
    """Return whether a condition of the request did not hold."""
    return code_of(error) in _CONFLICTS


def was_repeated(error: ClientError) -> bool:
    """Return whether the SDK has sent the request more than once."""
    answer: dict[str, Any] = error.response.get("ResponseMetadata", {})
    return bool(answer.get("RetryAttempts"))


def _refusal(error: ClientError, path: str) -> SecureBloomError:
    code = code_of(error)
    if code in _KNOWN:
        return error_of(_KNOWN[code], path, code)
    text = error.response.get("Error", {}).get("Message", "")
    return PolicyError(f"the store refuses: {code} {text}".rstrip(), path=path)
