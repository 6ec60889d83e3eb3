"""Answers of the store that are errors: which class, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from secure_bloom import errors

exceptions = pytest.importorskip("botocore.exceptions")

from secure_bloom.storage import s3_connection  # noqa: E402

PATH = "s3://bucket/key"


def answer(code: str, **metadata: Any) -> Exception:
    details = {"Code": code, "Message": "what the store says"}
    error: Exception = exceptions.ClientError({"Error": details, "ResponseMetadata": metadata}, "x")
    return error


@pytest.mark.parametrize(
    ("error", "kind", "hint"),
    [
        (answer("AccessDenied"), errors.AccessDeniedError, "AWS_PROFILE"),
        (answer("ExpiredToken"), errors.AccessDeniedError, "expired"),
        (answer("PreconditionFailed"), errors.FileChangedError, "another program"),
        (answer("ConditionalRequestConflict"), errors.FileChangedError, "another program"),
        (answer("NoSuchKey"), errors.FileChangedError, "another program"),
        (answer("NoSuchUpload"), errors.FileChangedError, "another program"),
        (answer("NoSuchBucket"), errors.MissingPathError, "region"),
        (answer("SlowDown"), errors.PolicyError, "later"),
        (answer("InternalError"), errors.PolicyError, "later"),
        (answer("NotImplemented"), errors.UnsupportedFeatureError, "--output"),
        (exceptions.NoCredentialsError(), errors.AccessDeniedError, "AWS_PROFILE"),
        (exceptions.EndpointConnectionError(endpoint_url="x"), errors.PolicyError, "network"),
        (exceptions.ReadTimeoutError(endpoint_url="x"), errors.PolicyError, "network"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_an_answer_becomes_an_error_of_ours(
    error: Exception, kind: type[errors.SecureBloomError], hint: str
) -> None:
    with pytest.raises(kind) as caught, s3_connection.errors(PATH):
        raise error
    assert caught.value.path == PATH
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (answer("InvalidObjectState"), "the store refuses: InvalidObjectState what the store says"),
        (exceptions.ProfileNotFound(profile="p"), "boto3 cannot ask the store"),
    ],
)
def test_an_unknown_answer_is_repeated_to_people(error: Exception, text: str) -> None:
    with pytest.raises(errors.PolicyError, match=text), s3_connection.errors(PATH):
        raise error
