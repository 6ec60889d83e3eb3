"""Send one request to Vault or OpenBao through hvac, and return its answer or raise our error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from secure_bloom.encryption.kms.answers import limit_answers
from secure_bloom.encryption.kms.calls import AT_ONCE, TIMEOUT_SECONDS, TransientFailureError
from secure_bloom.encryption.kms.vault.settings import VaultSettings
from secure_bloom.errors import KmsUnavailableError, PolicyError, imported_for
from secure_bloom.reports.text import legible

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
