"""Vault's client against a real OpenBao server on a loopback port."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.encryption.keys import KeyResolver, KmsClient, kms_client, rewrap_with
from secure_bloom.encryption.keys.wrapping import KeyEncryptionKey, wrap_once, wrap_twice
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    KmsUnavailableError,
    PolicyError,
    SecureBloomError,
)
from tests.openbao import OpenBao

DEK = bytes(range(16))


@pytest.fixture
def root(openbao: OpenBao, monkeypatch: pytest.MonkeyPatch) -> OpenBao:
    """The server, whose root token is in the environment."""
    monkeypatch.setenv("VAULT_TOKEN", openbao.root)
    return openbao


def client_of(server: OpenBao, **words: Any) -> KmsClient:
    return kms_client(server.table(**words), Path())


def as_token(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("VAULT_TOKEN", token)


class TestWrapping:
    def test_both_ways_and_verbatim(self, root: OpenBao) -> None:
        client = client_of(root)
        wrapped = client.wrap_key(DEK, root.make_key("both"))
        assert wrapped.startswith("vault:v1:")
        assert client.unwrap_key(wrapped, "both") == DEK
        answer = root.ask("POST", "transit/decrypt/both", {"ciphertext": wrapped})
        assert base64.b64decode(answer["data"]["plaintext"]) == DEK

    def test_key_material_both_ways(self, root: OpenBao) -> None:
        client, name = client_of(root), root.make_key("material")
        file = KeyResolver(client).for_file()
        for material in (
            wrap_once(DEK, client, name),
            wrap_twice(DEK, KeyEncryptionKey.create(client, name)),
        ):
            assert file.column_key("a", material.serialize()).key == DEK

    def test_a_rotated_key_opens_old_and_rewraps_to_new(self, root: OpenBao) -> None:
        client, name = client_of(root), root.make_key("rotated")
        old = client.wrap_key(DEK, name)
        root.ask("POST", "transit/keys/rotated/rotate", {})
        assert client.unwrap_key(old, name) == DEK
        new = rewrap_with(client, old, name)
        assert new.startswith("vault:v2:")
        assert client.unwrap_key(new, name) == DEK

    def test_a_mount_and_a_namespace_of_ones_own(self, root: OpenBao) -> None:
        root.ask("POST", "sys/namespaces/team", {})
        inside = {"X-Vault-Namespace": "team"}
        root.ask("POST", "sys/mounts/keys/lake", {"type": "transit"}, **inside)
        root.ask("POST", "keys/lake/keys/k", {}, **inside)
        client = client_of(root, namespace="team", mount="keys/lake")
        assert client.unwrap_key(client.wrap_key(DEK, "k"), "k") == DEK

    def test_tls_under_a_ca_of_ones_own(
        self, root: OpenBao, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root.make_key("tls")
        table = {"client": "vault", "address": root.tls_address, "retry_seconds": 0}
        for client in (
            kms_client({**table, "ca_file": root.ca_file.name}, root.ca_file.parent),
            self.from_environment(monkeypatch, table, root),
        ):
            assert client.unwrap_key(client.wrap_key(DEK, "tls"), "tls") == DEK

    def from_environment(
        self, monkeypatch: pytest.MonkeyPatch, table: dict[str, Any], root: OpenBao
    ) -> KmsClient:
        monkeypatch.setenv("BAO_CACERT", str(root.ca_file))
        return kms_client(table, Path())

    def test_what_is_not_given_comes_from_the_environment(
        self, root: OpenBao, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BAO_ADDR", root.address)
        client = kms_client({"client": "vault"}, Path())
        assert client.wrap_key(DEK, root.make_key("env")).startswith("vault:v1:")


class TestRefusals:
    def test_a_missing_key_is_never_made(self, root: OpenBao) -> None:
        with pytest.raises(KeyUnavailableError, match=r"has no master key 'never-made'"):
            client_of(root).wrap_key(DEK, "never-made")
        assert "never-made" not in root.key_names()

    def test_a_key_that_may_encrypt_and_not_decrypt(
        self, root: OpenBao, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = root.make_key("one-way")
        rights = {f"encrypt/{name}": "update", f"keys/{name}": "read"}
        as_token(monkeypatch, root.token(root.allow("one-way", rights)))
        client = client_of(root)
        wrapped = client.wrap_key(DEK, name)
        with pytest.raises(KeyUnavailableError, match=r"HTTP 403: .*permission denied") as caught:
            client.unwrap_key(wrapped, name)
        assert caught.value.hint == "the token's policy needs update on transit/decrypt/one-way"

    def test_a_token_that_may_not_look_is_told_so(
        self, root: OpenBao, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = root.make_key("blind")
        token = root.token(root.allow("blind", {f"encrypt/{name}": "update"}))
        as_token(monkeypatch, token)
        with pytest.raises(KeyUnavailableError) as caught:
            client_of(root).wrap_key(DEK, name)
        assert "needs read on transit/keys/blind" in str(caught.value.hint)

    def test_a_key_of_another_type(self, root: OpenBao) -> None:
        with pytest.raises(KeyUnavailableError, match="does not encrypt"):
            client_of(root).wrap_key(DEK, root.make_key("signs", type="ed25519"))

    def test_a_deleted_key(self, root: OpenBao) -> None:
        client, name = client_of(root), root.make_key("gone")
        wrapped = client.wrap_key(DEK, name)
        root.ask("POST", "transit/keys/gone/config", {"deletion_allowed": True})
        root.ask("DELETE", "transit/keys/gone")
        with pytest.raises(KeyUnavailableError, match="'gone': HTTP 400: encryption key not found"):
            client.unwrap_key(wrapped, name)

    def test_a_retired_version(self, root: OpenBao) -> None:
        client, name = client_of(root), root.make_key("retired")
        wrapped = client.wrap_key(DEK, name)
        root.ask("POST", "transit/keys/retired/rotate", {})
        root.ask("POST", "transit/keys/retired/config", {"min_decryption_version": 2})
        with pytest.raises(KeyUnavailableError, match=r"'retired': HTTP 400: .*too old"):
            client.unwrap_key(wrapped, name)

    @pytest.mark.parametrize("wrapped", ["AAAA", "vault:v1:", "vault:v0:AAAA", "vault:v1:AA\n", ""])
    def test_what_another_provider_wrapped(self, root: OpenBao, wrapped: str) -> None:
        with pytest.raises(FormatError, match="not one of Vault or OpenBao"):
            client_of(root).unwrap_key(wrapped, "k")

    def test_altered_and_of_another_key(self, root: OpenBao) -> None:
        client = client_of(root)
        wrapped = client.wrap_key(DEK, root.make_key("right"))
        root.make_key("wrong")
        middle = len(wrapped) // 2
        altered = (
            wrapped[:middle] + ("A" if wrapped[middle] != "A" else "B") + wrapped[middle + 1 :]
        )
        for text, name in ((wrapped, "wrong"), (altered, "right")):
            with pytest.raises(KeyUnavailableError, match=f"'{name}' does not fit"):
                client.unwrap_key(text, name)

    @pytest.mark.parametrize(
        "name", ["../sys/seal", "a/b", "..", "", "k?x=1", "k%2f", "k\n", "ключ"]
    )
    def test_a_name_never_leaves_its_path(self, root: OpenBao, name: str) -> None:
        """A master key's name comes from a file, so from anybody."""
        with pytest.raises(KeyUnavailableError, match="cannot be one of"):
            client_of(root).unwrap_key("vault:v1:AAAA", name)

    @pytest.mark.parametrize(
        "words", [{"mount": "nowhere"}, {"namespace": "nobody"}], ids=["mount", "namespace"]
    )
    def test_no_such_mount_or_namespace(self, root: OpenBao, words: dict[str, str]) -> None:
        with pytest.raises(KmsUnavailableError, match=r"HTTP 40[34]"):
            client_of(root, **words).wrap_key(DEK, root.make_key("misplaced"))


class TestTheWay:
    def test_no_server(self, root: OpenBao) -> None:
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

    def test_http_to_another_machine_is_refused_unless_said_so(self) -> None:
        table = {"client": "vault", "address": "http://vault.example.com:8200"}
        with pytest.raises(PolicyError, match=r"http://vault\.example\.com:8200: without TLS"):
            kms_client(table, Path())
        assert kms_client({**table, "allow_http": True}, Path())

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ({}, "names no address"),
            ({"address": "vault:8200"}, "is not an address"),
            ({"address": "https://u:pw@vault"}, "holds more than"),
            ({"address": "https://vault:99999"}, "is not an address"),
            ({"address": "https://v", "token": "hvs.x"}, "unknown word 'token'"),
            ({"address": "https://v", "auth": "aprole"}, "it must be one of"),
            ({"address": "https://v", "role": "r"}, "'role' of [kms] does not go with auth"),
            ({"address": "https://v", "auth": "kubernetes"}, "names no role"),
            ({"address": "https://v", "mount": "../x"}, "not the path of a mount"),
            ({"address": "https://v", "allow_http": "yes"}, "it must be true or false"),
            ({"address": "https://v", "retry_seconds": -1}, "is negative"),
            ({"address": "https://v", "adress": "https://v"}, "unknown word 'adress'"),
        ],
    )
    def test_words_that_make_no_sense(self, words: dict[str, Any], message: str) -> None:
        with pytest.raises(PolicyError) as caught:
            kms_client({"client": "vault", **words}, Path())
        text = f"{caught.value} {caught.value.hint}"
        assert message in text
        assert "hvs.x" not in text
        assert "pw" not in text


class TestLogins:
    def test_no_token(self, openbao: OpenBao, monkeypatch: pytest.MonkeyPatch) -> None:
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
        as_token(monkeypatch, openbao.token("root", ttl="2s", renewable=True))
        client = client_of(openbao)
        wrapped = client.wrap_key(DEK, name)
        end = time.monotonic() + 4
        while time.monotonic() < end:
            assert client.unwrap_key(wrapped, name) == DEK
            time.sleep(0.3)

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


Answer = Callable[[str, str, bytes], tuple[int, dict[str, str], bytes]]


@contextmanager
def http_server(answer: Answer) -> Iterator[str]:
    """A server on loopback that answers as it is told; its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, content = answer(self.command, self.path, body)
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = _answer  # noqa: N815 - names of http.server

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


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
            (301, b""),
            (404, b"nothing here"),
            (418, b"{}"),
        ],
    )
    def test_an_answer_that_is_not_vaults(self, status: int, body: bytes) -> None:
        with (
            http_server(lambda *_: (status, {"Location": "http://127.0.0.1:1"}, body)) as url,
            pytest.raises(KmsUnavailableError, match="is not that of Vault") as caught,
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
