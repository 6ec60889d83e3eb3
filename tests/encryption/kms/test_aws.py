"""AWS KMS, against a moto server on a loopback port."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.file_keys.wrapping import KeyEncryptionKey, wrap_once, wrap_twice
from secure_bloom.encryption.kms import KeyMisfitError, KmsClient, kms_client, rewrap_with
from secure_bloom.encryption.kms.aws import AwsKmsClient
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    KmsUnavailableError,
    PolicyError,
)
from testing.http_servers import http_server
from tests.encryption.kms.hostile_url import assert_no_visit

boto3 = pytest.importorskip("boto3", reason="needs the extra aws")
sessions = pytest.importorskip("botocore.session")
moto_server = pytest.importorskip("moto.server", reason="needs moto and flask")

REGION = "eu-central-1"
DEK = bytes(range(16))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module", autouse=True)
def _models_read_once() -> Iterator[None]:
    """Each client has a session of its own, which would read from a disk what AWS can do."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sessions, "create_loader", cache(sessions.create_loader))
        yield


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
    # boto3 sends again what got no answer in time, and then the alias may be there.
    with suppress(kms.exceptions.AlreadyExistsException):
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
    with pytest.raises(KeyUnavailableError, match=r"did not decrypt|does not fit"):
        client.unwrap_key(client.wrap_key(DEK, master_key), other)


@pytest.mark.parametrize("wrapped", ["%", "é"])
def test_a_wrapped_key_that_is_not_base64(client: KmsClient, master_key: str, wrapped: str) -> None:
    with pytest.raises(FormatError, match="not base64"):
        client.unwrap_key(wrapped, master_key)


def test_a_server_that_is_not_there() -> None:
    client = AwsKmsClient(region=REGION, endpoint_url="http://127.0.0.1:1", retry_seconds=0)
    with pytest.raises(
        KmsUnavailableError, match=r"AWS KMS at http://127\.0\.0\.1:1 .*EndpointConnectionError"
    ):
        client.wrap_key(DEK, "k")


def test_without_credentials(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    client = AwsKmsClient(region=REGION, endpoint_url=endpoint)
    with pytest.raises(KmsUnavailableError, match="NoCredentialsError") as caught:
        client.wrap_key(DEK, "k")
    assert "credentials" in str(caught.value.hint)


class TestEncryptionContext:
    def client(self, endpoint: str, **context: str) -> KmsClient:
        table = {"client": "aws", "region": REGION, "endpoint_url": endpoint}
        return kms_client({**table, "encryption_context": context}, Path())

    def test_only_the_same_context_unwraps(self, endpoint: str, master_key: str) -> None:
        wrapped = self.client(endpoint, table="people").wrap_key(DEK, master_key)
        assert self.client(endpoint, table="people").unwrap_key(wrapped, master_key) == DEK
        for other in ({"table": "orders"}, {}):
            with pytest.raises(KeyUnavailableError):
                self.client(endpoint, **other).unwrap_key(wrapped, master_key)

    def test_it_holds_for_reencryption_too(self, endpoint: str, master_key: str) -> None:
        client = self.client(endpoint, table="people")
        renewed = rewrap_with(client, client.wrap_key(DEK, master_key), master_key)
        assert client.unwrap_key(renewed, master_key) == DEK

    @pytest.mark.parametrize("context", ["people", {"table": 7}])
    def test_what_is_no_context(self, context: object) -> None:
        with pytest.raises(PolicyError, match="encryption_context"):
            kms_client({"client": "aws", "region": REGION, "encryption_context": context}, Path())


class TestRegions:
    def test_an_arn_is_asked_for_in_its_own_region(self, client: KmsClient, endpoint: str) -> None:
        elsewhere = boto3.client("kms", region_name="eu-west-3", endpoint_url=endpoint)
        arn = elsewhere.create_key()["KeyMetadata"]["Arn"]
        assert client.unwrap_key(client.wrap_key(DEK, arn), arn) == DEK

    def test_a_multi_region_key_is_asked_for_at_home(self, endpoint: str) -> None:
        elsewhere = boto3.client("kms", region_name="eu-west-3", endpoint_url=endpoint)
        made = elsewhere.create_key(MultiRegion=True)["KeyMetadata"]
        elsewhere.replicate_key(KeyId=made["KeyId"], ReplicaRegion=REGION)
        client = AwsKmsClient(region=REGION, endpoint_url=endpoint)
        regions = []
        client._by_region[REGION].meta.events.register(
            "before-sign.kms.*", lambda region_name=None, **_: regions.append(region_name)
        )
        # moto knows replicas, and not that they unwrap each other's blobs: Encrypt alone is run.
        client.wrap_key(DEK, made["Arn"])
        assert regions == [REGION]


class TestAnswersOfAws:
    """Errors that moto does not make, from a server that speaks AWS's JSON."""

    def client(self, url: str) -> KmsClient:
        return AwsKmsClient(region=REGION, endpoint_url=url, retry_seconds=2)

    def test_throttling_is_waited_out(self) -> None:
        answers = [
            (400, {"__type": "ThrottlingException", "message": "Rate exceeded"}),
            (503, {"__type": "ServiceUnavailableException"}),
            (200, {"Plaintext": base64.b64encode(DEK).decode(), "KeyId": "k"}),
        ]
        calls: list[str] = []

        def answer(method: str, _path: str, _body: bytes) -> tuple[int, dict[str, str], bytes]:
            calls.append(method)
            status, body = answers[len(calls) - 1]
            return status, {}, json.dumps(body).encode()

        with http_server(answer) as url:
            assert self.client(url).unwrap_key("AAAA", "k") == DEK
        assert len(calls) == 3

    @pytest.mark.parametrize(
        ("code", "kind", "message"),
        [
            ("ThrottlingException", KmsUnavailableError, "HTTP 400 ThrottlingException"),
            ("ExpiredTokenException", KmsUnavailableError, "did not take the credentials"),
            ("UnrecognizedClientException", KmsUnavailableError, "did not take the credentials"),
            ("AccessDeniedException", KeyUnavailableError, "HTTP 400 AccessDeniedException"),
            ("DisabledException", KeyUnavailableError, "HTTP 400 DisabledException"),
            ("KMSInvalidStateException", KeyUnavailableError, "HTTP 400 KMSInvalidState"),
            ("IncorrectKeyException", KeyMisfitError, "does not fit"),
            ("InvalidCiphertextException", KeyMisfitError, "does not fit"),
        ],
    )
    def test_each_error_is_the_one_it_should_be(
        self, code: str, kind: type[Exception], message: str
    ) -> None:
        body = json.dumps({"__type": code, "message": "the secret AAAA"}).encode()
        with http_server(lambda *_: (400, {}, body)) as url, pytest.raises(kind) as caught:
            self.client(url).unwrap_key("AAAA", "k")
        assert message in str(caught.value)
        assert "the secret" not in str(caught.value)


def test_without_a_region_the_client_is_refused() -> None:
    with pytest.raises(PolicyError, match="NoRegionError"):
        AwsKmsClient()


def test_without_boto3_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(PolicyError) as error:
        AwsKmsClient(region=REGION)
    assert error.value.hint == "pip install 'secure-bloom[aws]'"


def test_an_address_in_a_file_is_not_visited(client: KmsClient, master_key: str) -> None:
    assert_no_visit(client, master_key)
