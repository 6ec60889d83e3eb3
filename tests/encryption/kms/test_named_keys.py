"""A KMS is asked for named master keys alone, whatever it can do."""

from __future__ import annotations

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
from secure_bloom.encryption.kms.gcp import GcpKmsClient
from secure_bloom.errors import KeyUnavailableError
from testing.recording_kms import EVERY_KEY, FOREIGN, AbleKms, RecordingKms

PROTOCOLS = (KeyInventory, KeyMover, KeyRewrapper, KeyVersions)
KEY = bytes(range(16))
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

    def answer(operation: str, region: str, **parameters: object) -> dict[str, bytes]:
        asked.append((region, parameters["KeyId"]))
        return {"Plaintext": KEY}

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
