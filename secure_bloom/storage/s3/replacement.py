"""Replace or create an object: whole in one request, or in parts that the store copies itself.

With a condition (If-Match, If-None-Match) the store itself refuses the new object when another
program was faster.  Stores that do not know conditions ignore them.  So a check comes before the
last request; what changes between the two is lost there.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from secure_bloom.ordered_pool import in_order
from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.rewritten_file import OldRange
from secure_bloom.storage.s3.answers import (
    already_there,
    code_of,
    is_conflict,
    s3_errors,
    was_repeated,
)
from secure_bloom.storage.s3.attributes import (
    Attributes,
    attributes_of,
    plain_attributes,
    require_absent,
    require_same,
)
from secure_bloom.storage.s3.connection import S3Object
from secure_bloom.storage.s3.parts import can_copy, parts_after_copies, uploaded_parts

#: Parts of one object under way at a time.
_AT_ONCE = 4
#: Answers to a copy after which the bytes go through this process: the caller may read and write
#: the object and not copy it (a key that may not be used so), or the store has no such request.
_CANNOT_COPY = frozenset({"AccessDenied", "403", "NotImplemented", "501"})
#: Fields of the answer to a part that the completion repeats.
_PART_FIELDS = ("ETag", "Checksum")


class _CannotCopyError(Exception):
    """The store does not copy for this caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The object that kept bytes come from, and its entity tag when it was opened."""

    object: S3Object
    etag: str


def replace(
    source: InputFile,
    keep: int,
    tail: Sequence[bytes],
    target: S3Object,
    *,
    origin: Origin | None,
    must_be_new: bool,
) -> int:
    """Make ``target`` the first ``keep`` bytes of source and the tail; the new size in bytes.

    ``origin`` is source as an object of the same store, None where source lies elsewhere.  In its
    own place an object is replaced only if it is still the one that was read.
    """
    with s3_errors(target.path):
        write = _Writer(target, origin, source.check_unchanged, must_be_new=must_be_new)
        if origin is not None and can_copy(keep):
            with contextlib.suppress(_CannotCopyError):
                return write(parts_after_copies(keep, tail))
        return write(uploaded_parts(source.chunks(keep, tail), source.size))


def create(target: S3Object, content: bytes) -> None:
    """Create an object; FileChangedError where one stands there already."""
    with s3_errors(target.path):
        _Writer(target, None, lambda: None, must_be_new=True)(iter([content]))


class _Writer:
    """Writes one object; after an exception, what stood there stands there still."""

    def __init__(
        self,
        target: S3Object,
        origin: Origin | None,
        check_source: Callable[[], None],
        *,
        must_be_new: bool,
    ) -> None:
        self._target = target
        self._client = target.client
        self._origin = origin
        self._check_source = check_source
        self._must_be_new = must_be_new
        self._in_place = origin is not None and origin.object.where == target.where
        self._condition = self._chosen_condition()

    def __call__(self, parts: Iterator[OldRange | bytes]) -> int:
        """Write the parts; the size in bytes of the new object."""
        first = next(parts)
        second = next(parts, None)
        if second is None and isinstance(first, bytes):
            self._put(first)
            return len(first)
        rest = () if second is None else (second,)
        return self._upload(itertools.chain((first, *rest), parts))

    def _chosen_condition(self) -> dict[str, str]:
        if self._must_be_new:
            return {"IfNoneMatch": "*"}
        if self._in_place and self._origin is not None:
            return {"IfMatch": self._origin.etag}
        return {}

    def _checked_attributes(self) -> Attributes:
        """What the new object gets besides its bytes, from an object that is still the same."""
        if self._origin is not None:
            origin = self._origin
            return attributes_of(origin.object, origin.etag, in_its_place=self._in_place)
        self._check_source()
        return plain_attributes(self._client)

    def _put(self, content: bytes) -> None:
        attributes = self._checked_attributes()
        fields = {**attributes.fields, **attributes.checksum, **self._condition}
        try:
            self._client.put_object(**self._target.where, **fields, Body=content)
        except ClientError as error:
            # If the answer to the first attempt was lost, the second one found our own object.
            if is_conflict(error) and was_repeated(error) and self._holds(content):
                return
            raise self._refusal(error) from error

    def _holds(self, content: bytes) -> bool:
        answer = self._client.get_object(**self._target.where)
        return bool(answer["Body"].read(len(content) + 1) == content)

    def _upload(self, parts: Iterator[OldRange | bytes]) -> int:
        attributes = self._checked_attributes()
        checksum = attributes.checksum
        upload = self._client.create_multipart_upload(
            **self._target.where, **attributes.fields, **checksum, **attributes.checksum_type
        )["UploadId"]
        sizes: list[int] = []
        try:
            send = partial(self._send, upload, checksum)
            done = list(in_order(send, _numbered(parts, sizes), _AT_ONCE, room=10_000))
            self._complete(upload, done)
        except BaseException:
            # Parts of an upload that is never completed are paid for, and no listing shows them.
            with contextlib.suppress(Exception):
                self._client.abort_multipart_upload(**self._target.where, UploadId=upload)
            raise
        return sum(sizes)

    def _complete(self, upload: str, parts: Sequence[Mapping[str, Any]]) -> None:
        self._check()
        try:
            self._client.complete_multipart_upload(
                **self._target.where,
                UploadId=upload,
                MultipartUpload={"Parts": parts},
                **self._condition,
            )
        except ClientError as error:
            raise self._refusal(error) from error

    def _check(self) -> None:
        """Find most changes where the store ignores conditions."""
        if self._must_be_new:
            require_absent(self._target)
        if self._origin is None:
            self._check_source()
        else:
            require_same(self._origin.object, self._origin.etag)

    def _refusal(self, error: ClientError) -> Exception:
        return already_there(self._target) if self._must_be_new and is_conflict(error) else error

    def _send(
        self, upload: str, checksum: Mapping[str, str], numbered: tuple[int, OldRange | bytes]
    ) -> dict[str, Any]:
        number, part = numbered
        where = {**self._target.where, "UploadId": upload, "PartNumber": number}
        if isinstance(part, OldRange) and self._origin is not None:
            told = self._copied(self._origin, where, part)
        else:
            told = self._client.upload_part(**where, **checksum, Body=part)
        fields = {name: told[name] for name in told if name.startswith(_PART_FIELDS)}
        return {"PartNumber": number, **fields}

    def _copied(self, origin: Origin, where: Mapping[str, Any], part: OldRange) -> dict[str, Any]:
        try:
            answer = self._client.upload_part_copy(
                **where,
                CopySource=origin.object.where,
                CopySourceIfMatch=origin.etag,
                CopySourceRange=f"bytes={part.offset}-{part.offset + part.length - 1}",
            )
        except ClientError as error:
            if code_of(error) in _CANNOT_COPY:
                raise _CannotCopyError from error
            raise
        told: dict[str, Any] = answer["CopyPartResult"]
        return told


def _numbered(
    parts: Iterable[OldRange | bytes], sizes: list[int]
) -> Iterator[tuple[int, OldRange | bytes]]:
    """The parts with their numbers, which begin at 1; their sizes go into ``sizes``."""
    for number, part in enumerate(parts, 1):
        sizes.append(part.length if isinstance(part, OldRange) else len(part))
        yield number, part
