"""Who asks: a signature for a container, or the identity of the machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.storage.azure.conftest import ACCOUNT, ACCOUNT_KEY, Blobs
from tests.storage.other_stores import KEY, SIZES, new, replaced


@SIZES
def test_a_signature_opens_what_it_was_made_for(
    container: Blobs, monkeypatch: pytest.MonkeyPatch, old: bytes
) -> None:
    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    container.put(KEY, old)
    signature = generate_container_sas(
        ACCOUNT,
        container.name,
        account_key=ACCOUNT_KEY,
        permission=ContainerSasPermissions(read=True, write=True, list=True, tag=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    monkeypatch.delenv("AZURE_STORAGE_KEY")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "?" + signature)
    replaced(container)
    assert container.objects() == {KEY: new(old)}


def test_without_a_key_the_store_reads_with_the_token_of_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("azure.storage.blob")
    from secure_bloom.storage import azure_blobs as azure
    from secure_bloom.storage.azure_account import AzureAccount

    def identity(_account: Any) -> Any:
        return SimpleNamespace(get_token=lambda *_: SimpleNamespace(token="a token"))

    monkeypatch.setattr(azure, "_credential", identity)
    url = "https://a.blob.core.windows.net"
    account = AzureAccount(name="a", url=url, key=None, sas_token=None)
    assert azure._account(account).source("lake", "x y") == {
        "source_url": "https://a.blob.core.windows.net/lake/x%20y",
        "source_authorization": "Bearer a token",
    }
