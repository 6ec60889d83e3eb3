"""Google Cloud KMS as a KMS client: wrap = Encrypt, unwrap = Decrypt.

A wrapped key is the base64 text of the ciphertext.  Needs the extra ``gcp`` (google-cloud-kms).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from secure_bloom.encryption.configuration import ConfigTable
from secure_bloom.encryption.kms.calls import (
    LARGEST_ANSWER,
    RETRY_SECONDS,
    TIMEOUT_SECONDS,
    Calls,
    TransientFailureError,
    is_this_machine,
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

#: The options of [kms] with client "gcp", and their types.
WORDS: Mapping[str, type] = {"key_ring": str, "endpoint": str, "retry_seconds": int}
_DEFAULT_ENDPOINT: Final = "cloudkms.googleapis.com"
_PART: Final = r"[\w.:-]+"
_RING: Final = re.compile(rf"projects/{_PART}/locations/{_PART}/keyRings/{_PART}", re.ASCII)
#: A name becomes part of a resource's path, and may come from a file.
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,63}")
#: Status codes of gRPC after which Google says to call again.
_TRANSIENT: Final = frozenset(
    {"ABORTED", "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "UNKNOWN"}
)
#: With this text gRPC refuses an answer, as if the server had been throttled.
_TOO_LARGE: Final = "essage larger than max"


class GcpKmsClient:
    """A :class:`~.client.KmsClient`.

    Master key ids are names in ``key_ring``, or full resource paths. Credentials are those of the
    process (Application Default Credentials).  ``endpoint`` is a host, for example of a private
    endpoint, or ``http://127.0.0.1:PORT`` for an emulator.
    """

    def __init__(
        self,
        *,
        key_ring: str | None = None,
        endpoint: str | None = None,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        with imported_for("the KMS client 'gcp'", "gcp"):
            from google.api_core.exceptions import GoogleAPICallError, RetryError
            from google.auth.exceptions import GoogleAuthError
            from google.cloud import kms
        if key_ring is not None and not _RING.fullmatch(key_ring):
            raise PolicyError(
                "'key_ring' of [kms] is not a key ring",
                hint='wanted: "projects/PROJECT/locations/LOCATION/keyRings/RING"',
            )
        # Kept, because the package is imported in here alone: others need not have it installed.
        self._errors, self._auth_error = (GoogleAPICallError, RetryError), GoogleAuthError
        self._key_ring = key_ring
        self._place = f"Google Cloud KMS at {endpoint or _DEFAULT_ENDPOINT}"
        self._calls = Calls(self._place, retry_seconds=retry_seconds)
        try:
            self._kms: Any = _client(kms, endpoint)
        except GoogleAuthError as exc:
            raise self._refused_login(exc) from exc

    @classmethod
    def of(cls, table: ConfigTable) -> GcpKmsClient:
        """Return the client that a [kms] table describes."""
        seconds = table.get("retry_seconds", int)
        return cls(
            key_ring=table.text("key_ring"),
            endpoint=table.text("endpoint"),
            retry_seconds=RETRY_SECONDS if seconds is None else seconds,
        )

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Return ``key_bytes`` encrypted by Google.

        Raises KeyUnavailableError with its status code.
        """
        answer = self._ask("encrypt", master_key_identifier, plaintext=key_bytes)
        return base64.b64encode(answer.ciphertext).decode("ascii")

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the key that :meth:`wrap_key` wrapped.

        Raises KeyUnavailableError with Google's status code.
        """
        try:
            ciphertext = base64.b64decode(wrapped_key, validate=True)
        except ValueError as exc:
            raise FormatError(
                "a wrapped key is not base64, so Google Cloud KMS has not wrapped it",
                hint=WRAPPED_ELSEWHERE,
            ) from exc
        return bytes(self._ask("decrypt", master_key_identifier, ciphertext=ciphertext).plaintext)

    def canonical_id(self, master_key_id: str) -> str:
        """Return the full path of a master key that may be given by its name in ``key_ring``."""
        return self._path(master_key_id)

    def _path(self, master_key_id: str) -> str:
        ring, separator, name = master_key_id.rpartition("/cryptoKeys/")
        is_whole = bool(separator) and _RING.fullmatch(ring) is not None
        if not is_whole and self._key_ring is not None:
            ring, name = self._key_ring, master_key_id
        if not ring or not _KEY.fullmatch(name):
            raise KeyUnavailableError(
                f"master key {master_key_id!r} cannot be one of {self._place}",
                hint="name it projects/.../keyRings/.../cryptoKeys/NAME, or set key_ring in [kms]",
            )
        # Whoever names a key ring has its keys; a path of another project may come from a file.
        if self._key_ring is not None and _project(ring) != _project(self._key_ring):
            raise KeyUnavailableError(
                f"master key {master_key_id!r} is of another project than key_ring of [kms]",
                hint="if the key is yours: leave key_ring out, and name all keys by whole paths",
            )
        return f"{ring}/cryptoKeys/{name}"

    def _ask(self, operation: str, master_key_id: str, **content: bytes) -> Any:
        request = {"name": self._path(master_key_id), **content}

        def call() -> Any:
            try:
                # Repeating is done in one place for all providers.
                return getattr(self._kms, operation)(
                    request=request, retry=None, timeout=TIMEOUT_SECONDS
                )
            except self._errors as exc:
                raise self._failure(operation, master_key_id, exc) from exc
            except self._auth_error as exc:
                raise self._refused_login(exc) from exc

        return self._calls.run(call)

    def _failure(self, operation: str, master_key_id: str, exc: Exception) -> Exception:
        """Return our error for Google's exception.

        It has Google's status code only, because Google's text may repeat what was sent.
        """
        code = getattr(getattr(exc, "grpc_status_code", None), "name", type(exc).__name__)
        if _TOO_LARGE in str(exc):
            return strange_answer(self._place, f"more than {LARGEST_ANSWER:,} bytes")
        if code in _TRANSIENT:
            return TransientFailureError(code)
        if code == "UNAUTHENTICATED":
            return self._refused_login(exc, code)
        # Google has no code of its own for a ciphertext that does not decrypt.
        if code == "INVALID_ARGUMENT" and operation == "decrypt":
            return misfit(master_key_id)
        return KeyUnavailableError(
            f"{self._place} did not {operation} under master key {master_key_id!r}: {code}",
            hint="check the key's name and state, and the rights of the credentials",
        )

    def _refused_login(self, exc: Exception, code: str | None = None) -> KmsUnavailableError:
        return KmsUnavailableError(
            f"{self._place} did not take the credentials: {code or type(exc).__name__}",
            hint="check the Application Default Credentials of this process",
        )


def _project(ring: str) -> str:
    return ring.split("/")[1]


def _client(kms: Any, endpoint: str | None) -> Any:
    import grpc
    from google.cloud.kms_v1.services.key_management_service.transports import (
        KeyManagementServiceGrpcTransport as Transport,
    )

    if endpoint is None or "://" not in endpoint:
        # A host alone is asked with TLS, like the default one.
        options = {"api_endpoint": endpoint} if endpoint else None
        # Google's own channel has no limit.
        channel = partial(_with_limit, Transport.create_channel)
        return kms.KeyManagementServiceClient(
            transport=partial(Transport, channel=channel), client_options=options
        )
    parts = urlsplit(endpoint)
    # Without TLS keys would cross the network in clear, so the endpoint must be on this
    # machine.
    if parts.scheme != "http" or not is_this_machine(parts.hostname or ""):
        raise PolicyError(
            "'endpoint' of [kms] is neither a host nor http://127.0.0.1:PORT",
            hint=f'wanted: "{_DEFAULT_ENDPOINT}" or another host, which is called with TLS',
        )
    channel = _with_limit(grpc.insecure_channel, parts.netloc)
    return kms.KeyManagementServiceClient(transport=Transport(channel=channel))


def _with_limit(create: Callable[..., Any], *where: object, **settings: Any) -> Any:
    """Return a new channel of gRPC that reads no answer beyond the limit, unpacked."""
    given = dict(settings.pop("options", ()))
    options = {**given, "grpc.max_receive_message_length": LARGEST_ANSWER}
    return create(*where, **settings, options=list(options.items()))
