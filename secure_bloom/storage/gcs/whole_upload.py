"""Write an object of Google Cloud Storage, whole: visible with its last byte, or not at all.

Every upload has a condition: the generation of the object that was read, or that none is there.
The store looks at it when the upload ends, so a lost update is impossible.  An upload that is not
finished is no object; the store forgets it after a week, and no one pays for it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, cast

from google.api_core.exceptions import PreconditionFailed
from google.cloud.storage import Blob

from secure_bloom.storage.object_writer import (
    ALL_CONDITIONS,
    Conditions,
    ObjectWriter,
    Origin,
    StoredObject,
    already_there,
    changed,
)
from secure_bloom.storage.parts import Part

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
    """Return the conditions that the store takes: all of them, on every request."""
    return ALL_CONDITIONS


def remove(target: StoredObject, mark: str) -> None:
    """Remove the object, only if it is of this generation."""
    target.client.bucket(target.bucket).blob(target.key).delete(if_generation_match=int(mark))


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
            if self._must_be_new:
                raise already_there(self._target) from error
            raise

    def _condition(self) -> int | None:
        if self._must_be_new:
            return _ABSENT
        return None if self._expected is None else int(self._expected)

    def _checked_object(self) -> Any:
        """Return the new object with the old one's metadata, if the old one is unchanged."""
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
    """An object to be written, which is never deleted.

    The SDK sends the store the checksum before its last byte, and deletes what came out different
    all the same.  By then it may be the object of another writer.
    """

    def delete(self, *_: Any, **__: Any) -> None:
        """Leave what is there."""


def _found(origin: Origin) -> Any:
    """Return the object as it is now.

    FileChangedError where it is another than the one that was read.
    """
    source = origin.object
    found = source.client.bucket(source.bucket).get_blob(source.key)
    if found is None or str(found.generation) != origin.mark:
        raise changed(source)
    return found


class _Stream(io.RawIOBase):
    """Parts as a stream that is read once; ``check`` comes before its last bytes."""

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
