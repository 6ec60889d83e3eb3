"""Vault and OpenBao as a KMS client: wrap = transit encrypt, unwrap = transit decrypt.

A wrapped key is the text of the transit engine, ``vault:vN:...``, unchanged. parquet-java's sample
client stores the same text, so each reads the other's files.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

from secure_bloom.encryption.kms.calls import Calls
from secure_bloom.encryption.kms.client import WRAPPED_ELSEWHERE, misfit
from secure_bloom.encryption.kms.vault.api import RefusalError, VaultApi, VaultLogin
from secure_bloom.encryption.kms.vault.settings import VaultSettings
from secure_bloom.errors import FormatError, KeyUnavailableError, SecureBloomError

#: Names of transit keys.  Checked, because a name becomes part of a URL and may come from a file.
_NAME: Final = re.compile(r"\w([\w.-]*\w)?", re.ASCII)
_WRAPPED: Final = re.compile(r"vault:v[1-9][0-9]{0,9}:[A-Za-z0-9+/]+={0,2}")
_VERSION: Final = re.compile(r"vault:v(\d{1,10}):")
_FORBIDDEN, _NOT_FOUND = 403, 404
#: Texts with which the engine says that a wrapped key is not one of this key.
_MISFITS: Final = ("message authentication failed", "invalid ciphertext")
#: Verb -> hvac's method, and the part of the path on which the token needs a capability.
_VERBS: Final = {
    "read": ("read_key", "keys"),
    "wrap": ("encrypt_data", "encrypt"),
    "unwrap": ("decrypt_data", "decrypt"),
    "rewrap": ("rewrap_data", "rewrap"),
}


class VaultKmsClient:
    """A :class:`~.client.KmsClient`; master key ids are names of keys of the transit engine.

    Creating the client does not ask the server.  One client serves several threads.
    """

    def __init__(self, settings: VaultSettings) -> None:
        self._place, self._mount = settings.place, settings.mount
        self._api = VaultApi(settings)
        self._login = VaultLogin(settings, self._api)
        self._calls = Calls(self._place, retry_seconds=settings.retry_seconds)
        #: Keys that are known to be there and to encrypt.
        self._found: set[str] = set()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Return ``key_bytes`` encrypted by the engine. Raises KeyUnavailableError if it refuses.

        Checks first whether the key exists, because `encrypt` would create a missing key.
        """
        self._check_there(master_key_identifier)
        plaintext = base64.b64encode(key_bytes).decode("ascii")
        data = self._transit("wrap", master_key_identifier, plaintext)
        return self._wrapped(data)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the key that :meth:`wrap_key` wrapped.

        Raises KeyUnavailableError if the engine refuses.
        """
        _check_wrapped(wrapped_key)
        data = self._transit("unwrap", master_key_identifier, wrapped_key)
        # The key is there, because it unwraps: before wrapping under it nobody need look for it.
        self._found.add(master_key_identifier)
        try:
            return base64.b64decode(data["plaintext"], validate=True)
        except (KeyError, TypeError, ValueError):
            # The foreign error is not chained: it may hold the key.
            raise self._api.strange("no plaintext after a decrypt") from None

    def rewrap_key(self, wrapped_key: str, master_key_identifier: str) -> str:
        """Return the key wrapped by the newest version of its master key.

        The key never leaves the engine.
        """
        _check_wrapped(wrapped_key)
        data = self._transit("rewrap", master_key_identifier, wrapped_key)
        return self._wrapped(data)

    def key_version(self, wrapped_key: str) -> str:
        """Return the version of the master key, which the text of a wrapped key begins with."""
        _check_wrapped(wrapped_key)
        return wrapped_key.split(":", 2)[1]

    def _wrapped(self, data: Mapping[str, Any]) -> str:
        wrapped = data.get("ciphertext")
        if not isinstance(wrapped, str) or not _WRAPPED.fullmatch(wrapped):
            raise self._api.strange("no ciphertext")
        return wrapped

    def _check_there(self, name: str) -> None:
        """Raise KeyUnavailableError unless the engine has a key ``name`` that encrypts."""
        if name in self._found:
            return
        data = self._transit("read", name)
        # A key that was deleted softly is still read, and wraps nothing any more.
        if data.get("soft_deleted") is True:
            raise KeyUnavailableError(f"master key {name!r} of {self._place} is deleted")
        if data.get("supports_encryption") is not True:
            raise KeyUnavailableError(
                f"master key {name!r} of {self._place} does not encrypt: it is of another type"
            )
        # No lock: at worst two threads look for the same key.
        self._found.add(name)

    def _transit(self, verb: str, name: str, *texts: str) -> Mapping[str, Any]:
        """Return the ``data`` of the engine's answer to ``verb`` under key ``name``."""
        if not _NAME.fullmatch(name):
            raise KeyUnavailableError(
                f"master key {name!r} cannot be one of {self._place}: names have letters, digits, "
                "'_', '-' and '.'"
            )
        method, _ = _VERBS[verb]

        def request(client: Any) -> Mapping[str, Any]:
            ask = getattr(client.secrets.transit, method)
            return self._api.request(lambda: ask(name, *texts, mount_point=self._mount))

        try:
            answer = self._calls.run(lambda: self._login.request(request))
        except RefusalError as refusal:
            raise self._refused(verb, name, refusal) from refusal
        data = answer.get("data")
        if not isinstance(data, dict):
            raise self._api.strange("no data")
        return data

    def _refused(self, verb: str, name: str, refusal: RefusalError) -> SecureBloomError:
        what = f"{self._place} does not {verb} under master key {name!r}: {refusal}"
        path = f"{self._mount}/{_VERBS[verb][1]}/{name}"
        if refusal.status == _NOT_FOUND and refusal.text:
            # The engine answers for a missing key without a text; this is about mount or namespace.
            return self._api.strange(f"{refusal}")
        if refusal.status == _NOT_FOUND:
            return KeyUnavailableError(
                f"{self._place} has no master key {name!r} at {self._mount}/",
                hint="keys are made by whoever rules the KMS, never by a run",
            )
        if refusal.status == _FORBIDDEN:
            capability = "read" if verb == "read" else "update"
            return KeyUnavailableError(
                what, hint=f"the token's policy needs {capability} on {path}"
            )
        if any(text in refusal.text for text in _MISFITS):
            return misfit(name)
        return KeyUnavailableError(what)


def version_in(wrapped_key: str) -> str | None:
    """Return the version in the text of a key that Vault or OpenBao wrapped; None for others."""
    found = _VERSION.match(wrapped_key)
    return None if found is None else found[1]


def _check_wrapped(wrapped_key: str) -> None:
    """Raise FormatError for a key that another provider wrapped, before a server sees it."""
    if not _WRAPPED.fullmatch(wrapped_key):
        raise FormatError(
            "a wrapped key is not one of Vault or OpenBao, which begin with vault:v1:",
            hint=WRAPPED_ELSEWHERE,
        )
