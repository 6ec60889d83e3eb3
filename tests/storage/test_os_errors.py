"""What the system refuses is told with the path, and with a hint where there is one."""

from __future__ import annotations

import errno
import os

import pytest

from secure_bloom.errors import AccessDeniedError, PolicyError
from secure_bloom.storage.os_errors import system_errors


def test_a_missing_path_may_have_a_hint() -> None:
    with (
        pytest.raises(PolicyError, match="f: no such file") as caught,
        system_errors("f", "look again"),
    ):
        raise FileNotFoundError(errno.ENOENT, "x")
    assert caught.value.hint == "look again"


@pytest.mark.parametrize("code", [errno.EACCES, errno.ENOSPC, errno.EROFS])
def test_an_error_of_the_system_says_what_the_system_says(code: int) -> None:
    with pytest.raises(PolicyError) as caught, system_errors("f"):
        raise OSError(code, os.strerror(code))
    assert str(caught.value) == f"f: the system refuses: {os.strerror(code).lower()}"


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("Check failed: Failed to get token from DefaultAzureCredential.", "az login"),
        (
            "Status(UNKNOWN: Could not create a OAuth2 access token to authenticate; "
            + "x" * 2_000,
            "gcloud",
        ),
    ],
    ids=["azure", "gcs"],
)
def test_a_caller_without_credentials_of_a_store_is_sent_to_them(said: str, wanted: str) -> None:
    with pytest.raises(AccessDeniedError) as caught, system_errors("f"):
        raise OSError(f"google::cloud {said}")
    assert wanted in str(caught.value.hint)
    assert len(str(caught.value)) < 400


def test_errors_of_another_kind_pass() -> None:
    with pytest.raises(ValueError, match="other"), system_errors("f"):
        raise ValueError("other")
