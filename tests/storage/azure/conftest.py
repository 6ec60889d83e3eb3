"""A container of Azure's emulator, which runs on Node."""

from __future__ import annotations

import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.storage.emulators import emulator
from tests.storage.other_stores import Container

#: Where the Makefile puts it.
SERVER = Path(sys.prefix) / "azurite/node_modules/azurite/dist/src/blob/main.js"
#: The account that every such emulator has.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
OPTIONS = ("--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--silent")


class Blobs(Container):
    """A new container of the emulator."""

    def __init__(self, port: str) -> None:
        from azure.storage.blob import BlobServiceClient

        self.port = port
        self.host = f"127.0.0.1:{port}"
        self.name = f"c{uuid.uuid4().hex}"
        url = f"http://{self.host}/{ACCOUNT}"
        service = BlobServiceClient(url, credential=ACCOUNT_KEY)
        self.client = service.create_container(self.name)

    def uri(self, key: str) -> str:
        return f"abfs://{ACCOUNT}@{self.host}/{self.name}/{key}?enable_tls=false"

    def put(self, key: str, body: bytes) -> None:
        from azure.storage.blob import ContentSettings, StandardBlobTier

        self.client.upload_blob(
            key,
            body,
            overwrite=True,
            metadata={"made": "by"},
            tags={"team": "a b", "x": "1"},
            content_settings=ContentSettings(content_type="a/b", cache_control="no-store"),
            standard_blob_tier=StandardBlobTier.COOL,
        )

    def remove(self, key: str) -> None:
        self.client.delete_blob(key)

    def objects(self) -> dict[str, bytes]:
        names = list(self.client.list_blob_names())
        return {name: self.client.download_blob(name).readall() for name in names}

    def attributes(self, key: str) -> Any:
        blob = self.client.get_blob_client(key)
        found = blob.get_blob_properties()
        settings = found.content_settings
        return (
            found.metadata,
            found.blob_tier,
            settings.content_type,
            settings.cache_control,
            blob.get_blob_tags(),
        )


@pytest.fixture(scope="session")
def azurite() -> Iterator[str]:
    """Where Azure's emulator listens."""
    pytest.importorskip("azure.storage.blob")
    node = shutil.which("node")
    if node is None or not SERVER.exists():
        pytest.skip("Azure's emulator is not installed: `make` installs it where npm is")

    def command(port: str) -> list[str]:
        return [node, str(SERVER), "--blobHost", "127.0.0.1", "--blobPort", port, *OPTIONS]

    with emulator(command, f"http://127.0.0.1:{{}}/{ACCOUNT}?comp=list") as port:
        yield port


@pytest.fixture
def container(azurite: str, monkeypatch: pytest.MonkeyPatch) -> Blobs:
    """A new container, and the right to use it."""
    monkeypatch.setenv("AZURE_STORAGE_KEY", ACCOUNT_KEY)
    return Blobs(azurite)
