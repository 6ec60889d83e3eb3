"""Answers of Azure that are errors: which class, and what to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from secure_bloom import errors
from tests.storage.azure.conftest import Blobs
from tests.storage.other_stores import KEY, LARGE, replaced

exceptions = pytest.importorskip("azure.core.exceptions")
pytest.importorskip("azure.storage.blob")

from secure_bloom.storage import azure_blobs as azure  # noqa: E402


def answer(status: int, code: str | None = None) -> Any:
    error = exceptions.HttpResponseError("what the store says")
    error.status_code = status
    error.error_code = SimpleNamespace(value=code) if code else None
    return error


@pytest.mark.parametrize(
    ("error", "kind", "hint"),
    [
        (answer(403, "AuthorizationPermissionMismatch"), errors.AccessDeniedError, "az login"),
        (answer(403, "AuthenticationFailed"), errors.AccessDeniedError, "AZURE_STORAGE_KEY"),
        (answer(412, "ConditionNotMet"), errors.FileChangedError, "another program"),
        (answer(412, "SourceConditionNotMet"), errors.FileChangedError, "another program"),
        (answer(400, "InvalidBlockList"), errors.FileChangedError, "another program"),
        (answer(404, "BlobNotFound"), errors.FileChangedError, "another program"),
        (answer(404, "ContainerNotFound"), errors.MissingPathError, "name"),
        (answer(412, "LeaseIdMissing"), errors.PolicyError, "lease"),
        (answer(409, "BlobImmutableDueToPolicy"), errors.UnsupportedFeatureError, "--output"),
        (answer(503, "ServerBusy"), errors.PolicyError, "later"),
        (answer(500), errors.PolicyError, "later"),
        (answer(418, "Teapot"), errors.PolicyError, None),
        (exceptions.ClientAuthenticationError("no login"), errors.AccessDeniedError, "az login"),
        (exceptions.ServiceRequestError("no route"), errors.StoreUnavailableError, "network"),
        (exceptions.AzureError("odd"), errors.PolicyError, None),
    ],
)
def test_an_answer_is_an_error_of_ours(error: Exception, kind: type, hint: str | None) -> None:
    with pytest.raises(errors.SecureBloomError) as caught, azure.errors("abfs://a@b/c"):
        raise error
    assert type(caught.value) is kind
    assert caught.value.path == "abfs://a@b/c"
    assert hint is None or hint in str(caught.value.hint)


def test_a_leased_blob_is_left_alone(container: Blobs) -> None:
    container.put(KEY, LARGE)
    lease = container.client.get_blob_client(KEY).acquire_lease()
    with pytest.raises(errors.PolicyError, match="lease"):
        replaced(container)
    assert container.objects() == {KEY: LARGE}
    lease.release()
