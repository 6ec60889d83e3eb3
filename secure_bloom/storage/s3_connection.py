"""Make the boto3 client for a URI, with the endpoint, region and credentials that pyarrow takes.

Refusals of S3 become errors of this package.  The SDK repeats requests, with growing pauses, before
it raises an error. This package repeats nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

import boto3
import botocore.exceptions
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)

from secure_bloom.calling import made_once
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.storage.object_writer import StoredObject
from secure_bloom.storage.os_errors import (
    CHANGED,
    CREDENTIALS,
    NO_CONDITIONS_THERE,
    OBJECT_GONE,
    refusal,
    unreachable,
    without_credentials,
)
from secure_bloom.storage.paths import object_uri
from secure_bloom.storage.store_grants import S3Settings, settings_for

#: Another conditional request for the object is under way: nobody knows yet which one counts.
_UNDECIDED = ("ConditionalRequestConflict", "OperationAborted", "409")
#: A condition did not hold, or it is undecided.
_CONFLICTS = ("PreconditionFailed", "412", *_UNDECIDED)
#: What a status means that S3, or another store with its protocol, sends in place of a word.
_STATUSES = {404: OBJECT_GONE, 409: CHANGED, 501: NO_CONDITIONS_THERE}


@contextmanager
def errors(path: str) -> Iterator[None]:
    """Raise exceptions of boto3 as errors of this package about ``path``."""
    try:
        yield
    except ClientError as exc:
        raise _refusal(exc, path) from exc
    except (NoCredentialsError, PartialCredentialsError) as exc:
        raise without_credentials(path, CREDENTIALS) from exc
    except (botocore.exceptions.ConnectionError, HTTPClientError) as exc:
        raise unreachable(path, exc) from exc
    except BotoCoreError as exc:
        raise PolicyError(f"boto3 cannot ask the store: {exc}", path=path) from exc


def code_of(error: ClientError) -> str:
    """Return the store's error code, or the HTTP status if it sent no code."""
    return str(error.response.get("Error", {}).get("Code", "unknown"))


def is_conflict(error: ClientError) -> bool:
    """Return whether a condition of the request did not hold."""
    return code_of(error) in _CONFLICTS


def is_undecided(error: ClientError) -> bool:
    """Return whether another request for the object is under way, perhaps our own first one."""
    return code_of(error) in _UNDECIDED


def was_repeated(error: ClientError) -> bool:
    """Return whether the SDK has sent the request more than once."""
    answer: dict[str, Any] = error.response.get("ResponseMetadata", {})
    return bool(answer.get("RetryAttempts"))


def _refusal(error: ClientError, path: str) -> SecureBloomError:
    code = code_of(error)
    said = error.response.get("Error", {}).get("Message", "")
    status = int(code) if code.isdecimal() else None
    return refusal(path, code, status, CREDENTIALS, _STATUSES, said)


#: Requests that may be under way at once; more wait for a connection.
_CONNECTIONS = 64
#: The variables in which both libraries look for an endpoint.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


def connect(path: str, filesystem: Any) -> tuple[str, Any]:
    """Return the store of a URI, and the client for it in the region that pyarrow found."""
    uri = object_uri(path)
    settings = settings_for(uri)
    if settings is not None:
        return settings.endpoint or "", _granted_client(settings, filesystem.region)
    return uri.query, _client(uri.query, filesystem.region)


def where(target: StoredObject) -> dict[str, str]:
    """Return bucket and key as the arguments of a request."""
    return {"Bucket": target.bucket, "Key": target.key}


@made_once
def _client(query: str, region: str) -> Any:
    options = {name: values[-1] for name, values in parse_qs(query).items()}
    endpoint = _endpoint(options)
    # pyarrow names the bucket in the path wherever the endpoint is another than Amazon's.
    is_elsewhere = endpoint is not None or any(map(os.environ.get, _ENDPOINTS))
    style = "path" if is_elsewhere else "auto"
    if options.get("force_virtual_addressing") == "true":
        style = "virtual"
    # A session of our own: the default one may be used by the caller's threads.
    return boto3.session.Session().client(
        "s3",
        region_name=region or None,
        endpoint_url=endpoint,
        verify=options.get("tls_ca_file_path"),
        config=_config(style),
    )


@made_once
def _granted_client(settings: S3Settings, region: str) -> Any:
    style = "virtual" if settings.is_virtual else "path" if settings.endpoint else "auto"
    more: dict[str, Any] = {
        "signature_version": UNSIGNED if settings.is_anonymous else None,
        "proxies": settings.proxy and {"http": settings.proxy, "https": settings.proxy},
        "connect_timeout": settings.connect_timeout,
        "read_timeout": settings.request_timeout,
    }
    session = boto3.session.Session(
        aws_access_key_id=settings.access_key,
        aws_secret_access_key=settings.secret_key,
        aws_session_token=settings.session_token,
    )
    return session.client(
        "s3",
        region_name=region or None,
        endpoint_url=settings.endpoint,
        config=_config(style, **{name: value for name, value in more.items() if value}),
    )


def _config(style: str, **more: Any) -> Config:
    return Config(max_pool_connections=_CONNECTIONS, s3={"addressing_style": style}, **more)


def _endpoint(options: dict[str, str]) -> str | None:
    place = options.get("endpoint_override")
    if place is None or "://" in place:
        return place
    return f"{options.get('scheme', 'https')}://{place}"
