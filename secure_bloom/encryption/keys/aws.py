"""AWS KMS as a KMS client: wrap = Encrypt, unwrap = Decrypt, no EncryptionContext.

A wrapped key is the base64 text of AWS's CiphertextBlob.  Needs the extra ``aws`` (boto3).
"""

from __future__ import annotations

import base64
from typing import Any

from secure_bloom.errors import FormatError, KeyUnavailableError, PolicyError


class AwsKmsClient:
    """A :class:`~.client.KmsClient`; master key ids are key ids, ARNs or ``alias/...``.

    ``region`` and ``endpoint_url`` default to those of the AWS configuration, as credentials do.
    """

    def __init__(self, *, region: str | None = None, endpoint_url: str | None = None) -> None:
        try:
            import boto3
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError as exc:
            raise PolicyError(
                "the KMS client 'aws' needs boto3", hint="pip install 'secure-bloom[aws]'"
            ) from exc
        self._errors = (BotoCoreError, ClientError)
        try:
            self._kms = boto3.client("kms", region_name=region, endpoint_url=endpoint_url)
        except (BotoCoreError, ValueError) as exc:
            raise PolicyError(
                f"the AWS KMS client cannot be made: {type(exc).__name__}",
                hint="give region, and endpoint_url if need be, in [kms], or configure AWS",
            ) from exc

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """``key_bytes`` encrypted by AWS; KeyUnavailableError with AWS's error code."""
        answer = self._ask("encrypt", KeyId=master_key_identifier, Plaintext=key_bytes)
        return base64.b64encode(answer["CiphertextBlob"]).decode("ascii")

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """The key that :meth:`wrap_key` wrapped; KeyUnavailableError with AWS's error code."""
        try:
            blob = base64.b64decode(wrapped_key, validate=True)
        except ValueError as exc:
            raise FormatError("a wrapped key is not base64") from exc
        # KeyId makes AWS refuse a blob that another key wrapped, whatever the blob itself says.
        answer = self._ask("decrypt", KeyId=master_key_identifier, CiphertextBlob=blob)
        return bytes(answer["Plaintext"])

    def _ask(self, operation: str, **parameters: object) -> Any:
        try:
            return getattr(self._kms, operation)(**parameters)
        except self._errors as exc:
            raise KeyUnavailableError(
                f"AWS KMS did not {operation} under master key {parameters['KeyId']!r}: "
                f"{_reason(exc)}",
                hint="check the key's id, region and policy, and the credentials",
            ) from exc


def _reason(exc: Exception) -> str:
    """AWS's error code, else the kind of failure: texts may repeat what was sent."""
    response = getattr(exc, "response", None) or {}
    return str(response.get("Error", {}).get("Code") or type(exc).__name__)
