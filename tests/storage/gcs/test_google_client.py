"""The SDK's client goes where the URI says."""

from __future__ import annotations

import pytest

pytest.importorskip("google.cloud.storage")

from secure_bloom.storage.gcs import connect


def test_the_endpoint_is_that_of_the_uri() -> None:
    query = "scheme=http&endpoint_override=127.0.0.1:9"
    store, client = connect(f"gs://anonymous@bucket/key?{query}", None)
    assert (store, client.api_endpoint) == (query, "http://127.0.0.1:9")
    assert connect(f"gs://anonymous@other/key?{query}", None) == (store, client)
    assert connect("gs://anonymous@bucket/key", None)[1].api_endpoint.endswith("googleapis.com")
