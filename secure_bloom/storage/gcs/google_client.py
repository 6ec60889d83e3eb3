"""The SDK's client for a URI: the same endpoint and credentials that pyarrow takes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client

from secure_bloom.storage.paths import object_uri

_ANONYMOUS = "anonymous@"


def connect(path: str, _filesystem: Any) -> tuple[str, Client]:
    """Return the store of a URI, and the client for it."""
    uri = object_uri(path)
    return uri.query, _client(uri.query, uri.authority.startswith(_ANONYMOUS))


@lru_cache(maxsize=16)
def _client(query: str, is_anonymous: bool) -> Client:
    options = {name: values[-1] for name, values in parse_qs(query).items()}
    endpoint = options.get("endpoint_override")
    return Client(
        # Buckets are named without a project, and some credentials have none.
        project=options.get("project_id"),
        # None lets the SDK look for the credentials of the process.
        credentials=_anonymous() if is_anonymous else None,
        client_options={"api_endpoint": f"{options.get('scheme', 'https')}://{endpoint}"}
        if endpoint
        else None,
    )


def _anonymous() -> Any:
    credentials: Any = AnonymousCredentials
    return credentials()
