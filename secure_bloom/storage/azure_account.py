"""The Azure account of a URI, and the credentials for it in the environment.

pyarrow takes a key only from a URI, and URIs are in reports.  So a key or a shared access signature
is read from the environment variables of Azure's own command line.  Without them the identity of
the machine or of the logged-in user is used, as pyarrow and the SDK find it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from pyarrow import fs

_KEY = "AZURE_STORAGE_KEY"
_SAS = "AZURE_STORAGE_SAS_TOKEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureAccount:
    """An account, the address of its blobs, and a key, a signature, or neither."""

    name: str
    url: str
    key: str | None = field(repr=False)
    sas_token: str | None = field(repr=False)


def azure_account(filesystem: Any) -> AzureAccount:
    """Return the account of a file system of pyarrow."""
    options = _options(filesystem)
    name, authority = options["account_name"], options["blob_storage_authority"]
    # An authority without an account is that of many; the emulator has the account in its paths.
    host = f"{name}{authority}" if authority.startswith(".") else f"{authority}/{name}"
    return AzureAccount(
        name=name,
        url=f"{options['blob_storage_scheme']}://{host}",
        key=options.get("account_key"),
        sas_token=options.get("sas_token", "").lstrip("?") or None,
    )


def credentials_of_environment() -> tuple[str, str] | None:
    """Return the credential in the environment, with pyarrow's name for its kind, or None."""
    key, sas = os.environ.get(_KEY), os.environ.get(_SAS)
    # The signature goes before the key: it grants less.
    if sas:
        # pyarrow wants the question mark, which some programs leave out.
        return "sas_token", "?" + sas.lstrip("?")
    return ("account_key", key) if key else None


def with_credentials(filesystem: Any, credentials: tuple[str, str]) -> Any:
    """Return the file system with these credentials."""
    name, value = credentials
    return fs.AzureFileSystem(**{**_options(filesystem), name: value})


def _options(filesystem: Any) -> dict[str, str]:
    """Return the arguments that make the same file system in another process."""
    # pyarrow has no other way to get them.
    options: dict[str, str] = filesystem.__reduce__()[1][0]
    return {name: value for name, value in options.items() if value}
