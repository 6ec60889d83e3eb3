"""The keyring: its file, its wrapping, its warning, and that it never shows a key."""

from __future__ import annotations

import base64
import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.encryption.kms import (
    ExplicitKeys,
    Keyring,
    KeyringPermissionWarning,
    KmsClient,
    new_keyring,
)
from secure_bloom.errors import FormatError, KeyUnavailableError, PolicyError, SecureBloomError
from testing.project import ROOT
from tests.encryption.kms.hostile_url import assert_no_visit
from tests.encryption.kms.secrecy import assert_hidden

KEY = bytes(range(16))
TEXT = base64.b64encode(KEY).decode()
DEV_KEYRING = ROOT / "keys" / "dev-keyring.json"


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(0o600)
    return path


class TestLoading:
    def test_a_keyring_with_all_parts_is_loaded(self, tmp_path: Path) -> None:
        content = {
            "version": 1,
            "master_keys": {"k_footer": TEXT},
            "data_keys": {"kc1": base64.b64encode(bytes(24)).decode()},
            "explicit": {
                "footer": base64.b64encode(bytes(32)).decode(),
                "columns": {"address.zip": TEXT},
                "aad_prefix": "tester",
            },
        }
        assert Keyring.load(write(tmp_path / "keyring.json", content)) == Keyring(
            master_keys={"k_footer": KEY},
            data_keys={"kc1": bytes(24)},
            explicit=ExplicitKeys(
                footer=bytes(32), columns={"address.zip": KEY}, aad_prefix=b"tester"
            ),
        )

    def test_each_part_is_optional(self, tmp_path: Path) -> None:
        assert Keyring.load(write(tmp_path / "k", {"version": 1})) == Keyring()
        content = {"version": 1, "explicit": {}}
        assert Keyring.load(write(tmp_path / "k", content)).explicit == ExplicitKeys()

    def test_the_development_keyring(self, recwarn: pytest.WarningsRecorder) -> None:
        keyring = Keyring.load(DEV_KEYRING)
        assert {name: len(key) for name, key in keyring.master_keys.items()} == {
            "k_footer": 16,
            "k_pii": 16,
            "k_finance": 16,
        }

    @pytest.mark.parametrize(
        ("content", "message", "hint"),
        [
            ("{", "not JSON", None),
            ("[" * 100_000, "not JSON", None),
            ('{"version": 1, "version": 1}', "twice", None),
            ([], "keyring is a list, it must be a table", None),
            ({}, "version of the keyring is not given", None),
            ({"version": 2}, "version of the keyring is 2, it must be 1", None),
            ({"version": True}, "'version' of the keyring is true or false", None),
            ({"version": "1"}, "'version' of the keyring is text, it must be an integer", None),
            ({"version": 1, "masterkeys": {}}, "unknown option 'masterkeys'", "'master_keys'"),
            ({"version": 1, "master_keys": [TEXT]}, "'master_keys' is a list", None),
            ({"version": 1, "master_keys": {"k": 5}}, "'k' of 'master_keys' is an integer", None),
            ({"version": 1, "master_keys": {"k": ""}}, "'k' of 'master_keys' is empty", None),
            ({"version": 1, "data_keys": {"k": "%%%"}}, "'k' of 'data_keys' is not base64", "rand"),
            (
                {"version": 1, "master_keys": {"k": "vault:v1:AAAA"}},
                "'k' of 'master_keys' is wrapped by Vault",
                'client = "vault"',
            ),
            ({"version": 1, "data_keys": {"k": "AAAA"}}, "data key 'k': a key has 3 bytes", None),
            ({"version": 1, "explicit": {"foot": TEXT}}, "'explicit' has the unk", "'footer'"),
            ({"version": 1, "explicit": {"footer": None}}, "'footer' of 'explicit' is null", None),
        ],
    )
    def test_what_is_no_keyring(
        self, tmp_path: Path, content: object, message: str, hint: str | None
    ) -> None:
        path = write(tmp_path / "keyring.json", content)
        with pytest.raises(PolicyError) as error:
            Keyring.load(path)
        assert error.value.path == str(path)
        assert message in str(error.value)
        assert hint is None or hint in (error.value.hint or "")

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(PolicyError, match="keyring cannot be read: No such file"):
            Keyring.load(tmp_path / "none.json")

    def test_a_file_that_is_not_text(self, tmp_path: Path) -> None:
        (tmp_path / "k").write_bytes(b"\xff\xfe")
        (tmp_path / "k").chmod(0o600)
        with pytest.raises(PolicyError, match="not UTF-8"):
            Keyring.load(tmp_path / "k")


class TestPermissions:
    @pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
    def test_a_file_open_to_others_is_warned_of_once(self, tmp_path: Path, mode: int) -> None:
        path = write(tmp_path / "keyring.json", {"version": 1})
        path.chmod(mode)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                Keyring.load(path)
        assert [str(warning.message) for warning in caught] == [
            f"other users may read the keyring: chmod 600 {path}"
        ]
        assert caught[0].category is KeyringPermissionWarning
        assert caught[0].filename == __file__

    def test_a_private_file_is_not(self, tmp_path: Path) -> None:
        path = write(tmp_path / "keyring.json", {"version": 1})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Keyring.load(path)


class TestWrapping:
    keyring = Keyring(master_keys={"k1": KEY, "k2": bytes(32)})

    def test_it_is_a_kms_client(self) -> None:
        assert isinstance(self.keyring, KmsClient)
        assert self.keyring.has_key("k1")
        assert not self.keyring.has_key("k3")

    @given(st.sampled_from([16, 24, 32]).flatmap(lambda n: st.binary(min_size=n, max_size=n)))
    def test_both_ways(self, key: bytes) -> None:
        for name in ("k1", "k2"):
            wrapped = self.keyring.wrap_key(key, name)
            assert len(base64.b64decode(wrapped)) == 12 + len(key) + 16
            assert self.keyring.unwrap_key(wrapped, name) == key

    def test_an_unknown_master_key(self) -> None:
        with pytest.raises(KeyUnavailableError, match="'k_1' is not in the keyring") as error:
            self.keyring.wrap_key(KEY, "k_1")
        assert error.value.hint == "did you mean 'k1'?"

    def test_a_master_key_that_does_not_fit(self) -> None:
        wrapped = self.keyring.wrap_key(KEY, "k1")
        with pytest.raises(KeyUnavailableError, match="'k2' does not fit"):
            self.keyring.unwrap_key(wrapped, "k2")

    def test_the_name_is_bound_to_the_wrapped_key(self) -> None:
        twins = Keyring(master_keys={"a": KEY, "b": KEY})
        with pytest.raises(KeyUnavailableError, match="'b' does not fit"):
            twins.unwrap_key(twins.wrap_key(KEY, "a"), "b")

    @pytest.mark.parametrize("wrapped", ["", "AAAA", "not base64", "é", "A"])
    def test_a_malformed_wrapped_key(self, wrapped: str) -> None:
        with pytest.raises(FormatError):
            self.keyring.unwrap_key(wrapped, "k1")


class TestSecrecy:
    @given(st.binary(min_size=16, max_size=16))
    def test_no_key_shows(self, key: bytes) -> None:
        explicit = ExplicitKeys(footer=key, columns={"a": key}, data_keys={"b": key})
        keyring = Keyring(master_keys={"k": key}, data_keys={"d": key}, explicit=explicit)
        for shown in (repr(keyring), str(keyring), repr(explicit), str(explicit)):
            assert_hidden(key, shown)

    @given(st.binary(min_size=10, max_size=40), st.integers(0, 40))
    def test_no_error_of_a_broken_file_shows_a_key(
        self, tmp_path_factory: pytest.TempPathFactory, key: bytes, cut: int
    ) -> None:
        text = json.dumps({"version": 1, "data_keys": {"k": base64.b64encode(key).decode()}})
        path = write(tmp_path_factory.mktemp("keyring") / "k.json", text[: len(text) - cut])
        try:
            Keyring.load(path)
        except SecureBloomError as error:
            assert_hidden(key, f"{error} {error.hint} {error!r} {error.__cause__!r}")

    def test_a_copy_in_another_process_is_the_same(self) -> None:
        keyring = Keyring(master_keys={"k": KEY}, explicit=ExplicitKeys(footer=KEY))
        assert pickle.loads(pickle.dumps(keyring)) == keyring


@pytest.mark.parametrize(
    "keys",
    [
        {"footer": bytes(15)},
        {"footer": "0123456789012345"},
        {"columns": {"a": bytes(17)}},
        {"data_keys": {"a": b""}},
    ],
)
def test_explicit_keys_are_checked_when_they_are_made(keys: dict) -> None:
    with pytest.raises(PolicyError, match="bytes"):
        ExplicitKeys(**keys)


class TestNewKeyring:
    def test_each_name_gets_a_key_of_its_own_that_only_the_owner_reads(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "keyring.json"
        new_keyring(path, ["k_pii", "k_footer"], bits=256)
        with warnings.catch_warnings():
            warnings.simplefilter("error", KeyringPermissionWarning)
            keys = Keyring.load(path).master_keys
        assert set(keys) == {"k_footer", "k_pii"}
        assert len(set(keys.values())) == 2
        assert set(map(len, keys.values())) == {32}
        assert [it.name for it in tmp_path.iterdir()] == [path.name]

    def test_a_keyring_is_never_replaced(self, tmp_path: Path) -> None:
        path = write(tmp_path / "keyring.json", "the only keys")
        with pytest.raises(PolicyError, match="there is a file already") as caught:
            new_keyring(path, ["k"])
        assert caught.value.path == str(path)
        assert [it.read_text() for it in tmp_path.iterdir()] == ["the only keys"]

    @pytest.mark.parametrize(
        ("names", "bits", "told"),
        [
            ([], 128, "no master key is named"),
            (["k", " "], 128, "name is empty"),
            (["k"], 64, "64 bits"),
        ],
    )
    def test_what_is_no_key_is_not_written(
        self, tmp_path: Path, names: list[str], bits: int, told: str
    ) -> None:
        with pytest.raises(PolicyError, match=told):
            new_keyring(tmp_path / "keyring.json", names, bits=bits)
        assert not list(tmp_path.iterdir())

    def test_a_folder_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(PolicyError, match="cannot be written") as caught:
            new_keyring(tmp_path / "none" / "keyring.json", ["k"])
        assert caught.value.path == str(tmp_path / "none" / "keyring.json")


def test_an_address_in_a_file_is_not_visited() -> None:
    assert_no_visit(Keyring(master_keys={"k": bytes(16)}), "k")


TEXT_KEY = b"0123456789012345"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"footer": b"short"}, "the explicit footer key"),
        ({"columns": {"email": b"short"}}, "explicit key of column 'email'"),
        ({"data_keys": {"kf": b"short"}}, "data key 'kf'"),
        ({"footer": TEXT_KEY.decode()}, "the explicit footer key is of type str"),
    ],
)
def test_a_key_that_aes_does_not_take_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(PolicyError, match=named) as caught:
        ExplicitKeys(**given)
    assert "short" not in str(caught.value)
    assert TEXT_KEY.decode() not in str(caught.value)


def test_no_key_shows() -> None:
    keys = ExplicitKeys(footer=TEXT_KEY, columns={"email": KEY}, data_keys={"kf": KEY})
    assert TEXT_KEY.decode() not in repr(keys)
