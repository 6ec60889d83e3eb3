"""Send requests to Vault or OpenBao through hvac, and return their answers or raise our errors.

The token of a client is got by a login, renewed, and got anew when it is no longer valid.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from secure_bloom.encryption.kms.calls import (
    AT_ONCE,
    TIMEOUT_SECONDS,
    TransientFailureError,
    limit_answers,
)
from secure_bloom.encryption.kms.vault.settings import VaultSettings, environment
from secure_bloom.errors import KmsUnavailableError, PolicyError, imported_for
from secure_bloom.reports.text import legible
from secure_bloom.running.bounded_documents import read_bounded

#: Throttled, sealed, without a leader, or behind a balancer that has nobody to ask just now.
_TRANSIENT: Final = frozenset({412, 429, 472, 473, 500, 502, 503, 504})
_LONGEST_TEXT: Final = 200
#: A server should repeat neither tokens nor wrapped keys, and what is shown must not if it does.
_SECRET: Final = re.compile(
    r"\b(?:hv[sbr]|[sbr])\.\S+|vault:v\d+:\S+|[A-Za-z0-9+/_]{40,}=*|[A-Za-z0-9+/]{20,}={1,2}"
)


class RefusalError(Exception):
    """The server refused one request: its HTTP status, and its own text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}: {text}" if text else f"HTTP {status}")
        self.status = status
        self.text = text


class VaultApi:
    """Makes clients of hvac for one server, and translates the errors of their requests."""

    def __init__(self, settings: VaultSettings) -> None:
        with imported_for("the KMS client 'vault'", "vault"):
            import hvac
            import requests
        if settings.ca_file is not None and not settings.ca_file.is_file():
            raise PolicyError("the CA file of [kms] is not there", path=str(settings.ca_file))
        self._place = settings.place
        self._no_answer = requests.RequestException
        self._settings, self._hvac = settings, hvac
        self._session = requests.Session()
        # If hvac gets a session, it takes the session's `verify` and not its own argument.
        self._session.verify = True if settings.ca_file is None else str(settings.ca_file)
        limit_answers(self._session, self.strange)
        # requests keeps 10 connections otherwise.
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, requests.adapters.HTTPAdapter(pool_maxsize=AT_ONCE))

    def client(self, token: str) -> Any:
        """Return an hvac client with this token. All clients share their connections."""
        return self._hvac.Client(
            url=self._settings.address,
            # Never None, for which hvac would read ~/.vault-token.
            token=token,
            namespace=self._settings.namespace,
            verify=self._session.verify,
            timeout=TIMEOUT_SECONDS,
            # hvac would send the token on to wherever a redirect leads.
            allow_redirects=False,
            session=self._session,
            # Responses as they came: hvac's exceptions have no status and no headers.
            adapter=self._hvac.adapters.RawAdapter,
            ignore_exceptions=True,
        )

    def request(self, request: Callable[[], Any]) -> Mapping[str, Any]:
        """Return the JSON object that ``request``, a call of hvac, returns; {} for an empty answer.

        Raises RefusalError if the server refuses, TransientFailureError if repeating may help, and
        KmsUnavailableError if the answer is not one of Vault's API.
        """
        try:
            response = request()
        except self._no_answer as exc:
            raise self._unreachable(exc) from exc
        # No content: what Vault answers to requests that only change something.
        if response.status_code == 204:
            return {}
        answer = _json_object(response)
        if response.status_code == 200 and answer is not None:
            return answer
        raise self._refused(response, answer)

    def strange(self, what: str) -> KmsUnavailableError:
        """Return the error for an answer that Vault's API does not have."""
        return KmsUnavailableError(
            f"the answer of {self._place} does not come from Vault or OpenBao: {what}",
            hint="check address, namespace and mount of [kms]; redirects are not followed",
        )

    def _refused(self, response: Any, answer: Mapping[str, Any] | None) -> Exception:
        status: int = response.status_code
        errors = None if answer is None else answer.get("errors")
        text = _shown(errors) if isinstance(errors, list) else ""
        if status in _TRANSIENT:
            reason = f"HTTP {status}: {text}" if text else f"HTTP {status}"
            return TransientFailureError(reason, pause=_retry_after(response))
        if not isinstance(errors, list):
            return self.strange(f"HTTP {status}, without a list of errors")
        return RefusalError(status, text)

    def _unreachable(self, exc: Exception) -> Exception:
        import ssl

        for cause in _causes(exc):
            if isinstance(cause, ssl.SSLCertVerificationError):
                return KmsUnavailableError(
                    f"the certificate of {self._place} does not fit: {cause.verify_message}",
                    hint="name the CA that signed it: ca_file of [kms], VAULT_CACERT or BAO_CACERT",
                )
            if isinstance(cause, ssl.SSLError):
                return KmsUnavailableError(
                    f"{self._place} does not speak TLS: {cause.reason}",
                    hint="check the scheme and the port of address in [kms]",
                )
            if isinstance(cause, OSError) and cause.strerror:
                return TransientFailureError(f"no connection: {cause.strerror}", answered=False)
        return TransientFailureError(f"no answer: {type(exc).__name__}", answered=False)


def _json_object(response: Any) -> Mapping[str, Any] | None:
    try:
        answer = response.json()
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _retry_after(response: Any) -> float | None:
    """Return the seconds of ``Retry-After``, or None.

    A date is ignored: Vault sends none.
    """
    text = response.headers.get("Retry-After", "")
    # Five digits would be a day or more: a server that says so is broken.
    return float(text) if text.isascii() and text.isdigit() and len(text) < 5 else None


def _shown(errors: list[object]) -> str:
    """Return the server's error texts, cut and cleaned for an error message."""
    text = " ".join("; ".join(map(str, errors)).split())
    return legible(_SECRET.sub("...", text), _LONGEST_TEXT)


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions that led to an exception of requests.

    requests hides them in arguments and in causes.
    """
    seen: set[int] = set()
    waiting: list[object] = [exc]
    while waiting:
        found = waiting.pop()
        if isinstance(found, BaseException) and id(found) not in seen:
            seen.add(id(found))
            yield found
            reason = getattr(found, "reason", None)
            # urllib3 keeps the error that made it give up in `reason`, and requests that one in its
            # arguments.
            waiting += [found.__cause__, found.__context__, reason, *found.args]


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
