"""Vault's client against a real OpenBao server on a loopback port."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.file_keys.wrapping import KeyEncryptionKey, wrap_once, wrap_twice
from secure_bloom.encryption.kms import KmsClient, kms_client, rewrap_with
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    KmsUnavailableError,
)
from testing.http_servers import DEK, as_token, client_of
from testing.openbao import OpenBao
from tests.encryption.kms.hostile_url import assert_no_visit


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

    def test_an_address_in_a_file_is_not_visited(self, root: OpenBao) -> None:
        assert_no_visit(client_of(root), root.make_key("visited"))

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
