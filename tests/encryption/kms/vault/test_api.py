"""What a server answers that is not Vault, or one in trouble, and connections that fail."""

from __future__ import annotations

import base64
import gzip
import json
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.encryption.kms import KmsClient, kms_client
from secure_bloom.encryption.kms.vault.api import _NEW_TOKENS, VaultApi
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


class TestLogins:
    def test_without_a_token_the_error_names_its_variables(
        self, openbao: OpenBao, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(KmsUnavailableError, match="there is no token") as caught:
            client_of(openbao).wrap_key(DEK, "k")
        assert "VAULT_TOKEN or BAO_TOKEN" in str(caught.value.hint)

    def test_the_token_in_the_home_folder_is_not_read(
        self, openbao: OpenBao, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / ".vault-token").write_text(openbao.root)
        monkeypatch.setenv("HOME", str(tmp_path))
        with pytest.raises(KmsUnavailableError, match="there is no token"):
            client_of(openbao).wrap_key(DEK, openbao.make_key("home"))
        client = client_of(openbao, token_file="~/.vault-token")
        assert client.wrap_key(DEK, "home")

    def test_a_token_nobody_knows(self, openbao: OpenBao, monkeypatch: pytest.MonkeyPatch) -> None:
        as_token(monkeypatch, "hvs.unknown")
        with pytest.raises(KmsUnavailableError, match="refuses the token: HTTP 403") as caught:
            client_of(openbao).wrap_key(DEK, openbao.make_key("unknown"))
        assert "hvs.unknown" not in str(caught.value)

    def test_a_revoked_token_is_read_anew_from_its_file(
        self, openbao: OpenBao, tmp_path: Path
    ) -> None:
        name, file = openbao.make_key("agent"), tmp_path / "token"
        file.write_text(first := openbao.token("root"))
        client = client_of(openbao, token_file=str(file))
        wrapped = client.wrap_key(DEK, name)
        file.write_text(openbao.token("root") + "\n")
        openbao.revoke(first)
        assert client.unwrap_key(wrapped, name) == DEK

    def test_a_token_that_expires_in_mid_run_is_renewed(
        self, openbao: OpenBao, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = openbao.make_key("renewed")

        def lives_on() -> bool:
            """Whether calls outlived a token twice; False where the machine stood still."""
            as_token(monkeypatch, openbao.token("root", ttl="2s", renewable=True))
            client = client_of(openbao)
            wrapped = client.wrap_key(DEK, name)
            begun = last = time.monotonic()
            while last < begun + 4:
                try:
                    assert client.unwrap_key(wrapped, name) == DEK
                except KmsUnavailableError:
                    # Nobody can renew a token in a process that is not run for as long as it lives.
                    if time.monotonic() - last < 1:
                        raise
                    return False
                last = time.monotonic()
                time.sleep(0.3)
            return True

        assert any(lives_on() for _ in range(9))

    def test_an_approle_logs_in_again_when_its_token_is_over(
        self, openbao: OpenBao, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = openbao.make_key("approle")
        openbao.allow(
            "approle-key",
            {
                f"{verb}/{name}": right
                for verb, right in (("encrypt", "update"), ("decrypt", "update"), ("keys", "read"))
            },
        )
        openbao.ask("POST", "sys/auth/approle", {"type": "approle"})
        role = {"token_policies": ["approle-key"], "token_ttl": "1s", "token_max_ttl": "1s"}
        openbao.ask("POST", "auth/approle/role/lake", role)
        role_id = openbao.ask("GET", "auth/approle/role/lake/role-id")["data"]["role_id"]
        secret = openbao.ask("POST", "auth/approle/role/lake/secret-id", {})["data"]["secret_id"]
        (tmp_path / "secret_id").write_text(secret)
        monkeypatch.setenv("VAULT_ROLE_ID", role_id)
        client = kms_client(openbao.table(auth="approle", secret_id_file="secret_id"), tmp_path)
        wrapped = client.wrap_key(DEK, name)
        time.sleep(1.2)
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda _: client.unwrap_key(wrapped, name), range(32)))
        assert set(found) == {DEK}

    def test_an_approle_with_a_wrong_secret(
        self, openbao: OpenBao, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("VAULT_ROLE_ID", "role")
        monkeypatch.setenv("VAULT_SECRET_ID", "not-the-secret")
        with pytest.raises(KmsUnavailableError, match="refuses the login by approle") as caught:
            client_of(openbao, auth="approle", auth_mount="elsewhere").wrap_key(DEK, "k")
        assert "not-the-secret" not in str(caught.value)
        assert "auth_mount ('elsewhere')" in str(caught.value.hint)

    def test_a_service_account_of_kubernetes(self, openbao: OpenBao, tmp_path: Path) -> None:
        """OpenBao's own method, which has the token reviewed by an API server of the test's."""
        name = openbao.make_key("pods")
        openbao.ask("POST", "sys/auth/kubernetes", {"type": "kubernetes"})
        (tmp_path / "jwt").write_text(_service_account_token())
        with _token_reviewer() as reviewer:
            openbao.ask(
                "POST",
                "auth/kubernetes/config",
                {
                    "kubernetes_host": reviewer,
                    "token_reviewer_jwt": _service_account_token(),
                    "disable_local_ca_jwt": True,
                    "kubernetes_ca_cert": openbao.ca_file.read_text(),
                },
            )
            role = {
                "bound_service_account_names": ["spark"],
                "bound_service_account_namespaces": ["lake"],
                "token_policies": ["root"],
            }
            role["token_policies"] = [
                openbao.allow(
                    "pods",
                    {
                        f"decrypt/{name}": "update",
                        f"encrypt/{name}": "update",
                        f"keys/{name}": "read",
                    },
                )
            ]
            openbao.ask("POST", "auth/kubernetes/role/spark", role)
            client = kms_client(
                openbao.table(auth="kubernetes", role="spark", jwt_file="jwt"), tmp_path
            )
            assert client.unwrap_key(client.wrap_key(DEK, name), name) == DEK


def _service_account_token() -> str:
    claims = {
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:lake:spark",
        "kubernetes.io/serviceaccount/namespace": "lake",
        "kubernetes.io/serviceaccount/service-account.name": "spark",
        "kubernetes.io/serviceaccount/service-account.uid": "1",
    }
    parts = (json.dumps({"alg": "RS256"}), json.dumps(claims), "signature")
    return ".".join(base64.urlsafe_b64encode(p.encode()).decode().rstrip("=") for p in parts)


@contextmanager
def _token_reviewer() -> Iterator[str]:
    """The one call of a Kubernetes API server that OpenBao makes."""
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "status": {
            "authenticated": True,
            "user": {
                "username": "system:serviceaccount:lake:spark",
                "uid": "1",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:lake"],
            },
        },
    }
    with http_server(lambda _method, _path, _body: (201, {}, json.dumps(review).encode())) as url:
        yield url


class TestSecrets:
    """What a login needs, where it is missing or is no text; no server is asked."""

    def client(self, **words: object) -> KmsClient:
        return kms_client({"client": "vault", "address": "http://127.0.0.1:1", **words}, Path())

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, "the token cannot be read: No such file"),
            (b"", "is empty, or no line of text"),
            (b"two\nlines", "is empty, or no line of text"),
            (b"hvs.\xff", "is empty, or no line of text"),
        ],
    )
    def test_a_file_without_a_token(
        self, tmp_path: Path, content: bytes | None, message: str
    ) -> None:
        file = tmp_path / "token"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(KmsUnavailableError, match=message) as caught:
            self.client(token_file=str(file)).wrap_key(DEK, "k")
        assert caught.value.path == str(file)
        assert caught.value.__cause__ is None or content is None
        assert "hvs" not in str(caught.value)

    def test_an_approle_without_a_role_id(self) -> None:
        with pytest.raises(KmsUnavailableError, match="there is no role_id") as caught:
            self.client(auth="approle").wrap_key(DEK, "k")
        assert "role_id_file of [kms]" in str(caught.value.hint)

    def test_a_login_without_a_token(self, tmp_path: Path) -> None:
        for name in ("role", "secret"):
            (tmp_path / name).write_text(name)
        words = {"role_id_file": str(tmp_path / "role"), "secret_id_file": str(tmp_path / "secret")}
        with (
            http_server(lambda *_: (200, {}, b'{"auth": {}}')) as url,
            pytest.raises(KmsUnavailableError, match="no token after a login"),
        ):
            self.client(auth="approle", address=url, **words).wrap_key(DEK, "k")

    def test_a_server_that_refuses_every_new_token_is_left(self, tmp_path: Path) -> None:
        for name in ("role", "secret"):
            (tmp_path / name).write_text(name)
        words = {"role_id_file": str(tmp_path / "role"), "secret_id_file": str(tmp_path / "secret")}
        logins: list[str] = []

        def answer(_method: str, path: str, _body: bytes) -> tuple[int, dict[str, str], bytes]:
            if not path.endswith("/login"):
                return 403, {}, b'{"errors": ["permission denied"]}'
            logins.append(path)
            token = {"client_token": f"hvs.{len(logins)}"}
            return 200, {}, json.dumps({"auth": token}).encode()

        with (
            http_server(answer) as url,
            pytest.raises(SecureBloomError, match="HTTP 403") as caught,
        ):
            self.client(auth="approle", address=url, **words).unwrap_key("vault:v1:YQ==", "k")
        assert len(logins) == _NEW_TOKENS + 1
        assert "hvs" not in str(caught.value)
