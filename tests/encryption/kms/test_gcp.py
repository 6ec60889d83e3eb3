"""Google Cloud KMS: the real SDK, with an endpoint of the test's behind it, not Google's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from secure_bloom.encryption.kms import KeyMisfitError, KmsClient, kms_client, rewrap_with
from secure_bloom.encryption.kms.gcp import GcpKmsClient
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    KmsUnavailableError,
    PolicyError,
)
from tests.encryption.kms.hostile_url import assert_no_visit

kms = pytest.importorskip("google.cloud.kms", reason="needs the extra gcp")
grpc = pytest.importorskip("grpc", reason="needs the extra gcp")

RING = "projects/p/locations/eu/keyRings/lake"
DEK = bytes(range(16))


@dataclass
class Endpoint:
    """Encrypts and decrypts as Google's API has it; ``failures`` come first."""

    keys: dict[str, bytes] = field(
        default_factory=lambda: {f"{RING}/cryptoKeys/{n}": os.urandom(16) for n in ("k", "other")}
    )
    failures: list[Any] = field(default_factory=list)
    calls: int = 0
    address: str = ""

    def encrypt(self, request: Any, context: Any) -> Any:
        nonce = os.urandom(12)
        cipher = AESGCM(self._key(request.name, context))
        return kms.EncryptResponse(
            ciphertext=nonce + cipher.encrypt(nonce, request.plaintext, None)
        )

    def decrypt(self, request: Any, context: Any) -> Any:
        cipher, sealed = AESGCM(self._key(request.name, context)), request.ciphertext
        try:
            return kms.DecryptResponse(plaintext=cipher.decrypt(sealed[:12], sealed[12:], None))
        except (InvalidTag, ValueError):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Decryption failed: the ciphertext ...")

    def _key(self, name: str, context: Any) -> bytes:
        self.calls += 1
        if self.failures:
            context.abort(self.failures.pop(0), "a text with a secret in it")
        if name not in self.keys:
            context.abort(grpc.StatusCode.NOT_FOUND, "not found")
        return self.keys[name]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    served = Endpoint()
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            method, request_deserializer=kind.deserialize, response_serializer=answer.serialize
        )
        for name, method, kind, answer in (
            ("Encrypt", served.encrypt, kms.EncryptRequest, kms.EncryptResponse),
            ("Decrypt", served.decrypt, kms.DecryptRequest, kms.DecryptResponse),
        )
    }
    service = "google.cloud.kms.v1.KeyManagementService"
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    served.address = f"http://127.0.0.1:{port}"
    yield served
    server.stop(None)


@pytest.fixture
def client(endpoint: Endpoint) -> KmsClient:
    table = {"client": "gcp", "key_ring": RING, "endpoint": endpoint.address, "retry_seconds": 3}
    return kms_client(table, Path())


def test_both_ways_by_name_and_by_path(client: KmsClient) -> None:
    wrapped = client.wrap_key(DEK, "k")
    assert client.unwrap_key(wrapped, "k") == DEK
    assert client.unwrap_key(wrapped, f"{RING}/cryptoKeys/k") == DEK
    assert client.unwrap_key(rewrap_with(client, wrapped, "k"), "k") == DEK


def test_a_key_of_another_make(client: KmsClient) -> None:
    wrapped = client.wrap_key(DEK, "k")
    with pytest.raises(KeyMisfitError, match="'other' does not fit"):
        client.unwrap_key(wrapped, "other")
    with pytest.raises(FormatError, match="not base64"):
        client.unwrap_key("vault:v1:AAAA", "k")


@pytest.mark.parametrize("name", ["../x", "a/b", "", "k?", "projects/p/cryptoKeys/k", "k\n"])
def test_a_name_never_leaves_its_ring(client: KmsClient, endpoint: Endpoint, name: str) -> None:
    with pytest.raises(KeyUnavailableError, match="cannot be one of"):
        client.wrap_key(DEK, name)
    assert endpoint.calls == 0


def test_throttling_is_waited_out(client: KmsClient, endpoint: Endpoint) -> None:
    endpoint.failures = [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE]
    assert client.wrap_key(DEK, "k")
    assert endpoint.calls == 3


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("PERMISSION_DENIED", KeyUnavailableError),
        ("NOT_FOUND", KeyUnavailableError),
        ("FAILED_PRECONDITION", KeyUnavailableError),
        ("UNAUTHENTICATED", KmsUnavailableError),
    ],
)
def test_each_error_is_the_one_it_should_be(
    client: KmsClient, endpoint: Endpoint, status: str, kind: type[Exception]
) -> None:
    endpoint.failures = [grpc.StatusCode[status]]
    with pytest.raises(kind, match=status) as caught:
        client.wrap_key(DEK, "k")
    assert "secret" not in str(caught.value)
    assert endpoint.address in str(caught.value)


def test_a_server_that_is_not_there_is_an_outage() -> None:
    client = GcpKmsClient(key_ring=RING, endpoint="http://127.0.0.1:1", retry_seconds=0)
    with pytest.raises(KmsUnavailableError, match="is not available: UNAVAILABLE"):
        client.wrap_key(DEK, "k")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"key_ring": "lake"}, "is not a key ring"),
        ({"endpoint": "http://kms.example.com"}, "is neither a host nor"),
        ({"endpoint": "https://kms.example.com"}, "is neither a host nor"),
        ({"keyring": RING}, "unknown option 'keyring'"),
    ],
)
def test_words_that_make_no_sense(words: dict[str, str], message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        kms_client({"client": "gcp", **words}, Path())
    assert message in str(caught.value)


def test_without_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with pytest.raises(KmsUnavailableError, match="DefaultCredentialsError"):
        GcpKmsClient(key_ring=RING)


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.kms", None)
    monkeypatch.delattr(sys.modules["google.cloud"], "kms", raising=False)
    with pytest.raises(PolicyError) as caught:
        GcpKmsClient(key_ring=RING)
    assert caught.value.hint == "pip install 'secure-bloom[gcp]'"


def test_an_address_in_a_file_is_not_visited(client: KmsClient) -> None:
    assert_no_visit(client, "k")
