"""Where boto3 goes: to the endpoint, region and addressing that pyarrow takes from a URI."""

from __future__ import annotations

import pytest

from secure_bloom.storage.s3.connection import s3_object


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
    found = s3_object(f"s3://bucket/a%25b c?{query}", "eu-central-1")
    signed = found.client.generate_presigned_url("get_object", Params=found.where)
    assert signed.partition("?")[0] == url
    assert found.client.meta.region_name == "eu-central-1"


def test_the_endpoint_of_the_environment_is_taken(
    s3_rights: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
    found = s3_object("s3a://bucket/key", "of-this-test-alone")
    signed = found.client.generate_presigned_url("get_object", Params=found.where)
    assert signed.startswith("http://minio:9000/bucket/key?")


def test_objects_of_one_store_are_known_by_their_query(s3_rights: None) -> None:
    one, other = (s3_object(f"s3://{name}/key?scheme=http", "r") for name in ("b1", "b2"))
    assert one.store == other.store
    assert one.where != other.where
    assert "client" not in repr(one)
