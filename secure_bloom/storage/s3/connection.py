"""The boto3 client for a URI: the same endpoint, region and credentials that pyarrow takes."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

import boto3
from botocore.config import Config

from secure_bloom.storage.object_writer import StoredObject
from secure_bloom.storage.paths import object_uri

#: Requests that may be under way at once; more wait for a connection.
_CONNECTIONS = 64
#: The variables in which both libraries look for an endpoint.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


def connect(path: str, filesystem: Any) -> tuple[str, Any]:
    """Return the store of a URI, and the client for it in the region that pyarrow has found."""
    query = object_uri(path).query
    return query, _client(query, filesystem.region)


def where(target: StoredObject) -> dict[str, str]:
    """Bucket and key, as requests take them."""
    return {"Bucket": target.bucket, "Key": target.key}


@lru_cache(maxsize=16)
def _client(query: str, region: str) -> Any:
    options = {name: values[-1] for name, values in parse_qs(query).items()}
    endpoint = _endpoint(options)
    # pyarrow names the bucket in the path wherever the endpoint is another than Amazon's.
    is_elsewhere = endpoint is not None or any(map(os.environ.get, _ENDPOINTS))
    style = "path" if is_elsewhere else "auto"
    if options.get("force_virtual_addressing") == "true":
        style = "virtual"
    # A session of our own: the default one may be used by the caller's threads.
    return boto3.session.Session().client(
        "s3",
        region_name=region or None,
        endpoint_url=endpoint,
        verify=options.get("tls_ca_file_path"),
        config=Config(
            max_pool_connections=_CONNECTIONS,
            s3={"addressing_style": style},
        ),
    )


def _endpoint(options: dict[str, str]) -> str | None:
    place = options.get("endpoint_override")
    if place is None or "://" in place:
        return place
    return f"{options.get('scheme', 'https')}://{place}"
