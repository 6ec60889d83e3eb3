"""Errors of Azure as our errors.

The SDK repeats requests, with growing pauses, before an error gets here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ServiceRequestError,
    ServiceResponseError,
)

from secure_bloom.errors import MissingPathError, PolicyError, SecureBloomError
from secure_bloom.storage.os_errors import AZURE_CREDENTIALS
from secure_bloom.storage.store_answers import (
    BUSY,
    CHANGED,
    FAILED,
    GONE,
    KEPT,
    UPLOAD_ENDED,
    Answer,
    denied,
    error_of,
    unreachable,
    without_credentials,
)

_LEASED: Answer = (
    PolicyError,
    "another program has a lease on the blob",
    "run again when it is done, or break the lease",
)
_LEASES = ("LeaseIdMissing", "LeaseIdMismatchWithBlobOperation", "LeaseNotPresentWithBlobOperation")
#: The store's word -> what is wrong.
_KNOWN: dict[str, Answer] = {
    **dict.fromkeys(("ConditionNotMet", "SourceConditionNotMet"), CHANGED),
    # Whoever completes an upload removes the blocks that wait for another one.
    "InvalidBlockList": UPLOAD_ENDED,
    "BlobNotFound": GONE,
    "ContainerNotFound": (MissingPathError, "there is no such container", "check its name"),
    **dict.fromkeys(_LEASES, _LEASED),
    **dict.fromkeys(("BlobImmutableDueToPolicy", "BlobImmutableDueToLegalHold"), KEPT),
}
#: Our errors by status, if the word is not known.
_STATUS: dict[int | None, Answer] = {
    **dict.fromkeys((401, 403), denied(AZURE_CREDENTIALS)),
    412: CHANGED,
    **dict.fromkeys((429, 503), BUSY),
    **dict.fromkeys((500, 502, 504), FAILED),
}


@contextmanager
def errors(path: str) -> Iterator[None]:
    """Raise what the SDK raises as an error of this package about ``path``."""
    try:
        yield
    except HttpResponseError as exc:
        if isinstance(exc, ClientAuthenticationError) and exc.status_code is None:
            # Nobody was asked yet: no identity was found on this machine.
            raise without_credentials(path, AZURE_CREDENTIALS) from exc
        raise _refusal(exc, path) from exc
    except (ServiceRequestError, ServiceResponseError) as exc:
        raise unreachable(path, exc) from exc
    except AzureError as exc:
        raise PolicyError(f"the SDK cannot ask the store: {exc}", path=path) from exc


def code_of(error: HttpResponseError) -> str:
    """Return the store's word for what is wrong; empty where it has none."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")


def _refusal(error: HttpResponseError, path: str) -> SecureBloomError:
    code = code_of(error)
    known = _KNOWN.get(code) or _STATUS.get(error.status_code)
    if known is None:
        return PolicyError(f"the store refuses: {code or error.status_code}", path=path)
    return error_of(known, path, code)
