"""The functions that call a KMS: what clients may answer, and what they may raise."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from secure_bloom.encryption.kms import (
    KeyInventory,
    KeyMover,
    KeyNotNamedError,
    KeyRewrapper,
    KeyVersions,
    NamedKeys,
)
from secure_bloom.encryption.kms.aws import AwsKmsClient
from secure_bloom.encryption.kms.client import moved_with, rewrap_with, unwrap_with, wrap_with
from secure_bloom.encryption.kms.gcp import GcpKmsClient
from secure_bloom.errors import FormatError, KeyUnavailableError, KmsUnavailableError
from testing.recording_kms import EVERY_KEY, FOREIGN, AbleKms, RecordingKms
from testing.tables import KEYRING

KEY = bytes(range(16))


class Foreign:
    """A client of somebody else's; each method does as the test says."""

    def __init__(self, answer: Callable[[], object]) -> None:
        self._answer = answer

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return self._answer()  # type: ignore[return-value]

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return self._answer()  # type: ignore[return-value]


class Rewrapping(Foreign):
    """One that renews wrapped keys itself."""

    def rewrap_key(self, wrapped_key: str, master_key_identifier: str) -> str:
        return self._answer()  # type: ignore[return-value]


def _raising(error: Exception) -> Callable[[], object]:
    def answer() -> object:
        raise error

    return answer


CALLS: list[Callable[[Rewrapping], object]] = [
    lambda kms: wrap_with(kms, KEY, "k_pii"),
    lambda kms: unwrap_with(kms, "wrapped", "k_pii"),
    lambda kms: rewrap_with(kms, "wrapped", "k_pii"),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", [KeyUnavailableError, KmsUnavailableError])
def test_our_own_errors_pass(call: Callable[[Rewrapping], object], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"^as it was$"):
        call(Rewrapping(_raising(kind("as it was"))))


@pytest.mark.parametrize("call", CALLS)
def test_of_a_foreign_error_only_the_type_is_told(call: Callable[[Rewrapping], object]) -> None:
    with pytest.raises(KeyUnavailableError, match=r"k_pii.*ValueError") as caught:
        call(Rewrapping(_raising(ValueError("a token"))))
    assert "a token" not in f"{caught.value} {caught.value.hint}"
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("call", CALLS)
def test_an_answer_of_another_type_is_named(call: Callable[[Rewrapping], object]) -> None:
    with pytest.raises(KeyUnavailableError, match="returned int for master key 'k_pii', wanted"):
        call(Rewrapping(lambda: 7))


def test_a_wrapped_key_may_be_bytes() -> None:
    assert wrap_with(Foreign(lambda: b"wrapped"), KEY, "k_pii") == "wrapped"


def test_a_client_that_cannot_renew_unwraps_and_wraps() -> None:
    wrapped = KEYRING.wrap_key(KEY, "k_pii")
    renewed = rewrap_with(KEYRING, wrapped, "k_pii")
    assert renewed != wrapped
    assert KEYRING.unwrap_key(renewed, "k_pii") == KEY
    assert rewrap_with(Rewrapping(lambda: "renewed"), wrapped, "k_pii") == "renewed"
    with pytest.raises(FormatError, match="not base64"):
        rewrap_with(Rewrapping(_raising(FormatError("not base64"))), wrapped, "k_pii")


def test_an_unwrapped_key_has_a_size_of_aes() -> None:
    with pytest.raises(KeyUnavailableError, match="15 bytes"):
        unwrap_with(Foreign(lambda: bytes(15)), base64.b64encode(b"x").decode(), "k_pii")


class Moving(Foreign):
    """One that brings wrapped keys under another master key itself."""

    def move_key(self, wrapped_key: str, old_master_key: str, new_master_key: str) -> str:
        return self._answer()  # type: ignore[return-value]


def test_a_kms_that_cannot_move_a_key_gives_it_out_to_be_wrapped_anew() -> None:
    moved = moved_with(KEYRING, wrap_with(KEYRING, KEY, "k_pii"), "k_pii", "k_footer")
    assert unwrap_with(KEYRING, moved, "k_footer") == KEY


def test_a_kms_moves_a_key_itself_where_it_can() -> None:
    assert moved_with(Moving(lambda: "moved"), "wrapped", "k_old", "k_new") == "moved"


def test_a_move_that_fails_is_of_the_key() -> None:
    with pytest.raises(KeyUnavailableError, match=r"k_old.*ValueError"):
        moved_with(Moving(_raising(ValueError("secret"))), "wrapped", "k_old", "k_new")
    with pytest.raises(KmsUnavailableError, match="down"):
        moved_with(Moving(_raising(KmsUnavailableError("down"))), "wrapped", "k_old", "k_new")


PROTOCOLS = (KeyInventory, KeyMover, KeyRewrapper, KeyVersions)
RING = "projects/lake/locations/eu/keyRings/tables"


@pytest.fixture(autouse=True)
def _nothing_asked_yet() -> None:
    RecordingKms.asked.clear()


def test_it_can_what_the_other_client_can() -> None:
    for kms, can in ((RecordingKms(), False), (AbleKms(), True)):
        named = NamedKeys(kms, ["k_pii"], way_out="")
        assert [isinstance(named, it) for it in PROTOCOLS] == [can] * 4
        wrapped = named.wrap_key(KEY, "k_pii")
        assert named.unwrap_key(wrapped, "k_pii") == KEY


@pytest.mark.parametrize(
    "ask",
    [
        lambda named, wrapped: named.unwrap_key(wrapped, FOREIGN),
        lambda named, _: named.wrap_key(KEY, FOREIGN),
        lambda named, _: named.has_key(FOREIGN),
        lambda named, wrapped: named.rewrap_key(wrapped, FOREIGN),
        lambda named, wrapped: named.move_key(wrapped, FOREIGN, "k_pii"),
        lambda named, wrapped: named.move_key(wrapped, "k_pii", FOREIGN),
    ],
)
def test_another_key_is_an_error_that_names_it_and_its_place(ask: object) -> None:
    named = NamedKeys(AbleKms(), ["k_pii"], way_out="to read it: --allow-unprotected")
    with pytest.raises(KeyNotNamedError) as caught:
        ask(named, EVERY_KEY.wrap_key(KEY, FOREIGN))  # type: ignore[operator]
    assert AbleKms.asked == []
    assert repr(FOREIGN) in caught.value.message
    assert f'[keys."{FOREIGN}"]' in str(caught.value.hint)
    assert "--allow-unprotected" in str(caught.value.hint)


def test_one_key_of_google_may_be_named_in_two_ways() -> None:
    pytest.importorskip("google.cloud.kms", reason="needs the extra gcp")
    client = GcpKmsClient(key_ring=RING, endpoint="http://127.0.0.1:9")
    whole = f"{RING}/cryptoKeys/k_pii"
    for policy, file in (("k_pii", whole), (whole, "k_pii")):
        assert NamedKeys(client, [policy], way_out="")._canonical(file) == whole
    for name in (
        "projects/evil/locations/eu/keyRings/tables/cryptoKeys/k_pii",
        "projects/lake/locations/eu/keyRings/other/cryptoKeys/k_pii",
        "k_other",
    ):
        with pytest.raises(KeyUnavailableError):
            NamedKeys(client, ["k_pii"], way_out="").unwrap_key("AAAA", name)


def test_google_refuses_a_path_of_another_project_also_without_a_policy() -> None:
    pytest.importorskip("google.cloud.kms", reason="needs the extra gcp")
    client = GcpKmsClient(key_ring=RING, endpoint="http://127.0.0.1:9")
    with pytest.raises(KeyUnavailableError, match="of another project than key_ring"):
        client.unwrap_key("AAAA", "projects/evil/locations/eu/keyRings/tables/cryptoKeys/k_pii")


def test_aws_is_asked_in_no_region_and_account_that_only_a_file_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("boto3", reason="needs the extra aws")
    client = AwsKmsClient(region="eu-central-1", endpoint_url="http://127.0.0.1:9")
    asked: list[object] = []

    def answer(operation: str, region: str, **parameters: object) -> bytes:
        asked.append((region, parameters["KeyId"]))
        return KEY

    monkeypatch.setattr(client, "_ask", answer)
    multi = "arn:aws:kms:{}:111111111111:key/mrk-1234"
    named = NamedKeys(client, ["alias/pii", "1234-abcd", multi.format("us-east-1")], way_out="")
    for name in (
        "arn:aws:kms:eu-central-1:999999999999:alias/pii",
        "arn:aws:kms:us-east-1:111111111111:key/1234-abcd",
        "arn:aws:kms:us-east-1:999999999999:key/mrk-1234",
    ):
        with pytest.raises(KeyNotNamedError):
            named.unwrap_key("AAAA", name)
    assert asked == []
    # One multi-region key has an ARN in each region.
    assert named.unwrap_key("AAAA", multi.format("ap-south-1")) == KEY
    assert asked == [("eu-central-1", multi.format("eu-central-1"))]
