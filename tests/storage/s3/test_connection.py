"""Where boto3 goes: to the endpoint, region and addressing that pyarrow takes from a URI."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from secure_bloom.storage.object_writer import StoredObject
from secure_bloom.storage.s3_connection import connect, where

OBJECT = StoredObject(path="p", bucket="bucket", key="a%25b c", store="", client="secret")


def client_of(path: str, region: str) -> Any:
    return connect(path, SimpleNamespace(region=region))[1]


@pytest.mark.parametrize(
    ("query", "url"),
    [
        ("", "https://bucket.s3.amazonaws.com/a%2525b%20c"),
        ("region=eu-central-1", "https://bucket.s3.amazonaws.com/a%2525b%20c"),
        ("endpoint_override=store:9000&scheme=http", "http://store:9000/bucket/a%2525b%20c"),
        ("endpoint_override=store.example", "https://store.example/bucket/a%2525b%20c"),
        (
            "endpoint_override=store.example&force_virtual_addressing=true",
            "https://bucket.store.example/a%2525b%20c",
        ),
    ],
)
def test_an_object_is_where_pyarrow_finds_it(s3_rights: None, query: str, url: str) -> None:
    client = client_of(f"s3://bucket/key?{query}", "eu-central-1")
    signed = client.generate_presigned_url("get_object", Params=where(OBJECT))
    assert signed.partition("?")[0] == url
    assert client.meta.region_name == "eu-central-1"


def test_the_endpoint_of_the_environment_is_taken(
    s3_rights: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
    client = client_of("s3a://bucket/key", "of-this-test-alone")
    signed = client.generate_presigned_url("get_object", Params=where(OBJECT))
    assert signed.startswith("http://minio:9000/bucket/a%2525b%20c?")


def test_objects_of_one_store_are_known_by_their_query(s3_rights: None) -> None:
    file_system = SimpleNamespace(region="r")
    one, other = (connect(f"s3://{name}/key?scheme=http", file_system) for name in ("b1", "b2"))
    assert one == other
    assert "secret" not in repr(OBJECT)
