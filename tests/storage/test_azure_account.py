"""The account of a URI: its address, and what the environment has to open it."""

from __future__ import annotations

import pytest
from pyarrow import fs

from secure_bloom.storage.azure_account import (
    azure_account,
    credentials_of_environment,
    with_credentials,
)


@pytest.mark.parametrize(
    ("uri", "url"),
    [
        ("abfss://lake@acc.dfs.core.windows.net/", "https://acc.blob.core.windows.net"),
        ("abfs://acc@lake/", "https://acc.blob.core.windows.net"),
        ("abfs://acc@127.0.0.1:10000/?enable_tls=false", "http://127.0.0.1:10000/acc"),
    ],
)
def test_an_account_is_where_pyarrow_finds_it(uri: str, url: str) -> None:
    account = azure_account(fs.FileSystem.from_uri(uri)[0])
    assert (account.name, account.url, account.key, account.sas_token) == ("acc", url, None, None)


def test_a_signature_goes_before_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    filesystem = fs.FileSystem.from_uri("abfs://acc@lake/")[0]
    monkeypatch.delenv("AZURE_STORAGE_KEY", raising=False)
    monkeypatch.delenv("AZURE_STORAGE_SAS_TOKEN", raising=False)
    assert credentials_of_environment() is None
    monkeypatch.setenv("AZURE_STORAGE_KEY", "c2VjcmV0")
    found = credentials_of_environment()
    assert found is not None
    account = azure_account(with_credentials(filesystem, found))
    assert (account.key, account.sas_token) == ("c2VjcmV0", None)
    assert "c2VjcmV0" not in repr(account)
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sig=x")
    found = credentials_of_environment()
    assert found is not None
    account = azure_account(with_credentials(filesystem, found))
    assert (account.key, account.sas_token) == (None, "sig=x")
