"""AWS KMS, against a moto server on a loopback port."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from secure_bloom.encryption.keys import KeyResolver, KmsClient, kms_client
from secure_bloom.encryption.keys.aws import AwsKmsClient
from secure_bloom.encryption.keys.wrapping import KeyEncryptionKey, wrap_once, wrap_twice
from secure_bloom.errors import FormatError, KeyUnavailableError, PolicyError

boto3 = pytest.importorskip("boto3", reason="needs the extra aws")
moto_server = pytest.importorskip("moto.server", reason="needs moto[server]")

REGION = "eu-central-1"
DEK = bytes(range(16))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.delenv("AWS_REGION", raising=False)


@pytest.fixture
def client(endpoint: str) -> KmsClient:
    return kms_client({"client": "aws", "region": REGION, "endpoint_url": endpoint}, Path())


@pytest.fixture
def master_key(endpoint: str) -> str:
    """The id of a new key of the KMS."""
    kms = boto3.client("kms", region_name=REGION, endpoint_url=endpoint)
    return kms.create_key()["KeyMetadata"]["KeyId"]


def test_both_ways(client: KmsClient, master_key: str) -> None:
    wrapped = client.wrap_key(DEK, master_key)
    assert DEK not in base64.b64decode(wrapped, validate=True)
    assert client.unwrap_key(wrapped, master_key) == DEK


def test_an_alias_names_a_key(client: KmsClient, master_key: str, endpoint: str) -> None:
    kms = boto3.client("kms", region_name=REGION, endpoint_url=endpoint)
    kms.create_alias(AliasName="alias/pii", TargetKeyId=master_key)
    assert client.unwrap_key(client.wrap_key(DEK, "alias/pii"), "alias/pii") == DEK


def test_key_material_both_ways(client: KmsClient, master_key: str) -> None:
    file = KeyResolver(client).for_file()
    for material in (
        wrap_once(DEK, client, master_key),
        wrap_twice(DEK, KeyEncryptionKey.create(client, master_key)),
    ):
        assert file.column_key("a", material.serialize()).key == DEK


def test_an_unknown_key_is_named_with_the_code_of_aws(client: KmsClient) -> None:
    with pytest.raises(KeyUnavailableError, match=r"encrypt under .*k_pii.*NotFoundException"):
        client.wrap_key(DEK, "k_pii")


def test_a_blob_of_another_key_is_refused(
    client: KmsClient, master_key: str, endpoint: str
) -> None:
    kms = boto3.client("kms", region_name=REGION, endpoint_url=endpoint)
    other = kms.create_key()["KeyMetadata"]["KeyId"]
    # Not by its code: moto's differs from that of AWS, IncorrectKeyException.
    with pytest.raises(KeyUnavailableError, match="did not decrypt"):
        client.unwrap_key(client.wrap_key(DEK, master_key), other)


@pytest.mark.parametrize("wrapped", ["%", "é"])
def test_a_wrapped_key_that_is_not_base64(client: KmsClient, master_key: str, wrapped: str) -> None:
    with pytest.raises(FormatError, match="not base64"):
        client.unwrap_key(wrapped, master_key)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    client = AwsKmsClient(region=REGION, endpoint_url="http://127.0.0.1:1")
    with pytest.raises(KeyUnavailableError, match="EndpointConnectionError"):
        client.wrap_key(DEK, "k")


def test_no_region() -> None:
    with pytest.raises(PolicyError, match="NoRegionError"):
        AwsKmsClient()


def test_without_boto3_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(PolicyError) as error:
        AwsKmsClient(region=REGION)
    assert "secure-bloom[aws]" in (error.value.hint or "")
