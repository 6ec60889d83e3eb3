"""Translate errors of the operating system and of object stores into errors of this package.

The words and the advice are the same for every store, and for every library that asks one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from secure_bloom.errors import (
    AccessDeniedError,
    FileChangedError,
    MissingPathError,
    PolicyError,
    SecureBloomError,
    StoreUnavailableError,
    UnsupportedFeatureError,
    refused_by_system,
)
from secure_bloom.running.first_answer import GIVE_UP_SECONDS

#: Our class, the message and the hint.
Answer = tuple[type[SecureBloomError], str, str]

CREDENTIALS = "check the credentials (AWS_PROFILE, AWS_ACCESS_KEY_ID), and what they may do there"
AZURE_CREDENTIALS = (
    "check the credentials (AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, az login), "
    "and what they may do there"
)
GOOGLE_CREDENTIALS = (
    "check the credentials (GOOGLE_APPLICATION_CREDENTIALS, gcloud auth), "
    "and what they may do there"
)


def denied(what_to_do: str) -> Answer:
    """Return the class, text and hint of the error for a store that denies access."""
    return (AccessDeniedError, "the store denies access", what_to_do)


_AGAIN = "run again later; every file is as it was, or done"
_OTHER_WRITER = "another program writes here; run again when it is done"
_ELSEWHERE = "write new objects with --output instead"
CHANGED: Answer = (FileChangedError, "the object was changed after it was read", _OTHER_WRITER)
OBJECT_GONE: Answer = (FileChangedError, "the object is gone", _OTHER_WRITER)
BUSY: Answer = (PolicyError, "the store is too busy, after several attempts", _AGAIN)
NO_BUCKET: Answer = (MissingPathError, "there is no such bucket", "check its name")
_NO_BUCKET_IN_S3: Answer = (
    MissingPathError,
    "there is no such bucket",
    "check its name and the region",
)
_NO_CONTAINER: Answer = (MissingPathError, "there is no such container", "check its name")
NO_CONDITIONS_THERE: Answer = (
    UnsupportedFeatureError,
    "the store does not do what keeps updates of others safe (conditional writes)",
    _ELSEWHERE,
)
_UPLOAD_ENDED: Answer = (FileChangedError, "the upload was ended by another program", _OTHER_WRITER)
_FAILED: Answer = (PolicyError, "the store failed, after several attempts", _AGAIN)
_KEPT: Answer = (
    UnsupportedFeatureError,
    "the object is under a hold or a retention policy, so it cannot be replaced",
    _ELSEWHERE,
)
_LEASED: Answer = (
    PolicyError,
    "another program has a lease on the blob",
    "run again when it is done, or break the lease",
)
_UNREACHABLE: Answer = (
    StoreUnavailableError,
    "the store cannot be reached",
    "check the endpoint, the region and the network",
)
_EXPIRED = denied("get new credentials: these expired")
#: What is wrong -> the words for it of S3, Azure and Google Cloud Storage.
_WORDS: dict[Answer, tuple[str, ...]] = {
    CHANGED: (
        "PreconditionFailed",
        "ConditionalRequestConflict",
        "ConditionNotMet",
        "SourceConditionNotMet",
    ),
    OBJECT_GONE: ("NoSuchKey", "BlobNotFound"),
    # Whoever completes an upload to a blob removes the blocks that wait for another one.
    _UPLOAD_ENDED: ("NoSuchUpload", "InvalidBlockList"),
    _NO_BUCKET_IN_S3: ("NoSuchBucket",),
    _NO_CONTAINER: ("ContainerNotFound",),
    _LEASED: (
        "LeaseIdMissing",
        "LeaseIdMismatchWithBlobOperation",
        "LeaseNotPresentWithBlobOperation",
    ),
    _KEPT: (
        "BlobImmutableDueToPolicy",
        "BlobImmutableDueToLegalHold",
        "retentionPolicyNotMet",
        "objectUnderActiveHold",
    ),
    denied(CREDENTIALS): (
        "AccessDenied",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "AllAccessDisabled",
        "SignatureDoesNotMatch",
    ),
    _EXPIRED: ("ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"),
    BUSY: ("SlowDown", "ServiceUnavailable", "RequestTimeout", "Throttling"),
    _FAILED: ("InternalError",),
    NO_CONDITIONS_THERE: ("NotImplemented",),
}
_ANSWERS: Final = {word: answer for answer, words in _WORDS.items() for word in words}
#: Answers by the status, if the word is not known.
_STATUSES: Final[Mapping[int, Answer]] = {
    412: CHANGED,
    **dict.fromkeys((429, 503), BUSY),
    **dict.fromkeys((500, 502, 504), _FAILED),
}
#: The longest text of a library in an error: that of Google Cloud has 1,500 characters.
_LONGEST: Final = 300
#: Words in pyarrow's error for an answer of a store -> what is wrong.
_IN_PYARROW: Final[Mapping[str, Answer]] = {
    "AWS Error ACCESS_DENIED": denied(CREDENTIALS),
    "AWS Error INVALID_ACCESS_KEY_ID": denied(CREDENTIALS),
    "AWS Error INVALID_CLIENT_TOKEN_ID": denied(CREDENTIALS),
    "AWS Error SIGNATURE_DOES_NOT_MATCH": denied(CREDENTIALS),
    "AWS Error EXPIRED_TOKEN": _EXPIRED,
    "AWS Error NETWORK_CONNECTION": _UNREACHABLE,
    "google::cloud::Status(UNAVAILABLE": _UNREACHABLE,
    "Fail to get a new connection for": _UNREACHABLE,
    "Failed to get token from DefaultAzureCredential": denied(AZURE_CREDENTIALS),
    "Azure Error: [AuthenticationFailed]": denied(AZURE_CREDENTIALS),
    "Azure Error: [AuthorizationFailure]": denied(AZURE_CREDENTIALS),
    "Azure Error: [AuthorizationPermissionMismatch]": denied(AZURE_CREDENTIALS),
    "Azure Error: [NoAuthenticationInformation]": denied(AZURE_CREDENTIALS),
    "google::cloud::Status(PERMISSION_DENIED": denied(GOOGLE_CREDENTIALS),
    "google::cloud::Status(UNAUTHENTICATED": denied(GOOGLE_CREDENTIALS),
    "Could not create a OAuth2 access token": denied(GOOGLE_CREDENTIALS),
}


def refusal(
    path: str,
    code: str,
    status: int | None,
    credentials: str,
    statuses: Mapping[int, Answer],
    said: str = "",
) -> SecureBloomError:
    """Return the error for a store's answer, chosen by its error code, else by its HTTP status.

    ``credentials`` says how to change the credentials for the store. ``statuses`` explains statuses
    that only this store uses. ``said`` is the store's sentence, which is shown for an unknown code
    and status.
    """
    answer = _ANSWERS.get(code)
    if answer is None and status is not None:
        answer = denied(credentials) if status in (401, 403) else _STATUSES.get(status)
        answer = statuses.get(status, answer)
    if answer is None:
        return PolicyError(f"the store refuses: {code or status} {said}".rstrip(), path=path)
    return error_of(answer, path, code)


def error_of(answer: Answer, path: str, code: str = "") -> SecureBloomError:
    """Return the error about ``path``. It has the store's own code, except a FileChangedError."""
    kind, message, hint = answer
    said = "" if kind is FileChangedError or not code else f": {code}"
    return kind(message + said, hint=hint, path=path)


def without_credentials(path: str, what_to_do: str) -> AccessDeniedError:
    """Return the error for a caller without credentials."""
    return AccessDeniedError("there are no credentials for the store", hint=what_to_do, path=path)


def unreachable(path: str, error: Exception) -> SecureBloomError:
    """Return the error for a store that cannot be asked."""
    return error_of(_UNREACHABLE, path, type(error).__name__)


def silent(path: str) -> SecureBloomError:
    """Return the error for a store that does not answer."""
    return error_of(_UNREACHABLE, path, f"no answer in {GIVE_UP_SECONDS:.0f} s")


#: Paths are looked for before they are opened, or are in the log of a table.
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
            # Some are errors of the system too, and say already what they are about.
            return
        if isinstance(error, FileNotFoundError):
            raise refused_by_system(
                error, "no such file", hint=self._gone, path=self._path
            ) from error
        if isinstance(error, OSError):
            raise _refusal(error, self._path) from error


def _refusal(exc: OSError, path: str) -> SecureBloomError:
    line = _first_line(exc)
    shown = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
    for words, answer in _IN_PYARROW.items():
        if words in line:
            return error_of(answer, path, shown)
    return refused_by_system(exc, f"the system refuses: {shown}", path=path)


def _first_line(exc: OSError) -> str:
    if exc.strerror:
        return exc.strerror.lower()
    return next(iter(str(exc).splitlines()), type(exc).__name__)
