"""Calls that are repeated, bounded and given up."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.encryption.kms import calls
from secure_bloom.encryption.kms.aws import AwsKmsClient
from secure_bloom.encryption.kms.azure import AzureKmsClient
from secure_bloom.encryption.kms.calls import Calls, TransientFailureError, is_this_machine
from secure_bloom.encryption.kms.client import KmsClient
from secure_bloom.encryption.kms.gcp import GcpKmsClient
from secure_bloom.errors import KeyUnavailableError, KmsUnavailableError
from testing.openbao import certificates


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(calls, "time", clock)
    return clock


def failing(*failures: TransientFailureError) -> Callable[[], str]:
    left = list(failures)

    def call() -> str:
        if left:
            raise left.pop(0)
        return "answer"

    return call


def throttled(pause: float | None = None) -> TransientFailureError:
    return TransientFailureError("HTTP 429", pause=pause)


def test_pauses_grow_and_are_never_the_same(clock: Clock) -> None:
    for _ in range(2):
        assert Calls("KMS").run(failing(*(throttled() for _ in range(8)))) == "answer"
    first, second = clock.pauses[:8], clock.pauses[8:]
    assert first != second
    assert first[-1] > 10 * first[0]
    assert max(clock.pauses) <= 5


def test_the_pause_that_the_kms_wants_is_the_least(clock: Clock) -> None:
    Calls("KMS").run(failing(throttled(7)))
    assert 7 < clock.pauses[0] < 8


def test_it_gives_up_and_then_fails_at_once_for_a_while(clock: Clock) -> None:
    waiting = Calls("KMS at home", retry_seconds=30)
    with pytest.raises(KmsUnavailableError, match="KMS at home is not available: HTTP 429"):
        waiting.run(failing(*(throttled() for _ in range(1000))))
    assert 20 < sum(clock.pauses) <= 30
    asked: list[int] = []
    with pytest.raises(KmsUnavailableError):
        waiting.run(lambda: asked.append(1))
    assert asked == []
    clock.now += 11
    assert waiting.run(failing()) == "answer"
    assert waiting.run(failing()) == "answer"


def test_a_kms_that_never_answered_is_not_waited_for_long(clock: Clock) -> None:
    silent = [TransientFailureError("refused", answered=False) for _ in range(2000)]
    with pytest.raises(KmsUnavailableError):
        Calls("KMS").run(failing(*silent))
    assert sum(clock.pauses) <= 3
    known = Calls("KMS")
    known.run(failing())
    clock.pauses.clear()
    with pytest.raises(KmsUnavailableError):
        known.run(failing(*silent))
    assert sum(clock.pauses) > 20


def test_other_errors_are_not_repeated(clock: Clock) -> None:
    def refuse() -> None:
        raise KeyUnavailableError("no")

    with pytest.raises(KeyUnavailableError):
        Calls("KMS").run(refuse)
    assert clock.pauses == []


def test_calls_at_a_time_are_bounded() -> None:
    lock, now, most = threading.Lock(), 0, 0
    bounded = Calls("KMS", at_once=3)

    def call() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.005)
        with lock:
            now -= 1

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(lambda _: bounded.run(call), range(60)))
    assert most == 3


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("10.0.0.1", False),
        ("127.0.0.1.example.com", False),
        ("localhost.example.com", False),
        ("", False),
    ],
)
def test_what_this_machine_is(host: str, here: bool) -> None:
    assert is_this_machine(host) is here


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
