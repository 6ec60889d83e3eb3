"""Refusals of Google Cloud Storage as our errors.

The SDK repeats requests, with growing pauses, before an error gets here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import requests.exceptions
from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.auth.exceptions import GoogleAuthError
from google.cloud.storage.exceptions import DataCorruption, InvalidResponse

from secure_bloom.errors import MissingPathError, PolicyError, SecureBloomError
from secure_bloom.storage.os_errors import GOOGLE_CREDENTIALS
from secure_bloom.storage.store_answers import (
    BUSY,
    CHANGED,
    FAILED,
    KEPT,
    Answer,
    denied,
    error_of,
    unreachable,
    without_credentials,
)

#: The store's reason -> what is wrong.
_REASONS: dict[str, Answer] = dict.fromkeys(
    ("retentionPolicyNotMet", "objectUnderActiveHold"), KEPT
)
#: Our errors by status, if the reason is not known.
_STATUS: dict[int | None, Answer] = {
    **dict.fromkeys((401, 403), denied(GOOGLE_CREDENTIALS)),
    # A write needs nothing that could be missing, except the bucket.
    404: (MissingPathError, "there is no such bucket", "check its name"),
    412: CHANGED,
    **dict.fromkeys((408, 429, 503), BUSY),
    **dict.fromkeys((500, 502, 504), FAILED),
}


@contextmanager
def errors(path: str) -> Iterator[None]:
    """Raise what the SDK raises as an error of this package about ``path``."""
    try:
        yield
    except GoogleAPICallError as exc:
        raise _refusal(exc, path) from exc
    except (DataCorruption, InvalidResponse) as exc:
        raise PolicyError(
            "the store holds other bytes than were sent",
            hint="write the file again from a copy",
            path=path,
        ) from exc
    except GoogleAuthError as exc:
        raise without_credentials(path, GOOGLE_CREDENTIALS) from exc
    except (requests.exceptions.RequestException, RetryError, ConnectionError) as exc:
        raise unreachable(path, exc) from exc


def _refusal(error: GoogleAPICallError, path: str) -> SecureBloomError:
    reasons = [str(each.get("reason", "")) for each in error.errors if isinstance(each, dict)]
    code = reasons[0] if reasons else str(error.code)
    known = _REASONS.get(code) or _STATUS.get(error.code)
    if known is None:
        return PolicyError(f"the store refuses: {code}", path=path)
    return error_of(known, path, code)
