"""Replace or create an object of S3: PutObject, or a multipart upload with UploadPartCopy.

With a condition (If-Match, If-None-Match) the store itself refuses the new object when another
program was faster.  Stores that do not know conditions ignore them.  For them a check comes before
the last request; a change between the two is lost there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from secure_bloom.storage.object_writer import (
    CannotCopyError,
    ObjectWriter,
    Origin,
    already_there,
    sent_in_order,
)
from secure_bloom.storage.parts import Part
from secure_bloom.storage.rewritten_file import OldRange
from secure_bloom.storage.s3.answers import code_of, is_conflict, was_repeated
from secure_bloom.storage.s3.attributes import (
    Attributes,
    attributes_of,
    plain_attributes,
    require_absent,
    require_same,
)
from secure_bloom.storage.s3.connection import where

#: After these answers to a copy the bytes go through this process.  The caller may read and write
#: the object but not copy it (its key may not be used so), or the store has no such request.
_CANNOT_COPY = frozenset({"AccessDenied", "403", "NotImplemented", "501"})
#: Answer of a store that wants parts of one size, where ours were not.
_UNEVEN = "InvalidPart"
#: Fields of the answer to a part that the completion repeats.
_PART_FIELDS = ("ETag", "Checksum")


class S3Writer(ObjectWriter):
    """Writes one object."""

    def _condition(self) -> dict[str, str]:
        if self._must_be_new:
            return {"IfNoneMatch": "*"}
        return {} if self._expected is None else {"IfMatch": self._expected}

    def _require_absent(self) -> None:
        require_absent(self._target)

    def _require_same(self, origin: Origin) -> None:
        require_same(origin.object, origin.mark)

    def _checked_attributes(self) -> Attributes:
        """Return the attributes of the new object, from an old one that is still the same."""
        if self._origin is not None:
            origin = self._origin
            return attributes_of(origin.object, origin.mark, in_its_place=self._in_place)
        self._check_source()
        return plain_attributes(self._client)

    def _put(self, content: bytes) -> None:
        attributes = self._checked_attributes()
        fields = {**attributes.fields, **attributes.checksum, **self._condition()}
        try:
            self._client.put_object(**where(self._target), **fields, Body=content)
        except ClientError as error:
            # If the answer to the first attempt was lost, the second one found our own object.
            if is_conflict(error) and was_repeated(error) and self._holds(content):
                return
            raise self._refusal(error) from error

    def _holds(self, content: bytes) -> bool:
        answer = self._client.get_object(**where(self._target))
        # One byte more, to tell a longer object.
        return bool(answer["Body"].read(len(content) + 1) == content)

    def _upload(self, parts: Iterator[Part]) -> int:
        attributes = self._checked_attributes()
        checksum = attributes.checksum
        upload = self._client.create_multipart_upload(
            **where(self._target), **attributes.fields, **checksum, **attributes.checksum_type
        )["UploadId"]
        try:
            done, size = sent_in_order(partial(self._send, upload, checksum), parts)
            self._complete(upload, done)
        except BaseException:
            # Parts of an upload that is never completed are paid for, and no listing shows them.
            with contextlib.suppress(Exception):
                self._client.abort_multipart_upload(**where(self._target), UploadId=upload)
            raise
        return size

    def _complete(self, upload: str, parts: Sequence[Mapping[str, Any]]) -> None:
        self._check()
        try:
            self._client.complete_multipart_upload(
                **where(self._target),
                UploadId=upload,
                MultipartUpload={"Parts": parts},
                **self._condition(),
            )
        except ClientError as error:
            if code_of(error) == _UNEVEN and self._is_copying:
                raise CannotCopyError from error
            raise self._refusal(error) from error

    def _refusal(self, error: ClientError) -> Exception:
        return already_there(self._target) if self._must_be_new and is_conflict(error) else error

    def _send(
        self, upload: str, checksum: Mapping[str, str], number: int, part: Part
    ) -> dict[str, Any]:
        to = {**where(self._target), "UploadId": upload, "PartNumber": number}
        if isinstance(part, OldRange) and self._origin is not None:
            told = self._copied(self._origin, to, part)
        else:
            told = self._client.upload_part(**to, **checksum, Body=part)
        # Checksums have a field for each algorithm: whichever the store has worked out is repeated
        # to it.
        fields = {name: told[name] for name in told if name.startswith(_PART_FIELDS)}
        return {"PartNumber": number, **fields}

    def _copied(self, origin: Origin, to: Mapping[str, Any], part: OldRange) -> dict[str, Any]:
        try:
            answer = self._client.upload_part_copy(
                **to,
                CopySource=where(origin.object),
                CopySourceIfMatch=origin.mark,
                # The last byte is named, not the one behind it (RFC 9110, 14.1.2).
                CopySourceRange=f"bytes={part.offset}-{part.offset + part.length - 1}",
            )
        except ClientError as error:
            if code_of(error) in _CANNOT_COPY:
                raise CannotCopyError from error
            raise
        told: dict[str, Any] = answer["CopyPartResult"]
        return told
