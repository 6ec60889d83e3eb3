# The base class documents the methods.
# ruff: noqa: D102
"""Read objects of S3 through boto3, with no request for metadata, and never bytes of two objects.

    first GET     the last 128 KiB; its answer has the size, the time of writing and the entity tag
    later GETs    If-Match with that entity tag: FileChangedError once another object is there

Loading boto3 takes longer than a few requests, so this pays for tables that stay open.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from secure_bloom.errors import FileChangedError, FormatError
from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.objects import END, ObjectFile, arrow_location

if TYPE_CHECKING:
    from secure_bloom.storage.object_writer import StoredObject

#: Answer to a request for a range: first and last byte, and the size of the object.
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
#: The place of the entity tag in an identity.
_TAG = 3


class PinnedObject(ObjectFile):
    """One object of S3. Every read is on the condition that it is the object of ``identity``."""

    is_pinned = True

    def __init__(self, target: StoredObject, size: int, identity: tuple[object, ...]) -> None:
        self._target = target
        name = target.key.rpartition("/")[2]
        InputFile.__init__(
            self, path=target.path, location=target.path, name=name, size=size, identity=identity
        )
        self._drop()

    def close(self) -> None:
        self._drop()

    def set_aside(self) -> None:
        # Later reads are conditional anyway.
        return

    def _fetched(self, offset: int, length: int) -> bytes:
        from secure_bloom.storage.s3_connection import errors

        tag = self.identity[_TAG]
        with errors(self.path):
            answer = _get(self._target, f"{offset}-{offset + length - 1}", IfMatch=_text(tag))
            if answer["ETag"].encode() != tag:
                # Some stores ignore conditions.
                answer["Body"].close()
                raise FileChangedError("the object was changed after it was read", path=self.path)
            content: bytes = answer["Body"].read()
        return content


class ObjectStream(io.RawIOBase):
    """Reads an open file from its start to its end, as pyarrow asks files of Python."""

    def __init__(self, file: InputFile) -> None:
        super().__init__()
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        length = max(0, min(len(view), self._file.size - self._at))
        view[:length] = self._file.read_at(self._at, length) if length else b""
        self._at += length
        return length


def open_pinned_object(path: str) -> PinnedObject | None:
    """Open an object and fetch its end, in one request.

    Return None for another store, without boto3, or if the store does not answer as expected:
    pyarrow opens the object then, or says what is wrong.
    """
    target = _target(path)
    if target is None:
        return None
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        answer = _get(target, f"-{END}")
        place = _RANGE.fullmatch(answer.get("ContentRange", ""))
        if place is None or "ETag" not in answer or "LastModified" not in answer:
            # Without a range the whole object would follow.
            answer["Body"].close()
            return None
        content = answer["Body"].read()
    except (BotoCoreError, ClientError):
        return None
    written = f"{answer['LastModified']:%Y-%m-%dT%H:%M:%SZ}"
    # The identity that pyarrow's answers give the object: see ``objects``.
    identity = (None, int(place[3]), written.encode(), answer["ETag"].encode(), None, None)
    file = PinnedObject(target, int(place[3]), identity)
    if len(content) != int(place[2]) + 1 - int(place[1]) or int(place[2]) + 1 != file.size:
        raise FormatError("the store's answer has another length than it says", path=path)
    file.hold(int(place[1]), content)
    return file


def reopen_pinned_object(path: str, size: int, identity: tuple[object, ...]) -> PinnedObject | None:
    """Open an object that was opened before, without a request, or return None as above."""
    target = _target(path) if isinstance(identity[_TAG], bytes) else None
    return None if target is None else PinnedObject(target, size, identity)


def _target(path: str) -> StoredObject | None:
    """Return the object as boto3 asks for it, or None if another library has to."""
    filesystem, key = arrow_location(path)
    if filesystem.type_name != "s3":
        return None
    try:
        from secure_bloom.storage.s3_connection import connect
    except ImportError:
        return None
    from botocore.exceptions import BotoCoreError

    from secure_bloom.storage.object_writer import StoredObject

    try:
        store, client = connect(path, filesystem)
    except (BotoCoreError, ValueError):
        # Settings that pyarrow takes and boto3 does not.
        return None
    bucket, _, name = key.partition("/")
    return StoredObject(path=path, bucket=bucket, key=name, store=store, client=client)


def _get(target: StoredObject, extent: str, **condition: str) -> dict[str, Any]:
    answer: dict[str, Any] = target.client.get_object(
        Bucket=target.bucket, Key=target.key, Range=f"bytes={extent}", **condition
    )
    return answer


def _text(tag: object) -> str:
    return tag.decode() if isinstance(tag, bytes) else ""
