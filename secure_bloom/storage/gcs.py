"""Write a whole object of Google Cloud Storage: visible with its last byte, or not at all.

Every upload has a condition: the generation of the object that was read, or that no object is
there.  The store checks it when the upload ends, so another program's update cannot be lost.  An
unfinished upload is not an object. The store forgets it after a week, without a charge.

The SDK's client has the endpoint and credentials that pyarrow takes. The SDK repeats requests, with
growing pauses, before it raises an error.

The store has no copies of ranges, so the whole object is uploaded.  Importing this module loads
google-cloud-storage.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, cast
from urllib.parse import parse_qs

import requests.exceptions
from google.api_core.exceptions import GoogleAPICallError, PreconditionFailed, RetryError
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import GoogleAuthError
from google.cloud.storage import Blob, Client
from google.cloud.storage.exceptions import DataCorruption, InvalidResponse

from secure_bloom.calling import made_once
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.storage.inputs import Extent
from secure_bloom.storage.object_writer import (
    ALL_CONDITIONS,
    Conditions,
    ObjectWriter,
    Origin,
    Part,
    RangeAnswer,
    StoredObject,
    already_there,
    changed,
)
from secure_bloom.storage.os_errors import (
    BUSY,
    GOOGLE_CREDENTIALS,
    NO_BUCKET,
    refusal,
    unreachable,
    without_credentials,
)
from secure_bloom.storage.paths import object_uri

__all__ = ["Writer", "conditions", "connect", "errors", "read_range", "remove"]


_ANONYMOUS = "anonymous@"


def connect(path: str, _filesystem: Any) -> tuple[str, Client]:
    """Return the name of the store, which is the query of the URI, and a client for the store."""
    uri = object_uri(path)
    return uri.query, _client(uri.query, uri.authority.startswith(_ANONYMOUS))


@made_once
def _client(query: str, is_anonymous: bool) -> Client:
    options = {name: values[-1] for name, values in parse_qs(query).items()}
    endpoint = options.get("endpoint_override")
    return Client(
        # Buckets are named without a project, and some credentials have none.
        project=options.get("project_id"),
        # None lets the SDK look for the credentials of the process.
        credentials=_anonymous() if is_anonymous else None,
        client_options={"api_endpoint": f"{options.get('scheme', 'https')}://{endpoint}"}
        if endpoint
        else None,
    )


def _anonymous() -> Any:
    credentials: Any = AnonymousCredentials
    return credentials()


#: A write needs nothing that could be missing, except the bucket.
_STATUSES = {404: NO_BUCKET, 408: BUSY}


@contextmanager
def errors(path: str) -> Iterator[None]:
    """Raise exceptions of the SDK as errors of this package about ``path``."""
    try:
        yield
    except GoogleAPICallError as exc:
        raise _refusal(exc, path) from exc
    except (DataCorruption, InvalidResponse) as exc:
        raise PolicyError(
            "the store holds other bytes than were sent",
            hint="write the file again from a copy",
            path=path,
        ) from exc
    except GoogleAuthError as exc:
        raise without_credentials(path, GOOGLE_CREDENTIALS) from exc
    except (requests.exceptions.RequestException, RetryError, ConnectionError) as exc:
        raise unreachable(path, exc) from exc


def _refusal(error: GoogleAPICallError, path: str) -> SecureBloomError:
    reasons = [str(each.get("reason", "")) for each in error.errors if isinstance(each, dict)]
    code = reasons[0] if reasons else str(error.code)
    return refusal(path, code, error.code, GOOGLE_CREDENTIALS, _STATUSES)


#: Properties of an object that go over to the one that takes its place.
_CARRIED = (
    "cache_control",
    "content_disposition",
    "content_encoding",
    "content_language",
    "content_type",
    "custom_time",
    "metadata",
    "storage_class",
)
#: Bytes of a request; the SDK holds as many in memory, to send them again.
_CHUNK = 8 * 1024 * 1024
_ABSENT = 0


def conditions(_: StoredObject) -> Conditions:
    """Return the conditions that the store honours: all of them, on every request."""
    return ALL_CONDITIONS


def remove(target: StoredObject, mark: str | None) -> None:
    """Remove the object. ``mark`` is the generation that it must have, if given."""
    condition = {} if mark is None else {"if_generation_match": int(mark)}
    target.client.bucket(target.bucket).blob(target.key).delete(**condition)


def read_range(target: StoredObject, extent: Extent, mark: str | None) -> RangeAnswer:
    """Return a range of the object. ``mark`` is the generation that it must have, if given.

    An extent that starts below zero means the last bytes of the object.
    """
    start, end = extent
    blob = _ReadBlob(target.key, target.client.bucket(target.bucket))
    content = blob.download_as_bytes(
        start=start,
        end=None if start < 0 else end - 1,
        # As it is stored, and a checksum is that of the whole object.
        raw_download=True,
        checksum=None,
        if_generation_match=None if mark is None else int(mark),
    )
    return RangeAnswer(
        content=content,
        place=blob.answer.get("Content-Range", ""),
        marks=(None, None, None, blob.answer["X-Goog-Generation"].encode()),
    )


class _ReadBlob(Blob):  # type: ignore[misc]
    """A blob of the SDK that keeps the headers of the answer."""

    answer: Mapping[str, str] = {}

    def _extract_headers_from_download(self, response: Any) -> None:
        self.answer = response.headers


class GoogleWriter(ObjectWriter):
    """Writes one object."""

    # Its copies ("rewrite", "compose") take whole objects, never a range.
    copies = False

    def _put(self, content: bytes) -> None:
        self._send(io.BytesIO(content), len(content))

    def _upload(self, parts: Iterator[Part]) -> int:
        content = _Stream(parts, self._check)
        self._send(content, None)
        return content.tell()

    def _send(self, content: Any, size: int | None) -> None:
        new = self._checked_object()
        new.chunk_size = _CHUNK
        try:
            new.upload_from_file(
                content,
                size=size,
                content_type=new.content_type,
                if_generation_match=self._condition(),
            )
        except PreconditionFailed as error:
            # Only a caller knows whether an equal object is its own. An upload in parts has looked
            # for an object that must be new before its last bytes.
            may_be_ours = not self._must_be_new or size is None
            with suppress(GoogleAPICallError):
                if may_be_ours and self._is_there():
                    return
            if self._must_be_new:
                raise already_there(self._target) from error
            raise

    def _range(self, extent: Extent) -> RangeAnswer:
        return read_range(self._target, extent, None)

    def _condition(self) -> int | None:
        if self._must_be_new:
            return _ABSENT
        return None if self._expected is None else int(self._expected)

    def _checked_object(self) -> Any:
        """Return the new object with the old object's metadata, if the old object is unchanged."""
        bucket = self._client.bucket(self._target.bucket)
        if self._origin is None:
            self._check_source()
            return _NewBlob(self._target.key, bucket)
        old = _found(self._origin)
        # The store names a version of the key; a new object gets the newest one.
        key = old.kms_key_name.partition("/cryptoKeyVersions/")[0] if old.kms_key_name else None
        new = _NewBlob(self._target.key, bucket, kms_key_name=key)
        for name in _CARRIED:
            value = getattr(old, name)
            if value:
                setattr(new, name, value)
        return new

    def _require_absent(self) -> None:
        if self._client.bucket(self._target.bucket).blob(self._target.key).exists():
            raise already_there(self._target)

    def _require_same(self, origin: Origin) -> None:
        _found(origin)


class _NewBlob(Blob):  # type: ignore[misc]
    """A blob of the SDK that is to be written, and whose ``delete`` does nothing.

    The SDK sends the store the checksum before the last byte, and deletes an object whose checksum
    differs.  By then it may be the object of another writer.
    """

    def delete(self, *_: Any, **__: Any) -> None:
        """Do nothing: keep the object that is there."""


def _found(origin: Origin) -> Any:
    """Return the object. Raises FileChangedError if it is not the object that was read."""
    source = origin.object
    found = source.client.bucket(source.bucket).get_blob(source.key)
    if found is None or str(found.generation) != origin.mark:
        raise changed(source)
    return found


class _Stream(io.RawIOBase):
    """A stream over parts, read once. Calls ``check`` before it returns its last bytes."""

    def __init__(self, parts: Iterator[Part], check: Callable[[], None]) -> None:
        self._parts = parts
        self._check = check
        self._waiting = bytearray()
        self._at_end = False
        self._read = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._read

    def read(self, size: int = -1) -> bytes:
        # One byte more than asked for, so that the check has come before the last bytes are given
        # out.
        while not self._at_end and len(self._waiting) <= size:
            part = next(self._parts, None)
            self._waiting += cast(bytes, part or b"")
            if part is None:
                self._at_end = True
                self._check()
        piece = bytes(self._waiting[:size])
        del self._waiting[: len(piece)]
        self._read += len(piece)
        return piece


#: The class that the module of each store offers under this name.
Writer = GoogleWriter
