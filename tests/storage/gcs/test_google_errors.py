"""Answers of Google Cloud Storage that are errors: which class, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from secure_bloom import errors

exceptions = pytest.importorskip("google.api_core.exceptions")
pytest.importorskip("google.cloud.storage")

import requests.exceptions  # noqa: E402
from google.auth.exceptions import DefaultCredentialsError  # noqa: E402
from google.cloud.storage.exceptions import DataCorruption  # noqa: E402

from secure_bloom.storage import gcs  # noqa: E402


def answer(status: int, reason: str = "") -> Any:
    return exceptions.from_http_status(status, "what the store says", errors=[{"reason": reason}])


@pytest.mark.parametrize(
    ("error", "kind", "hint"),
    [
        (answer(403, "forbidden"), errors.AccessDeniedError, "gcloud"),
        (answer(401, "authError"), errors.AccessDeniedError, "GOOGLE_APPLICATION_CREDENTIALS"),
        (answer(403, "retentionPolicyNotMet"), errors.UnsupportedFeatureError, "--output"),
        (answer(412, "conditionNotMet"), errors.FileChangedError, "another program"),
        (answer(404, "notFound"), errors.MissingPathError, "name"),
        (answer(429, "rateLimitExceeded"), errors.PolicyError, "later"),
        (answer(503), errors.PolicyError, "later"),
        (answer(418, "teapot"), errors.PolicyError, None),
        (DefaultCredentialsError("none"), errors.AccessDeniedError, "gcloud"),
        (requests.exceptions.ConnectionError("no route"), errors.StoreUnavailableError, "network"),
        (DataCorruption(None, "checksum"), errors.PolicyError, "copy"),
    ],
)
def test_an_answer_is_an_error_of_ours(error: Exception, kind: type, hint: str | None) -> None:
    with pytest.raises(errors.SecureBloomError) as caught, gcs.errors("gs://b/c"):
        raise error
    assert type(caught.value) is kind
    assert caught.value.path == "gs://b/c"
    assert hint is None or hint in str(caught.value.hint)
