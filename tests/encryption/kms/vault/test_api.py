"""What a server answers that is not Vault, or one in trouble, and connections that fail."""

from __future__ import annotations

import base64
import gzip
import json
import sys
import threading
import tracemalloc
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.encryption.kms import KmsClient, kms_client
from secure_bloom.encryption.kms.vault.api import VaultApi
from secure_bloom.encryption.kms.vault.settings import VaultSettings
from secure_bloom.errors import (
    KmsUnavailableError,
    PolicyError,
    SecureBloomError,
)
from testing.http_servers import DEK, as_token, client_of, http_server
from testing.openbao import OpenBao


class TestTheWay:
    def test_a_server_that_is_not_there_is_an_outage(self, root: OpenBao) -> None:
        client = kms_client(
            {"client": "vault", "address": "http://127.0.0.1:1", "retry_seconds": 0}, Path()
        )
        with pytest.raises(
            KmsUnavailableError, match=r"http://127\.0\.0\.1:1 .*Connection refused"
        ):
            client.unwrap_key("vault:v1:AAAA", "k")

    def test_a_certificate_that_does_not_fit(self, root: OpenBao) -> None:
        client = client_of(root, address=root.tls_address)
        with pytest.raises(
            KmsUnavailableError, match=r"certificate of https.* does not fit"
        ) as got:
            client.wrap_key(DEK, "k")
        assert "ca_file" in str(got.value.hint)

    def test_a_ca_file_that_is_not_there(self, root: OpenBao, tmp_path: Path) -> None:
        table = root.table(address=root.tls_address, ca_file="none.pem")
        with pytest.raises(PolicyError, match=r"none\.pem: the CA file of \[kms\] is not there"):
            kms_client(table, tmp_path)

    def test_tls_where_there_is_none(self, root: OpenBao) -> None:
        address = root.address.replace("http:", "https:")
        with pytest.raises(KmsUnavailableError, match="does not speak TLS"):
            client_of(root, address=address, retry_seconds=0).wrap_key(DEK, "k")


class TestAnswers:
    """What a server says that is not Vault, or one in trouble."""

    SECRET = "vault:v1:c2VjcmV0c2VjcmV0"

    def client(self, url: str, **words: Any) -> KmsClient:
        return kms_client({"client": "vault", "address": url, "retry_seconds": 1, **words}, Path())

    @pytest.fixture(autouse=True)
    def token(self, monkeypatch: pytest.MonkeyPatch) -> None:
        as_token(monkeypatch, "hvs.token-of-the-test")

    @pytest.mark.parametrize(
        ("status", "body"),
        [
            (200, b"<html>a proxy</html>"),
            (200, b"[]"),
            (200, b"{}"),
            (200, b'{"data": {}}'),
            (200, b'{"data": {"plaintext": 7}}'),
            (200, b'{"data": {"plaintext": "no base64"}}'),
            (204, b""),
            (301, b""),
            (404, b"nothing here"),
            (418, b"{}"),
        ],
    )
    def test_an_answer_that_is_not_vaults(self, status: int, body: bytes) -> None:
        with (
            http_server(lambda *_: (status, {"Location": "http://127.0.0.1:1"}, body)) as url,
            pytest.raises(KmsUnavailableError, match="does not come from Vault") as caught,
        ):
            self.client(url).unwrap_key(self.SECRET, "k")
        assert self.SECRET not in str(caught.value)

    def test_a_server_that_repeats_what_was_sent_is_not_repeated(self) -> None:
        echo = json.dumps({"errors": [f"no {self.SECRET} by hvs.token-of-the-test\n\x1b[31m"]})
        with (
            http_server(lambda *_: (400, {}, echo.encode())) as url,
            pytest.raises(SecureBloomError) as caught,
        ):
            self.client(url).unwrap_key(self.SECRET, "k")
        assert "no ... by ..." in str(caught.value)
        assert "\x1b" not in str(caught.value)

    def test_throttling_is_waited_out(self) -> None:
        answers = [(429, {"Retry-After": "0"}), (503, {}), (200, {})]
        key = json.dumps({"data": {"plaintext": base64.b64encode(DEK).decode()}}).encode()
        calls: list[str] = []

        def answer(_method: str, path: str, _body: bytes) -> tuple[int, dict[str, str], bytes]:
            if "decrypt" not in path:
                return 200, {}, b'{"data": {}}'
            calls.append(path)
            status, headers = answers[len(calls) - 1]
            return status, headers, key if status == 200 else b'{"errors": ["busy"]}'

        with http_server(answer) as url:
            assert self.client(url).unwrap_key(self.SECRET, "k") == DEK
        assert len(calls) == 3

    def test_throttling_without_end_is_told_and_not_waited_for_again(self) -> None:
        calls: list[str] = []

        def sealed(_method: str, path: str, _body: bytes) -> tuple[int, dict[str, str], bytes]:
            calls.append(path)
            return 503, {}, b'{"errors": ["Vault is sealed"]}'

        with http_server(sealed) as url:
            client = self.client(url)
            with pytest.raises(KmsUnavailableError, match="HTTP 503: Vault is sealed"):
                client.unwrap_key(self.SECRET, "k")
            tried = len(calls)
            for _ in range(100):
                with pytest.raises(KmsUnavailableError, match="HTTP 503: Vault is sealed"):
                    client.unwrap_key(self.SECRET, "k")
        assert len(calls) == tried

    @pytest.mark.parametrize(
        ("key", "message"),
        [
            ({"soft_deleted": True}, "is deleted"),
            ({"supports_encryption": False}, "is of another type"),
            # What is answered to reading the key has no ciphertext.
            ({"supports_encryption": True}, "no ciphertext"),
        ],
    )
    def test_a_key_that_wraps_nothing(self, key: dict[str, bool], message: str) -> None:
        body = json.dumps({"data": key}).encode()
        with (
            http_server(lambda *_: (200, {}, body)) as url,
            pytest.raises(SecureBloomError, match=message),
        ):
            self.client(url).wrap_key(DEK, "k")

    def test_without_the_sdk_the_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "hvac", None)
        with pytest.raises(PolicyError, match="needs hvac") as caught:
            self.client("http://127.0.0.1:1")
        assert caught.value.hint == "pip install 'secure-bloom[vault]'"

    def test_a_server_that_hangs_up(self) -> None:
        def hang_up(*_: object) -> tuple[int, dict[str, str], bytes]:
            raise ConnectionError

        with (
            http_server(hang_up) as url,
            pytest.raises(KmsUnavailableError, match="no answer: ConnectionError"),
        ):
            self.client(url, retry_seconds=0).unwrap_key(self.SECRET, "k")


@pytest.mark.parametrize("form", ["endless", "packed", "nested"])
def test_an_answer_that_would_take_all_memory_is_refused(form: str) -> None:
    content = {"nested": b"[" * 1_000_000, "packed": gzip.compress(bytes(64 << 20)), "endless": b""}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            if form == "packed":
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(content[form])
                while form == "endless":
                    self.wfile.write(bytes(1 << 20))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        api = VaultApi(VaultSettings(address=f"http://127.0.0.1:{server.server_port}"))
        client = api.client("token")
        tracemalloc.start()
        with pytest.raises(KmsUnavailableError) as refused:
            api.request(client.auth.token.lookup_self)
        assert tracemalloc.get_traced_memory()[1] < 48 << 20
    finally:
        tracemalloc.stop()
        server.shutdown()
        server.server_close()
    assert "does not come from Vault" in refused.value.message
    assert refused.value.hint is not None
