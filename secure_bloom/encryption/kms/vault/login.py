"""Get the token of a Vault client, renew it, and log in again when it is no longer valid."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from secure_bloom.encryption.kms.vault.api import RefusalError, VaultApi
from secure_bloom.encryption.kms.vault.settings import VaultSettings, environment
from secure_bloom.errors import KmsUnavailableError
from secure_bloom.running.bounded_documents import read_bounded

T = TypeVar("T")

#: A token is renewed when this share of its life is over.
_RENEWED_AT: Final = 2 / 3
#: The most new tokens that are tried for one request.
_NEW_TOKENS: Final = 3
_FORBIDDEN: Final = 403


@dataclass(frozen=True, slots=True, kw_only=True)
class _LoginToken:
    """A token, and when to renew it. ``renew_at`` is None if its lifetime is unknown or endless.

    ``client`` is the hvac client that makes requests with this token.
    """

    value: str = field(repr=False)
    client: Any = field(repr=False)
    renew_at: float | None
    is_renewable: bool


class VaultLogin:
    """Makes requests with a valid token, for many threads."""

    def __init__(self, settings: VaultSettings, api: VaultApi) -> None:
        self._settings = settings
        self._api = api
        self._lock = threading.Lock()
        self._token: _LoginToken | None = None

    def request(self, request: Callable[[Any], T]) -> T:
        """Return what ``request`` returns. Calls it again if the token has expired.

        Raises RefusalError if a valid token is not allowed this request, KmsUnavailableError if no
        valid token can be got, and what ``request`` raises.
        """
        used = self._valid_token()
        # More than one new token, because a short-lived one can end before its request is made.
        for _ in range(_NEW_TOKENS):
            try:
                return request(used.client)
            except RefusalError as refusal:
                if refusal.status != _FORBIDDEN or self._is_accepted(used):
                    raise
                used = self._replaced(used, refusal)
        return request(used.client)

    def _valid_token(self) -> _LoginToken:
        with self._lock:
            # The lock is held during the login: threads that find no token wait for one, and do not
            # each get one.
            token = self._token
            if token is None:
                token = self._log_in()
            elif token.renew_at is not None and time.monotonic() >= token.renew_at:
                token = self._renew(token)
            self._token = token
            return token

    def _is_accepted(self, used: _LoginToken) -> bool:
        """Return whether the server still accepts the token. A 403 may be about the key only."""
        with self._lock:
            # Another thread has replaced the token meanwhile, and the request is made again with
            # that one.
            if self._token is not used:
                return False
            try:
                self._api.request(used.client.auth.token.lookup_self)
            except RefusalError as refusal:
                return refusal.status != _FORBIDDEN
            return True

    def _replaced(self, used: _LoginToken, refusal: RefusalError) -> _LoginToken:
        """Return a new token, or the token that another thread got meanwhile."""
        with self._lock:
            if self._token is used or self._token is None:
                token = self._log_in()
                # The file or the environment still holds the refused token: it would be refused
                # again.
                if token.value == used.value:
                    raise self._refused(refusal) from refusal
                self._token = token
            return self._token

    def _renew(self, token: _LoginToken) -> _LoginToken:
        """Return the token with a longer lifetime, or a new token if it cannot be renewed."""
        if not token.is_renewable:
            return self._log_in()
        try:
            auth = self._api.request(token.client.auth.token.renew_self).get("auth")
        except RefusalError:
            return self._log_in()
        # A renewal keeps the token, and its answer may leave the text out.
        return self._of_lease(auth, fallback=token.value)

    def _log_in(self) -> _LoginToken:
        return _LOGINS[self._settings.auth](self)

    def by_token(self) -> _LoginToken:
        """Return the token in ``token_file``, else the token in the environment."""
        file = self._settings.token_file
        value = environment("TOKEN") if file is None else self._secret(file, "the token")
        if value is None:
            raise KmsUnavailableError(
                f"there is no token for {self._settings.place}",
                hint="set VAULT_TOKEN or BAO_TOKEN, or name a file: token_file of [kms]",
            )
        client = self._api.client(value)
        try:
            found = self._api.request(client.auth.token.lookup_self).get("data")
        except RefusalError:
            # A token without the default policy may not look itself up, and may do all else.
            found = None
        data = found if isinstance(found, dict) else {}
        return self._of(value, data.get("ttl"), data.get("renewable"))

    def by_approle(self) -> _LoginToken:
        """Return a token for a role id and a secret id."""
        role_id = self._identifier(self._settings.role_id_file, "ROLE_ID", "role_id_file")
        secret_id = self._identifier(self._settings.secret_id_file, "SECRET_ID", "secret_id_file")
        return self._exchange(
            lambda client: client.auth.approle.login(
                role_id=role_id,
                secret_id=secret_id,
                mount_point=self._settings.auth_mount,
                use_token=False,
            )
        )

    def by_kubernetes(self) -> _LoginToken:
        """Return a token for the service account of this pod."""
        jwt = self._secret(self._settings.jwt_file, "the service account's token")
        return self._exchange(
            lambda client: client.auth.kubernetes.login(
                role=self._settings.role,
                jwt=jwt,
                mount_point=self._settings.auth_mount,
                use_token=False,
            )
        )

    def _exchange(self, log_in: Callable[[Any], Any]) -> _LoginToken:
        # Without a token: this request is what gives one.
        client = self._api.client("")
        try:
            auth = self._api.request(lambda: log_in(client)).get("auth")
        except RefusalError as refusal:
            raise self._refused(refusal) from refusal
        return self._of_lease(auth)

    def _of_lease(self, auth: object, *, fallback: str | None = None) -> _LoginToken:
        """Return the token in the ``auth`` part of an answer."""
        fields: Mapping[str, Any] = auth if isinstance(auth, dict) else {}
        value = fields.get("client_token") or fallback
        if not isinstance(value, str):
            raise self._api.strange("no token after a login")
        return self._of(value, fields.get("lease_duration"), fields.get("renewable"))

    def _of(self, value: str, seconds: object, is_renewable: object) -> _LoginToken:
        """Return a token that lives for ``seconds``. 0, as for a root token, means for ever."""
        lives = seconds if isinstance(seconds, int) and seconds > 0 else None
        return _LoginToken(
            value=value,
            client=self._api.client(value),
            # Before its end, because a token that has ended cannot be renewed any more.
            renew_at=None if lives is None else time.monotonic() + lives * _RENEWED_AT,
            is_renewable=is_renewable is True,
        )

    def _identifier(self, file: Path | None, name: str, word: str) -> str:
        value = environment(name) if file is None else self._secret(file, f"the {name.lower()}")
        if value is None:
            raise KmsUnavailableError(
                f"there is no {name.lower()} for {self._settings.place}",
                hint=f"set VAULT_{name} or BAO_{name}, or name a file: {word} of [kms]",
            )
        return value

    @staticmethod
    def _secret(file: Path, what: str) -> str:
        """Return the text in a file.

        It is read again for each login: agents and Kubernetes replace it.
        """
        try:
            with file.open("rb") as opened:
                value = read_bounded(opened, what).decode("ascii").strip()
        except OSError as exc:
            raise KmsUnavailableError(
                f"{what} cannot be read: {exc.strerror}", path=str(file)
            ) from exc
        except UnicodeDecodeError:
            # The foreign error is not chained: it holds the file's content.
            value = ""
        if not value or not value.isprintable():
            raise KmsUnavailableError(f"{what} is empty, or no line of text", path=str(file))
        return value

    def _refused(self, refusal: RefusalError) -> KmsUnavailableError:
        auth = self._settings.auth
        what = "the token" if auth == "token" else f"the login by {auth}"
        return KmsUnavailableError(
            f"{self._settings.place} refuses {what}: {refusal}",
            hint="the token has expired, was revoked, or belongs to another server or namespace"
            if auth == "token"
            else f"check the role, its secrets and auth_mount ({self._settings.auth_mount!r})",
        )


_LOGINS: Final[Mapping[str, Callable[[VaultLogin], _LoginToken]]] = {
    "token": VaultLogin.by_token,
    "approle": VaultLogin.by_approle,
    "kubernetes": VaultLogin.by_kubernetes,
}
