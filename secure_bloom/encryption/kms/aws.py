"""AWS KMS as a KMS client: wrap = Encrypt, unwrap = Decrypt, rewrap = ReEncrypt.

A wrapped key is the base64 text of AWS's CiphertextBlob.  Needs the extra ``aws`` (boto3).
"""

from __future__ import annotations

import base64
import io
import re
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from secure_bloom.encryption.configuration import ConfigTable
from secure_bloom.encryption.kms.calls import (
    AT_ONCE,
    RETRY_SECONDS,
    TIMEOUT_SECONDS,
    Calls,
    TransientFailureError,
    answer_body,
    strange_answer,
)
from secure_bloom.encryption.kms.client import WRAPPED_ELSEWHERE, misfit
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    KmsUnavailableError,
    PolicyError,
    SecureBloomError,
    imported_for,
)

#: The options of [kms] with client "aws", and their types.
WORDS: Mapping[str, type] = {
    "region": str,
    "endpoint_url": str,
    "encryption_context": dict,
    "retry_seconds": int,
}
#: Error codes after which AWS says to call again.
_TRANSIENT: Final = frozenset(
    {
        "DependencyTimeoutException",
        "InternalFailure",
        "InternalServerError",
        "KMSInternalException",
        "KeyUnavailableException",
        "LimitExceededException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
#: Error codes about the caller's credentials; they say nothing about a key.
_LOGIN: Final = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "OptInRequired",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
#: Error codes for a blob that is not one of this key, or has another encryption context.
_MISFIT: Final = frozenset({"IncorrectKeyException", "InvalidCiphertextException"})
_SERVER_ERROR: Final = 500
#: arn:PARTITION:kms:REGION:ACCOUNT:key/ID or alias/NAME
_ARN: Final = re.compile(r"(arn:[\w-]+:kms):([a-z0-9-]+):(\d+:(?:key|alias)/.+)")


class AwsKmsClient:
    """A :class:`~.client.KmsClient`; master key ids are key ids, ARNs or ``alias/...``.

    ``region`` and ``endpoint_url`` default to those of the AWS configuration, like the credentials.
    A key given by ARN is asked for in its own region; a multi-region key in ``region``, where a
    replica of the key is expected.  ``encryption_context`` is sent with every call.
    """

    def __init__(
        self,
        *,
        region: str | None = None,
        endpoint_url: str | None = None,
        encryption_context: Mapping[str, str] | None = None,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        with imported_for("the KMS client 'aws'", "aws"):
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError, ClientError
        self._errors = (BotoCoreError, ClientError)
        self._session: Any = boto3.session.Session()
        self._settings: dict[str, Any] = {
            "endpoint_url": endpoint_url,
            "config": Config(
                connect_timeout=TIMEOUT_SECONDS,
                read_timeout=TIMEOUT_SECONDS,
                # botocore keeps 10 connections otherwise, and closes each one beyond them after a
                # single call.
                max_pool_connections=AT_ONCE,
                # Repeating is done in one place for all providers.
                retries={"total_max_attempts": 1},
            ),
        }
        self._context = dict(encryption_context or {})
        home = self._made(region)
        self._region: str = home.meta.region_name
        self._by_region: dict[str, Any] = {self._region: home}
        self._making = threading.Lock()
        self._place = f"AWS KMS at {home.meta.endpoint_url}"
        self._calls = Calls(self._place, retry_seconds=retry_seconds)

    @classmethod
    def of(cls, table: ConfigTable) -> AwsKmsClient:
        """Return the client that a [kms] table describes."""
        seconds = table.get("retry_seconds", int)
        return cls(
            region=table.text("region"),
            endpoint_url=table.text("endpoint_url"),
            encryption_context=encryption_context(table),
            retry_seconds=RETRY_SECONDS if seconds is None else seconds,
        )

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Return ``key_bytes`` encrypted by AWS.

        Raises KeyUnavailableError with AWS's error code.
        """
        region, key_id = self._located(master_key_identifier)
        return _text(
            self._ask("encrypt", region, KeyId=key_id, Plaintext=key_bytes, **self._in_context)
        )

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the key that :meth:`wrap_key` wrapped.

        Raises KeyUnavailableError with AWS's error code.
        """
        blob = _blob(wrapped_key)
        region, key_id = self._located(master_key_identifier)
        # KeyId makes AWS refuse a blob that another key wrapped, whatever the blob itself says.
        return self._ask("decrypt", region, KeyId=key_id, CiphertextBlob=blob, **self._in_context)

    def rewrap_key(self, wrapped_key: str, master_key_identifier: str) -> str:
        """Return the key wrapped by the newest version of its master key.

        The key never leaves AWS.
        """
        return self.move_key(wrapped_key, master_key_identifier, master_key_identifier)

    def move_key(self, wrapped_key: str, old_master_key: str, new_master_key: str) -> str:
        """Return the key wrapped by another master key. The key never leaves AWS."""
        _, old_id = self._located(old_master_key)
        region, new_id = self._located(new_master_key)
        answer = self._ask(
            "re_encrypt",
            region,
            CiphertextBlob=_blob(wrapped_key),
            # SourceKeyId makes AWS refuse a blob that another key wrapped, as KeyId of a decrypt
            # does.
            SourceKeyId=old_id,
            DestinationKeyId=new_id,
            # AWS authenticates the context with the blob, so whoever unwraps it must give the same
            # one.
            SourceEncryptionContext=self._context,
            DestinationEncryptionContext=self._context,
        )
        return _text(answer)

    def canonical_id(self, master_key_id: str) -> str:
        """Return the same text for all ARNs of one multi-region key."""
        return self._located(master_key_id)[1]

    @property
    def _in_context(self) -> dict[str, Mapping[str, str]]:
        return {"EncryptionContext": self._context} if self._context else {}

    def _made(self, region: str | None) -> Any:
        try:
            client = self._session.client("kms", region_name=region, **self._settings)
        # botocore raises a bare ValueError for an endpoint that is no URL.
        except (*self._errors, ValueError) as exc:
            raise PolicyError(
                f"the AWS KMS client cannot be made: {type(exc).__name__}",
                hint="give region, and endpoint_url if need be, in [kms], or configure AWS",
            ) from exc
        # botocore has no public way to choose how answers are read.
        endpoint = client._endpoint
        endpoint.http_session = _LimitedSession(endpoint.http_session, client.meta.endpoint_url)
        return client

    def _client(self, region: str) -> Any:
        """Return the client of a region. It is created at its first use."""
        # Clients may be used by several threads, but a session must not make two at once.
        with self._making:
            if region not in self._by_region:
                self._by_region[region] = self._made(region)
            return self._by_region[region]

    def _located(self, master_key_id: str) -> tuple[str, str]:
        """Return the region in which to ask for a master key, and the key's id in that region."""
        arn = _ARN.fullmatch(master_key_id)
        if arn is None or arn[2] == self._region:
            return self._region, master_key_id
        # A multi-region key has the same id in every region; its ARNs differ in the region alone.
        if ":key/mrk-" in arn[3]:
            return self._region, f"{arn[1]}:{self._region}:{arn[3]}"
        return arn[2], master_key_id

    def _ask(self, operation: str, region: str, **parameters: object) -> bytes:
        """Return the key in the answer to an operation, in clear or wrapped."""
        kms = self._client(region)
        # A re-encryption has no KeyId: its errors name the key that should open the blob.
        key_id = str(parameters.get("KeyId", parameters.get("SourceKeyId")))

        field = "Plaintext" if operation == "decrypt" else "CiphertextBlob"

        def call() -> bytes:
            try:
                return bytes(getattr(kms, operation)(**parameters)[field])
            except self._errors as exc:
                raise self._failure(operation, key_id, exc) from exc

        return self._calls.run(call)

    def _failure(self, operation: str, key_id: str, exc: Exception) -> Exception:
        """Return our error for AWS's exception.

        It has AWS's error code only, because AWS's text may repeat what was sent.
        """
        response: Mapping[str, Any] = getattr(exc, "response", None) or {}
        code = str(response.get("Error", {}).get("Code") or type(exc).__name__)
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        reason = code if status is None else f"HTTP {status} {code}"
        # The code counts before the status: AWS answers throttling with HTTP 400, like a wrong
        # request.
        if code in _TRANSIENT or _is_no_answer(exc) or (status or 0) >= _SERVER_ERROR:
            return TransientFailureError(reason, answered=status is not None)
        return self._refused(operation, key_id, code, reason, has_answer=status is not None)

    def _refused(
        self, operation: str, key_id: str, code: str, reason: str, *, has_answer: bool
    ) -> SecureBloomError:
        # An error without an answer was raised before the call, where botocore looks for
        # credentials.
        if code in _LOGIN or not has_answer:
            return KmsUnavailableError(
                f"{self._place} did not take the credentials: {reason}",
                hint="check the AWS credentials of this process, and that they have not expired",
            )
        if code in _MISFIT:
            return misfit(key_id)
        return KeyUnavailableError(
            f"{self._place} did not {operation} under master key {key_id!r}: {reason}",
            hint="check the key's id, region, state and policy, and the rights of the credentials",
        )


class _LimitedSession:
    """The session of a client of botocore, which reads no answer beyond the limit."""

    def __init__(self, session: Any, address: str) -> None:
        self._session, self._place = session, f"AWS KMS at {address}"

    def send(self, request: Any) -> Any:
        """Return the answer to a request. Raises KmsUnavailableError if it is too large."""
        import urllib3
        from botocore.exceptions import HTTPClientError

        # The body is read here, and not before the answer is returned.
        request.stream_output = True
        response = self._session.send(request)
        try:
            body = answer_body(response.raw, partial(strange_answer, self._place))
        except urllib3.exceptions.HTTPError as exc:
            raise HTTPClientError(error=exc) from exc
        response.raw = urllib3.HTTPResponse(io.BytesIO(body), preload_content=False)
        return response

    def close(self) -> None:
        """Close all connections."""
        self._session.close()


def encryption_context(table: ConfigTable) -> dict[str, str]:
    """Return ``encryption_context`` as a mapping of texts. Raises PolicyError for anything else."""
    context = table.table("encryption_context", "'encryption_context' of [kms]")
    if context is None:
        return {}
    # `or` is for the type alone: each name asked for is in the table.
    return {name: context.get(name, str) or "" for name in context.entries}


def _is_no_answer(exc: Exception) -> bool:
    """Return whether no server answered.

    botocore's exceptions for this have no common base class.
    """
    from botocore.exceptions import ConnectionError as NoConnectionError
    from botocore.exceptions import HTTPClientError

    return isinstance(exc, NoConnectionError | HTTPClientError)


def _text(blob: bytes) -> str:
    return base64.b64encode(blob).decode("ascii")


def _blob(wrapped_key: str) -> bytes:
    try:
        return base64.b64decode(wrapped_key, validate=True)
    except ValueError as exc:
        raise FormatError(
            "a wrapped key is not base64, so AWS KMS has not wrapped it",
            hint=WRAPPED_ELSEWHERE,
        ) from exc
