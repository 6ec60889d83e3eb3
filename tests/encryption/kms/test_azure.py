"""Azure Key Vault: the real SDK, with an endpoint of the test's behind it, not Azure's."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from secure_bloom.encryption.kms import KeyMisfitError, KmsClient, kms_client, rewrap_with
from secure_bloom.encryption.kms.azure import AzureKmsClient
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    KmsUnavailableError,
    PolicyError,
)
from testing.openbao import certificates
from tests.encryption.kms.hostile_url import assert_no_visit

identity = pytest.importorskip("azure.identity", reason="needs the extra azure")
pytest.importorskip("azure.keyvault.keys", reason="needs the extra azure")

DEK = bytes(range(16))
#: A vault's host ends with the name of the service that its tokens are for.
SERVICE = "vault.localhost"
OAEP = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)


class Credential:
    """A login that always succeeds."""

    def get_token(self, *_: str, **__: Any) -> Any:
        from azure.core.credentials import AccessToken

        return AccessToken("token-of-the-test", int(time.time()) + 3600)


@dataclass
class Vault:
    """Keys by name and version, as Azure's API has them; ``failures`` come first."""

    url: str = ""
    keys: dict[str, rsa.RSAPrivateKey] = field(default_factory=dict)
    failures: list[tuple[int, str]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.calls.append(f"{method} {path}")
        if self.failures:
            status, code = self.failures.pop(0)
            return status, {"error": {"code": code, "message": "a text with a secret in it"}}
        _, _, name, version, *operation = [*path.split("?")[0].split("/"), ""]
        versions = sorted(key for key in self.keys if key.startswith(f"{name}/"))
        found = f"{name}/{version}" if version else (versions or ["none"])[-1]
        if found not in self.keys:
            return 404, {"error": {"code": "KeyNotFound", "message": "not found"}}
        kid = f"{self.url}/keys/{found}"
        if not operation or not operation[0]:
            return 200, {"key": _jwk(kid, self.keys[found]), "attributes": {"enabled": True}}
        try:
            key = self.keys[found].decrypt(_decoded(body["value"]), OAEP)
        except ValueError:
            return 400, {"error": {"code": "BadParameter", "message": "the parameter is wrong"}}
        return 200, {"kid": kid, "value": _encoded(key)}


def _jwk(kid: str, key: rsa.RSAPrivateKey) -> dict[str, Any]:
    numbers = key.public_key().public_numbers()
    n, e = numbers.n.to_bytes(256, "big"), numbers.e.to_bytes(3, "big")
    ops = ["wrapKey", "unwrapKey"]
    return {"kid": kid, "kty": "RSA", "key_ops": ops, "n": _encoded(n), "e": _encoded(e)}


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture
def vault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: rsa.RSAPrivateKey
) -> Iterator[Vault]:
    served = Vault(keys={f"pii/{'a' * 32}": key})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") != "Bearer token-of-the-test":
                status, answer = 401, {}
            else:
                status, answer = served.answer(
                    self.command, self.path, json.loads(content) if content else {}
                )
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header(
                "WWW-Authenticate",
                'Bearer authorization="https://login.microsoftonline.com/tenant", '
                f'resource="https://{SERVICE}:{server.server_port}"',
            )
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _serve  # noqa: N815 - names of http.server

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    host = f"lake.{SERVICE}"
    ca_file = certificates(tmp_path, host)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    served.url = f"https://{host}:{server.server_port}"
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda name, *rest, **more: resolve("127.0.0.1" if name == host else name, *rest, **more),
    )
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(ca_file))
    monkeypatch.setattr(identity, "DefaultAzureCredential", Credential)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield served
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def client(vault: Vault) -> KmsClient:
    table = {"client": "azure", "vault_url": vault.url, "retry_seconds": 3}
    return kms_client(table, Path())


def test_both_ways(client: KmsClient) -> None:
    wrapped = client.wrap_key(DEK, "pii")
    assert wrapped.startswith(f"azure:{'a' * 32}:")
    assert client.unwrap_key(wrapped, "pii") == DEK


def test_an_old_version_still_unwraps(vault: Vault, client: KmsClient) -> None:
    old = client.wrap_key(DEK, "pii")
    vault.keys[f"pii/{'b' * 32}"] = rsa.generate_private_key(65537, 2048)
    renewing = AzureKmsClient(vault_url=vault.url)
    assert renewing.unwrap_key(old, "pii") == DEK
    new = rewrap_with(renewing, old, "pii")
    assert new.startswith(f"azure:{'b' * 32}:")
    assert [renewing.key_version(it) for it in (old, new)] == ["a" * 32, "b" * 32]
    assert renewing.unwrap_key(new, "pii") == DEK


def test_what_another_provider_wrapped_or_somebody_altered(client: KmsClient) -> None:
    wrapped = client.wrap_key(DEK, "pii")
    for text in ("vault:v1:AAAA", "AAAA", wrapped.replace("azure:", "azure:../"), wrapped + "\n"):
        with pytest.raises(FormatError, match="not one of Azure Key Vault"):
            client.unwrap_key(text, "pii")
    altered = wrapped[:60] + ("A" if wrapped[60] != "A" else "B") + wrapped[61:]
    with pytest.raises(KeyMisfitError):
        client.unwrap_key(altered, "pii")


@pytest.mark.parametrize("name", ["../x", "a/b", "", "k?", "k_1"])
def test_a_name_never_leaves_its_path(client: KmsClient, vault: Vault, name: str) -> None:
    with pytest.raises(KeyUnavailableError, match="cannot be one of"):
        client.wrap_key(DEK, name)
    assert vault.calls == []


def test_throttling_is_waited_out(client: KmsClient, vault: Vault) -> None:
    vault.failures = [(429, "Throttled"), (503, "ServiceUnavailable")]
    wrapped = client.wrap_key(DEK, "pii")
    vault.failures = [(429, "Throttled")]
    assert client.unwrap_key(wrapped, "pii") == DEK


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (403, "Forbidden", KeyUnavailableError),
        (404, "KeyNotFound", KeyUnavailableError),
        (401, "Unauthorized", KmsUnavailableError),
    ],
)
def test_each_error_is_the_one_it_should_be(
    client: KmsClient, vault: Vault, status: int, code: str, kind: type[Exception]
) -> None:
    wrapped = client.wrap_key(DEK, "pii")
    vault.failures = [(status, code)] * 3
    with pytest.raises(kind, match=f"HTTP {status}") as caught:
        client.unwrap_key(wrapped, "pii")
    assert "secret" not in str(caught.value)
    assert vault.url in str(caught.value)


def test_a_server_that_is_not_there_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "DefaultAzureCredential", Credential)
    client = AzureKmsClient(vault_url="https://127.0.0.1:1", retry_seconds=0)
    with pytest.raises(KmsUnavailableError, match="is not available: ServiceRequestError"):
        client.wrap_key(DEK, "pii")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "names no vault"),
        ({"vault_url": "http://lake.vault.azure.net"}, "not the address of a vault"),
        ({"vault_url": "lake"}, "not the address of a vault"),
        ({"url": "https://x"}, "unknown option 'url'"),
    ],
)
def test_words_that_make_no_sense(words: dict[str, str], message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        kms_client({"client": "azure", **words}, Path())
    assert message in str(caught.value)


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.keyvault.keys.crypto", None)
    with pytest.raises(PolicyError) as caught:
        AzureKmsClient(vault_url="https://lake.vault.azure.net")
    assert caught.value.hint == "pip install 'secure-bloom[azure]'"


def test_an_address_in_a_file_is_not_visited(client: KmsClient) -> None:
    assert_no_visit(client, "pii")
