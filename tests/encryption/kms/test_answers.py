"""Answers of AWS, Azure and Google that would take all memory, or that no KMS gives."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.encryption.kms.aws import AwsKmsClient
from secure_bloom.encryption.kms.azure import AzureKmsClient
from secure_bloom.encryption.kms.client import KmsClient
from secure_bloom.encryption.kms.gcp import GcpKmsClient
from secure_bloom.errors import KmsUnavailableError
from testing.openbao import certificates

for _module in ("boto3", "azure.identity", "google.cloud.kms"):
    pytest.importorskip(_module, reason="needs the extras aws, azure and gcp")

#: What a client may take for an answer: the limit, its copies, and what its SDK makes of it.
MOST = 64 << 20
VERSION = "a" * 32
#: A vault's host ends with the name of the service that its tokens are for.
SERVICE = "vault.localhost"


@cache
def packed() -> bytes:
    """Zeros, which take a second to pack: not where tests are collected."""
    return gzip.compress(bytes(256 << 20), 1)


BODIES = {
    "packed": b"",
    "nested": b"[" * 200_000,
    "nested in a member": b'{"Plaintext":' + b"[" * 200_000,
    "a list": b"[1]",
    "a number": b'{"Plaintext": 7, "kid": "x", "value": []}',
    "no base64": b'{"Plaintext": "A", "kid": "x", "value": "\xc3\xa9"}',
    "empty": b"{}",
    "endless": b"",
}


@contextmanager
def serving(form: str, certificate: Path | None = None) -> Iterator[int]:
    """A server that gives one answer to all requests with a login; its port."""
    answered = []
    body = packed() if form == "packed" else BODIES[form]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if "Authorization" in self.headers:
                answered.append(form)
            self.send_response(200 if answered else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header(
                "WWW-Authenticate",
                'Bearer authorization="https://login.microsoftonline.com/tenant", '
                f'resource="https://{SERVICE}:{server.server_port}"',
            )
            if form == "packed":
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body if answered else b"")
                while answered and form == "endless":
                    self.wfile.write(bytes(1 << 20))

        do_GET = do_POST  # noqa: N815 - names of http.server

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate / "server.pem", certificate / "server.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port
        assert answered
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def refused(client: KmsClient, wrapped: str, says: str = "") -> None:
    """The client refuses what its server answers, and takes little memory for that."""
    tracemalloc.start()
    try:
        with pytest.raises(KmsUnavailableError, match="does not come from its KMS") as caught:
            client.unwrap_key(wrapped, "k")
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
    assert says in str(caught.value)
    assert caught.value.hint is not None


@pytest.mark.parametrize("form", list(BODIES))
def test_aws(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with serving(form) as port:
        address = f"http://127.0.0.1:{port}"
        client = AwsKmsClient(region="eu-west-1", endpoint_url=address, retry_seconds=0)
        refused(client, "AAAA", "4,194,304" if form == "endless" else "")


class Credential:
    """A login that always succeeds."""

    def get_token(self, *_: str, **__: Any) -> Any:
        from azure.core.credentials import AccessToken

        return AccessToken("token-of-the-test", 1 << 40)


# The SDK makes a text of a number.
@pytest.mark.parametrize("form", [form for form in BODIES if form != "a number"])
def test_azure(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import azure.identity
    from azure.keyvault.keys.crypto import CryptographyClient

    monkeypatch.setattr(azure.identity, "DefaultAzureCredential", Credential)
    host, resolve = f"lake.{SERVICE}", socket.getaddrinfo
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificates(tmp_path, host)))
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda name, *rest, **more: resolve("127.0.0.1" if name == host else name, *rest, **more),
    )
    # It would ask for the key itself first: what follows is the operation.
    monkeypatch.setattr(CryptographyClient, "_initialize", lambda *_, **__: None)
    with serving(form, tmp_path) as port:
        client = AzureKmsClient(vault_url=f"https://{host}:{port}", retry_seconds=0)
        refused(client, f"azure:{VERSION}:AAAA", "4,194,304" if form == "endless" else "")


@contextmanager
def google_endpoint(size: int, **settings: Any) -> Iterator[str]:
    """An endpoint of Google's that answers with so many bytes; its address."""
    import grpc
    from google.cloud import kms

    answer = kms.DecryptResponse(plaintext=bytes(size))
    handler = grpc.unary_unary_rpc_method_handler(
        lambda *_: answer, response_serializer=kms.DecryptResponse.serialize
    )
    service = "google.cloud.kms.v1.KeyManagementService"
    server = grpc.server(ThreadPoolExecutor(2), **settings)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {"Decrypt": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("tls", [False, True])
def test_google(packed: bool, tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    import google.auth
    import grpc
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.kms_v1.services.key_management_service.transports import (
        KeyManagementServiceGrpcTransport as Transport,
    )

    ring = "projects/p/locations/eu/keyRings/lake"
    settings = {"compression": grpc.Compression.Gzip} if packed else {}
    with google_endpoint(8 << 20, **settings) as address:
        if tls:
            # The channel of a host is Google's own, here without TLS and without a login.
            monkeypatch.setattr(google.auth, "default", lambda **_: (AnonymousCredentials(), None))
            monkeypatch.setattr(
                Transport,
                "create_channel",
                lambda host, options, **_: grpc.insecure_channel(host, options),
            )
        client = GcpKmsClient(
            key_ring=ring, endpoint=address if tls else f"http://{address}", retry_seconds=0
        )
        refused(client, "AAAA", "4,194,304")
