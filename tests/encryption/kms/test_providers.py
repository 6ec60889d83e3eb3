"""From a [kms] table to a client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from secure_bloom.encryption.kms import Keyring, kms_client
from secure_bloom.errors import PolicyError
from tests.encryption.kms.kms import CountingKms


class Remote(CountingKms):
    """A client that is made from the words of [kms]."""

    def __init__(self, *, url: str, token: str = "none") -> None:
        super().__init__()
        if not url.startswith("https:"):
            raise ValueError(f"bad url, token {token}")
        self.url = url


class Unfit:
    """A class that is no KMS client."""


def test_a_keyring_is_found_from_the_policys_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    file = tmp_path / "sub" / "keyring.json"
    file.write_text(json.dumps({"version": 1, "master_keys": {"k": "AAAAAAAAAAAAAAAAAAAAAA=="}}))
    file.chmod(0o600)
    for path in ("sub/keyring.json", str(file)):
        client = kms_client({"client": "keyring", "keyring": path}, tmp_path)
        assert client == Keyring(master_keys={"k": bytes(16)})


def test_a_class_of_another_package_gets_the_other_words() -> None:
    client = kms_client({"client": f"{__name__}:Remote", "url": "https://kms"}, Path())
    assert isinstance(client, Remote)
    assert client.url == "https://kms"


@pytest.mark.parametrize(
    ("config", "message", "hint"),
    [
        ({}, "names no client", "keyring, aws"),
        ({"client": 5}, "'client' of [kms] is an integer", ""),
        ({"client": "keyrng"}, "unknown client 'keyrng'", "did you mean 'keyring'?"),
        ({"client": "keyring"}, "names no keyring", "keyring ="),
        ({"client": "keyring", "keyrig": "a"}, "unknown option 'keyrig'", "'keyring'"),
        ({"client": "keyring", "keyring": ["a"]}, "'keyring' of [kms] is a list", ""),
        ({"client": "keyring", "keyring": "none.json"}, "cannot be read", ""),
        ({"client": "aws", "regio": "x"}, "unknown option 'regio'", "'region'"),
        ({"client": "no.such.module:Class"}, "cannot be imported", "installed"),
        ({"client": f"{__name__}:None"}, "cannot be imported", ""),
        ({"client": ":Class"}, "cannot be imported", ""),
        ({"client": f"{__name__}:Unfit"}, "is not a class with wrap_key and unwrap_key", ""),
        ({"client": "os:system", "command": "exit 1"}, "is not a class with wrap_key", ""),
        ({"client": f"{__name__}:__name__"}, "is not a class", ""),
        ({"client": f"{__name__}:Remote"}, "with no options: TypeError", "by name"),
    ],
)
def test_what_is_refused(config: dict[str, object], message: str, hint: str) -> None:
    with pytest.raises(PolicyError) as error:
        kms_client(config, Path())
    assert message in str(error.value)
    assert hint in (error.value.hint or "")


def test_a_failing_constructors_text_is_not_repeated() -> None:
    config = {"client": f"{__name__}:Remote", "url": "http://kms", "token": "s3cret"}
    with pytest.raises(PolicyError, match="with token, url: ValueError") as error:
        kms_client(config, Path())
    assert "s3cret" not in f"{error.value} {error.value.hint}"


class Refusing(CountingKms):
    """A client that refuses its words by an error of ours."""

    def __init__(self, **_: object) -> None:
        raise PolicyError("no such region")


def test_an_error_of_ours_stays_as_the_client_told_it() -> None:
    with pytest.raises(PolicyError, match=r"^no such region$"):
        kms_client({"client": f"{__name__}:Refusing"}, Path())
