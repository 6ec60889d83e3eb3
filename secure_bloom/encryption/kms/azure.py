"""Azure Key Vault as a KMS client: wrap = wrapKey, unwrap = unwrapKey.

A wrapped key is ``azure:VERSION:BASE64``: the version of the master key, which unwrapping needs,
and the result of RSA-OAEP-256.  Needs the extra ``azure`` (azure-keyvault-keys, azure-identity).
"""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from secure_bloom.encryption.configuration import ConfigTable
from secure_bloom.encryption.kms.calls import (
    AT_ONCE,
    RETRY_SECONDS,
    TIMEOUT_SECONDS,
    Calls,
    TransientFailureError,
    limit_answers,
    strange_answer,
)
from secure_bloom.encryption.kms.client import WRAPPED_ELSEWHERE, misfit
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    KmsUnavailableError,
    PolicyError,
    imported_for,
)

#: The options of [kms] with client "azure", and their types.
WORDS: Mapping[str, type] = {"vault_url": str, "retry_seconds": int}
#: A name becomes part of a URL, and may come from a file; so may a version.
_NAME: Final = re.compile(r"[0-9A-Za-z-]{1,127}")
_WRAPPED: Final = re.compile(r"azure:([0-9a-f]{32}):([A-Za-z0-9+/]+={0,2})")
_VERSION: Final = re.compile(r"azure:(\w{1,64}):")
_TRANSIENT: Final = frozenset({408, 429, 500, 502, 503, 504})
_UNAUTHORIZED, _BAD_REQUEST = 401, 400


class AzureKmsClient:
    """A :class:`~.client.KmsClient`; master key ids are names of RSA keys of the vault.

    The credentials are those that ``DefaultAzureCredential`` finds for the process.
    """

    def __init__(self, *, vault_url: str, retry_seconds: float = RETRY_SECONDS) -> None:
        with imported_for("the KMS client 'azure'", "azure"):
            import requests
            from azure.core.exceptions import AzureError, ClientAuthenticationError
            from azure.core.pipeline.transport import RequestsTransport
            from azure.identity import DefaultAzureCredential
            from azure.keyvault.keys.crypto import CryptographyClient, KeyWrapAlgorithm
        parts = urlsplit(vault_url)
        # The credential's token is sent to this address.
        if parts.scheme != "https" or not parts.hostname or parts.username is not None:
            raise PolicyError(
                "'vault_url' of [kms] is not the address of a vault",
                hint='wanted: "https://NAME.vault.azure.net"',
            )
        self._url = f"https://{parts.netloc}"
        self._error, self._login_error = AzureError, ClientAuthenticationError
        self._client, self._algorithm = CryptographyClient, KeyWrapAlgorithm.rsa_oaep_256
        self._credential = DefaultAzureCredential()
        session = requests.Session()
        limit_answers(session, partial(strange_answer, self._url))
        # All clients share its connections, of which requests keeps 10 otherwise.
        session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=AT_ONCE))
        self._transport = RequestsTransport(session=session, session_owner=False)
        self._calls = Calls(self._url, retry_seconds=retry_seconds)
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()

    @classmethod
    def of(cls, table: ConfigTable) -> AzureKmsClient:
        """Return the client that a [kms] table describes."""
        vault_url, seconds = table.text("vault_url"), table.get("retry_seconds", int)
        if vault_url is None:
            raise PolicyError(
                '[kms] with client "azure" names no vault',
                hint='vault_url = "https://NAME.vault.azure.net"',
            )
        return cls(vault_url=vault_url, retry_seconds=RETRY_SECONDS if seconds is None else seconds)

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Return ``key_bytes`` wrapped under the key's newest version.

        Raises KeyUnavailableError with Azure's status.
        """
        key_id, encrypted_key = self._ask("wrap_key", master_key_identifier, "", key_bytes)
        # RSA's ciphertext does not show which version of the key made it, so the version is stored
        # beside it.
        version = key_id.rpartition("/")[2]
        wrapped = f"azure:{version}:{base64.b64encode(encrypted_key).decode('ascii')}"
        # Checked before anyone writes it into a file: without a version nobody could unwrap it
        # again.
        if not _WRAPPED.fullmatch(wrapped):
            raise KmsUnavailableError(
                f"the answer of {self._url} names no version of the key, as Azure Key Vault does"
            )
        return wrapped

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the key that :meth:`wrap_key` wrapped.

        Raises KeyUnavailableError with Azure's status.
        """
        version, content = _parts(wrapped_key)
        return self._ask("unwrap_key", master_key_identifier, version, content)[1]

    def key_version(self, wrapped_key: str) -> str:
        """Return the version of the master key, which the text of a wrapped key contains."""
        return _parts(wrapped_key)[0]

    def _ask(self, operation: str, name: str, version: str, content: bytes) -> tuple[str, bytes]:
        """Return the id of the version that did an operation, and the key in its answer."""
        if not _NAME.fullmatch(name):
            raise KeyUnavailableError(
                f"master key {name!r} cannot be one of {self._url}: names have letters, digits "
                "and '-'"
            )
        client = self._client_of(name, version)

        field = "encrypted_key" if operation == "wrap_key" else "key"

        def call() -> tuple[str, bytes]:
            try:
                answer = getattr(client, operation)(self._algorithm, content)
            except self._error as exc:
                raise self._failure(operation, name, exc) from exc
            return str(answer.key_id), bytes(getattr(answer, field))

        return self._calls.run(call)

    def _client_of(self, name: str, version: str) -> Any:
        with self._lock:
            # Kept, because a new client asks the vault for the key itself before its first
            # operation.
            client = self._clients.get((name, version))
            if client is None:
                client = self._clients[name, version] = self._client(
                    # A path that ends at the name means the newest version.
                    f"{self._url}/keys/{name}/{version}".rstrip("/"),
                    self._credential,
                    transport=self._transport,
                    # Repeating is done in one place for all providers.
                    retry_total=0,
                    connection_timeout=TIMEOUT_SECONDS,
                    read_timeout=TIMEOUT_SECONDS,
                )
            return client

    def _failure(self, operation: str, name: str, exc: Exception) -> Exception:
        """Return our error for Azure's exception.

        It has Azure's error code only, because Azure's text may repeat what was sent.
        """
        status = getattr(exc, "status_code", None)
        code = getattr(getattr(exc, "error", None), "code", None)
        reason = type(exc).__name__ if status is None else f"HTTP {status} {code or ''}".rstrip()
        if isinstance(exc, self._login_error) or status == _UNAUTHORIZED:
            return KmsUnavailableError(
                f"{self._url} did not take the credentials: {reason}",
                hint="check the Azure credentials of this process",
            )
        if status is None or status in _TRANSIENT:
            return TransientFailureError(reason, answered=status is not None)
        if status < _BAD_REQUEST:
            return strange_answer(self._url, reason)
        # Azure has no code of its own for a ciphertext that does not decrypt.
        if status == _BAD_REQUEST and operation == "unwrap_key":
            return misfit(name)
        return KeyUnavailableError(
            f"{self._url} did not {operation.replace('_key', '')} under master key {name!r}: "
            f"{reason}",
            hint="the credentials need get, wrapKey and unwrapKey on an RSA key that is enabled",
        )


def version_in(wrapped_key: str) -> str | None:
    """Return the version in the text of a key that AzureKmsClient wrapped.

    Return None for other keys.
    """
    found = _VERSION.match(wrapped_key)
    return None if found is None else found[1]


def _parts(wrapped_key: str) -> tuple[str, bytes]:
    """Return the version of the master key and the wrapped bytes, from the text of a wrapped key.

    Raises FormatError for a key that another provider wrapped.
    """
    found = _WRAPPED.fullmatch(wrapped_key)
    if found is None:
        raise FormatError(
            "a wrapped key is not one of Azure Key Vault, which begin with azure:",
            hint=WRAPPED_ELSEWHERE,
        )
    # No need to validate: the pattern has let only base64's own characters through.
    return found[1], base64.b64decode(found[2])
