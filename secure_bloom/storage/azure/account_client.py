"""Make the SDK's client for a URI, with the account, address and credentials that pyarrow found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Any

from azure.storage.blob import (
    BlobSasPermissions,
    BlobServiceClient,
    ExponentialRetry,
    generate_blob_sas,
)

from secure_bloom.storage.azure_account import AzureAccount, azure_account

#: Pauses in seconds before a request is sent again; the SDK's own begin with 15.
_RETRIES = partial(
    ExponentialRetry, initial_backoff=1, increment_base=2, retry_total=5, random_jitter_range=1
)
#: The store may take this long to copy a range.
_VALID = timedelta(hours=24)
_SCOPE = "https://storage.azure.com/.default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account: its client, and the right by which the store itself may read a blob of it."""

    service: Any = field(repr=False)
    #: Bucket and key -> the fields of a request to copy from there.
    source: Callable[[str, str], dict[str, str]] = field(repr=False)

    def blob(self, bucket: str, key: str) -> Any:
        """Return the client of one blob."""
        return self.service.get_blob_client(bucket, key)


def connect(_path: str, filesystem: Any) -> tuple[str, Account]:
    """Return the store and the account of a file system of pyarrow."""
    account = azure_account(filesystem)
    return account.url, _account(account)


@lru_cache(maxsize=16)
def _account(account: AzureAccount) -> Account:
    credential = _credential(account)
    service = BlobServiceClient(account.url, credential=credential, retry_policy=_RETRIES())

    def source(bucket: str, key: str) -> dict[str, str]:
        url = service.get_blob_client(bucket, key).url
        if account.key:
            return {"source_url": f"{url}?{_signature(account, bucket, key)}"}
        if account.sas_token:
            # The SDK has put the signature into the URL already, as it does for its own requests.
            return {"source_url": f"{url.partition('?')[0]}?{account.sas_token}"}
        # Each copy asks for a token: the credential keeps one as long as it is valid.
        token = credential.get_token(_SCOPE).token
        return {"source_url": url, "source_authorization": f"Bearer {token}"}

    return Account(service=service, source=source)


def _credential(account: AzureAccount) -> Any:
    if account.key:
        # With the name, because the emulator's addresses do not begin with it.
        return {"account_name": account.name, "account_key": account.key}
    if account.sas_token:
        return account.sas_token
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()


def _signature(account: AzureAccount, bucket: str, key: str) -> str:
    """Return a signed right to read one blob, made on this machine with the account's key."""
    signature: str = generate_blob_sas(
        account.name,
        bucket,
        key,
        account_key=account.key,
        permission=BlobSasPermissions(read=True),
        expiry=datetime.now(UTC) + _VALID,
    )
    return signature
