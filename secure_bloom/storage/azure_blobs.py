"""Write a blob: by Put Blob, or by a list of blocks, most of which the store copies itself.

Every request that makes the blob visible has a condition (If-Match, If-None-Match), so another
program's update cannot be lost.  Blocks that are never listed need no abort: the store removes them
after a week, or when another list is put for the blob.

The SDK repeats requests, with growing pauses, before it raises an error.

A blob that replaces another gets its attributes: headers, metadata, tags, access tier, encryption
scope.

    old blob     | kept bytes ................................ | old footer
    new blob     | Put Block From URL | ... | Put Block From URL | Put Block (filters, footer)
    conditions     If-Match of the old blob, on every copy and on Put Block List

Importing this module loads azure-storage-blob.  Its client has the account, address and credentials
that pyarrow has found.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.storage.blob import (
    BlobBlock,
    BlobSasPermissions,
    BlobServiceClient,
    BlobType,
    ContentSettings,
    ExponentialRetry,
    StandardBlobTier,
    generate_blob_sas,
)

from secure_bloom.calling import made_once
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.storage.azure_account import AzureAccount, azure_account
from secure_bloom.storage.inputs import Extent
from secure_bloom.storage.object_writer import (
    ALL_CONDITIONS,
    CannotCopyError,
    Conditions,
    ObjectWriter,
    Origin,
    Part,
    RangeAnswer,
    StoredObject,
    already_there,
    changed,
    sent_in_order,
    written_text,
)
from secure_bloom.storage.os_errors import (
    AZURE_CREDENTIALS,
    refusal,
    unreachable,
    without_credentials,
)
from secure_bloom.storage.rewritten_file import OldRange

__all__ = ["Writer", "conditions", "connect", "errors", "read_range", "remove"]


#: Pauses in seconds before a request is sent again; the SDK's own begin with 15.
_RETRIES = partial(
    ExponentialRetry, initial_backoff=1, increment_base=2, retry_total=5, random_jitter_range=1
)
#: The store may take this long to copy a range.
_VALID = timedelta(hours=24)
_SCOPE = "https://storage.azure.com/.default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account: its SDK client, and a function that lets the store copy from a blob of it."""

    service: Any = field(repr=False)
    #: Bucket and key -> the fields of a request to copy from there.
    source: Callable[[str, str], dict[str, str]] = field(repr=False)

    def blob(self, bucket: str, key: str) -> Any:
        """Return the client of one blob."""
        return self.service.get_blob_client(bucket, key)


def connect(_path: str, filesystem: Any) -> tuple[str, Account]:
    """Return the store and the account of a file system of pyarrow."""
    account = azure_account(filesystem)
    return account.url, _account(account)


@made_once
def _account(account: AzureAccount) -> Account:
    credential = _credential(account)
    service = BlobServiceClient(account.url, credential=credential, retry_policy=_RETRIES())

    def source(bucket: str, key: str) -> dict[str, str]:
        url = service.get_blob_client(bucket, key).url
        if account.key:
            return {"source_url": f"{url}?{_signature(account, bucket, key)}"}
        if account.sas_token:
            # The SDK has put the signature into the URL already, as it does for its own requests.
            return {"source_url": f"{url.partition('?')[0]}?{account.sas_token}"}
        # Each copy asks for a token: the credential keeps one as long as it is valid.
        token = credential.get_token(_SCOPE).token
        return {"source_url": url, "source_authorization": f"Bearer {token}"}

    return Account(service=service, source=source)


def _credential(account: AzureAccount) -> Any:
    if account.key:
        # With the name, because the emulator's addresses do not begin with it.
        return {"account_name": account.name, "account_key": account.key}
    if account.sas_token:
        return account.sas_token
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()


def _signature(account: AzureAccount, bucket: str, key: str) -> str:
    """Return a signed right to read one blob, made on this machine with the account's key."""
    signature: str = generate_blob_sas(
        account.name,
        bucket,
        key,
        account_key=account.key,
        permission=BlobSasPermissions(read=True),
        expiry=datetime.now(UTC) + _VALID,
    )
    return signature


@contextmanager
def errors(path: str) -> Iterator[None]:
    """Raise exceptions of the SDK as errors of this package about ``path``."""
    try:
        yield
    except HttpResponseError as exc:
        if isinstance(exc, ClientAuthenticationError) and exc.status_code is None:
            # Nobody was asked yet: no identity was found on this machine.
            raise without_credentials(path, AZURE_CREDENTIALS) from exc
        raise refusal(path, code_of(exc), exc.status_code, AZURE_CREDENTIALS, {}) from exc
    except (ServiceRequestError, ServiceResponseError) as exc:
        raise unreachable(path, exc) from exc
    except AzureError as exc:
        raise PolicyError(f"the SDK cannot ask the store: {exc}", path=path) from exc


def code_of(error: HttpResponseError) -> str:
    """Return the store's error code, or an empty text if it sent none."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")


#: Headers that go over; the MD5 does not, it is that of the old bytes.
_HEADERS = (
    "content_type",
    "content_encoding",
    "content_language",
    "content_disposition",
    "cache_control",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobAttributes:
    """The attributes of a new blob. ``fields`` are sent with the request that makes it visible."""

    fields: Mapping[str, Any]
    #: Fields of this request and of each that uploads a block.
    scope: Mapping[str, str]


PLAIN = BlobAttributes(fields={}, scope={})


def attributes_of(source: StoredObject, mark: str) -> BlobAttributes:
    """Return the attributes of a blob.

    Raises FileChangedError if its entity tag is not ``mark``.
    """
    with errors(source.path):
        found = require_same(source, mark)
        if found.blob_type != BlobType.BLOCKBLOB:
            raise UnsupportedFeatureError(
                f"the blob is a {found.blob_type.value}, only block blobs can be replaced",
                hint="write new objects with --output instead",
                path=source.path,
            )
        fields: dict[str, Any] = {
            "metadata": found.metadata,
            "content_settings": ContentSettings(
                **{name: getattr(found.content_settings, name) for name in _HEADERS}
            ),
        }
        # An inferred tier is the account's default, which a new blob gets by itself.
        if found.blob_tier and not found.blob_tier_inferred:
            fields["standard_blob_tier"] = StandardBlobTier(found.blob_tier)
        # Tags need a right of their own, so they are asked for only where there are some.
        if found.tag_count:
            fields["tags"] = source.client.blob(source.bucket, source.key).get_blob_tags()
    scope = {"encryption_scope": found.encryption_scope} if found.encryption_scope else {}
    return BlobAttributes(fields=fields, scope=scope)


def require_same(source: StoredObject, mark: str) -> Any:
    """Return the properties of the blob. Raises FileChangedError if it was replaced."""
    found = source.client.blob(source.bucket, source.key).get_blob_properties(
        etag=mark, match_condition=MatchConditions.IfNotModified
    )
    if found.etag != mark:
        raise changed(source)
    return found


#: Answers to a copy after which the bytes go through this process: the store may not read the
#: source with the caller's rights, or has no such request.
_CANNOT_COPY = frozenset({401, 403, 404, 501})
_IS_THERE = frozenset({"BlobAlreadyExists", "ConditionNotMet"})


def conditions(_: StoredObject) -> Conditions:
    """Return the conditions that the store honours: all of them, on every request."""
    return ALL_CONDITIONS


def read_range(target: StoredObject, extent: Extent, mark: str | None) -> RangeAnswer:
    """Return a range of the blob. ``mark`` is the entity tag that it must have, if given."""
    start, end = extent
    condition: dict[str, Any] = {}
    if mark is not None:
        condition = {"etag": mark, "match_condition": MatchConditions.IfNotModified}
    blob = target.client.blob(target.bucket, target.key)
    answer = blob.download_blob(offset=start, length=end - start, **condition)
    content, found = answer.readall(), answer.properties
    return RangeAnswer(
        content=content,
        place=found.content_range or "",
        marks=(written_text(found.last_modified), found.etag.encode(), None, None),
    )


def remove(target: StoredObject, mark: str | None) -> None:
    """Remove the blob. ``mark`` is the entity tag that it must have, if given."""
    condition = (
        {} if mark is None else {"etag": mark, "match_condition": MatchConditions.IfNotModified}
    )
    target.client.blob(target.bucket, target.key).delete_blob(**condition)


class BlobWriter(ObjectWriter):
    """Writes one blob."""

    @property
    def _blob(self) -> Any:
        return self._client.blob(self._target.bucket, self._target.key)

    def _condition(self) -> dict[str, Any]:
        if self._must_be_new:
            return {"match_condition": MatchConditions.IfMissing}
        if self._expected is None:
            return {}
        return {"etag": self._expected, "match_condition": MatchConditions.IfNotModified}

    def _require_absent(self) -> None:
        if self._blob.exists():
            raise already_there(self._target)

    def _require_same(self, origin: Origin) -> None:
        require_same(origin.object, origin.mark)

    def _checked_attributes(self) -> BlobAttributes:
        """Return the attributes of the new blob.

        Raises FileChangedError if the old blob was changed.
        """
        if self._origin is not None:
            return attributes_of(self._origin.object, self._origin.mark)
        self._check_source()
        return PLAIN

    def _put(self, content: bytes) -> None:
        attributes = self._checked_attributes()
        self._make_visible(
            partial(self._blob.upload_blob, content, length=len(content), overwrite=True),
            attributes,
            # Only a caller knows whether an equal blob is its own.
            may_be_ours=not self._must_be_new,
        )

    def _upload(self, parts: Iterator[Part]) -> int:
        attributes = self._checked_attributes()
        # Blocks of two writers of one blob lie side by side: they must not have the same names.
        upload = secrets.token_hex(8)
        blocks, size = sent_in_order(partial(self._send, upload, attributes.scope), parts)
        self._check()
        # A blob that must be new was looked for right before.
        self._make_visible(
            partial(self._blob.commit_block_list, blocks), attributes, may_be_ours=True
        )
        return size

    def _make_visible(self, request: Any, attributes: BlobAttributes, *, may_be_ours: bool) -> None:
        try:
            request(**attributes.fields, **attributes.scope, **self._condition())
        except HttpResponseError as error:
            if code_of(error) not in _IS_THERE:
                raise
            with suppress(HttpResponseError):
                if may_be_ours and self._is_there():
                    return
            if self._must_be_new:
                raise already_there(self._target) from error
            raise

    def _range(self, extent: Extent) -> RangeAnswer:
        return read_range(self._target, extent, None)

    def _send(self, upload: str, scope: Mapping[str, str], number: int, part: Part) -> BlobBlock:
        # All ids of a blob's blocks must have one length (Put Block).
        name = base64.b64encode(f"{upload}-{number:05d}".encode()).decode()
        if isinstance(part, OldRange) and self._origin is not None:
            self._copy(self._origin, name, scope, part)
        else:
            self._blob.stage_block(name, part, **scope)
        return BlobBlock(block_id=name)

    def _copy(self, origin: Origin, name: str, scope: Mapping[str, str], part: OldRange) -> None:
        source = origin.object
        try:
            self._blob.stage_block_from_url(
                name,
                **source.client.source(source.bucket, source.key),
                source_offset=part.offset,
                source_length=part.length,
                headers={"x-ms-source-if-match": origin.mark},
                **scope,
            )
        except HttpResponseError as error:
            if error.status_code in _CANNOT_COPY:
                raise CannotCopyError from error
            raise


#: The class that the module of each store offers under this name.
Writer = BlobWriter
