"""Write a blob: Put Blob, or blocks that the store copies itself and a list of them.

Every request that makes the blob visible has a condition (If-Match, If-None-Match), so a lost
update is impossible.  Blocks that are never listed need no abort: the store removes them after a
week, and when another list for the blob is put.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock

from secure_bloom.storage.azure.attributes import PLAIN, BlobAttributes, attributes_of, require_same
from secure_bloom.storage.azure.blob_errors import code_of
from secure_bloom.storage.object_writer import (
    ALL_CONDITIONS,
    CannotCopyError,
    Conditions,
    ObjectWriter,
    Origin,
    StoredObject,
    already_there,
    sent_in_order,
)
from secure_bloom.storage.parts import Part
from secure_bloom.storage.rewritten_file import OldRange

#: Answers to a copy after which the bytes go through this process: the store may not read the
#: source with the caller's rights, or has no such request.
_CANNOT_COPY = frozenset({401, 403, 404, 501})
_IS_THERE = frozenset({"BlobAlreadyExists", "ConditionNotMet"})


def conditions(_: StoredObject) -> Conditions:
    """Return the conditions that the store takes: all of them, on every request."""
    return ALL_CONDITIONS


def remove(target: StoredObject, mark: str) -> None:
    """Remove the blob, only if it has this mark."""
    blob = target.client.blob(target.bucket, target.key)
    blob.delete_blob(etag=mark, match_condition=MatchConditions.IfNotModified)


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
        """Return the attributes of the new blob, from an old one that is still the same."""
        if self._origin is not None:
            return attributes_of(self._origin.object, self._origin.mark)
        self._check_source()
        return PLAIN

    def _put(self, content: bytes) -> None:
        attributes = self._checked_attributes()
        self._make_visible(
            partial(self._blob.upload_blob, content, length=len(content), overwrite=True),
            attributes,
        )

    def _upload(self, parts: Iterator[Part]) -> int:
        attributes = self._checked_attributes()
        # Blocks of two writers of one blob lie side by side: they must not have the same names.
        upload = secrets.token_hex(8)
        blocks, size = sent_in_order(partial(self._send, upload, attributes.scope), parts)
        self._check()
        self._make_visible(partial(self._blob.commit_block_list, blocks), attributes)
        return size

    def _make_visible(self, request: Any, attributes: BlobAttributes) -> None:
        try:
            request(**attributes.fields, **attributes.scope, **self._condition())
        except HttpResponseError as error:
            if self._must_be_new and code_of(error) in _IS_THERE:
                raise already_there(self._target) from error
            raise

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
