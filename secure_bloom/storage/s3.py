"""Replace or create an object of S3: by PutObject, or by a multipart upload with UploadPartCopy.

With a condition (If-Match, If-None-Match) the store itself refuses the new object when another
program was faster.  Stores that do not know conditions ignore them.  For these stores, the old
object is checked before the last request, and a change between the two is lost.

An object that replaces another gets its attributes: headers, metadata, tags, storage class,
encryption, the kind of checksum. In its own place it also gets the access list and the lock.

Some stores of the S3 protocol ignore conditions, and carry out the request.  To find out, a small
object is written, overwritten and removed on conditions that do not hold:

    PUT If-None-Match: *   PUT If-Match: another   DELETE If-Match: another

    old object   | kept bytes ........................ | old footer
    upload       | UploadPartCopy | ... | UploadPartCopy | UploadPart (filters, footer)
    conditions     If-Match of the old object, on every copy and on the completion

Importing this module loads boto3.  Rows are read through pyarrow (see ``objects``): it needs half
of the CPU time of boto3 for a request, and reads other stores in the same way.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any
from urllib.parse import urlencode

from botocore.compat import HAS_CRT
from botocore.exceptions import ClientError

from secure_bloom.errors import UnfinishedWriteError
from secure_bloom.storage.inputs import Extent
from secure_bloom.storage.object_writer import (
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
from secure_bloom.storage.rewritten_file import OldRange
from secure_bloom.storage.s3_connection import (
    code_of,
    connect,
    errors,
    is_conflict,
    is_undecided,
    was_repeated,
    where,
)
from secure_bloom.storage.write_permit import require_permit

__all__ = ["Writer", "conditions", "connect", "errors", "read_range", "remove"]


#: Fields of HeadObject that requests which write an object have under the same name.
_CARRIED = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Expires",
    "Metadata",
    "WebsiteRedirectLocation",
    "StorageClass",
    "ServerSideEncryption",
    "SSEKMSKeyId",
    "BucketKeyEnabled",
)
_CHECKSUM = "Checksum"
_DEFAULT_CHECKSUM = "CRC32"
#: Checksums that boto3 can work out; two more with the package awscrt.
_CHECKSUMS = ("SHA256", "SHA1", "CRC32", *(("CRC64NVME", "CRC32C") if HAS_CRT else ()))
#: Permission in an access list -> the field of a request that grants it.
_GRANTS = {
    "FULL_CONTROL": "GrantFullControl",
    "READ": "GrantRead",
    "READ_ACP": "GrantReadACP",
    "WRITE_ACP": "GrantWriteACP",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Attributes of a new object: the ``fields`` of the request for it, and its checksum."""

    fields: Mapping[str, Any]
    #: Empty where the SDK is set to send none.
    checksum: Mapping[str, str]
    #: Whether the checksum is that of the whole object, or of those of its parts.
    checksum_type: Mapping[str, str]


def plain_attributes(client: Any) -> Attributes:
    """Return the attributes of an object that neither replaces nor copies another."""
    return Attributes(fields={}, checksum=_default_checksum(client), checksum_type={})


def attributes_of(source: StoredObject, etag: str, *, in_its_place: bool) -> Attributes:
    """Return the attributes of an object.

    Raises FileChangedError if its entity tag is not ``etag``.
    """
    with errors(source.path):
        head = require_same(source, etag)
        fields = {name: head[name] for name in _CARRIED if head.get(name)}
        if head.get("TagCount"):
            fields["Tagging"] = _tags(source)
        if in_its_place:
            fields |= _lock(head) | _access_list(source)
    checksum, kind = _checksum(source.client, head)
    return Attributes(fields=fields, checksum=checksum, checksum_type=kind)


def require_same(source: StoredObject, etag: str) -> dict[str, Any]:
    """Return the store's answer about the object.

    Raises FileChangedError if its entity tag is not ``etag``.
    """
    head: dict[str, Any] = source.client.head_object(
        # Without this mode S3 does not say which checksum the object has.
        **where(source),
        IfMatch=etag,
        ChecksumMode="ENABLED",
    )
    # Some stores ignore the condition.
    if head.get("ETag") != etag:
        raise changed(source)
    return head


def require_absent(target: StoredObject) -> None:
    """Raise FileChangedError if an object is there."""
    try:
        target.client.head_object(**where(target))
    except ClientError as error:
        if code_of(error) in ("404", "NoSuchKey"):
            return
        raise
    raise already_there(target)


def _tags(source: StoredObject) -> str:
    tags = source.client.get_object_tagging(**where(source))["TagSet"]
    return urlencode([(tag["Key"], tag["Value"]) for tag in tags])


def _lock(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return legal hold and retention.

    The store refuses a retention that has expired, so it is left out.
    """
    fields = {}
    if head.get("ObjectLockLegalHoldStatus") == "ON":
        fields["ObjectLockLegalHoldStatus"] = "ON"
    until = head.get("ObjectLockRetainUntilDate")
    if until is not None and until > datetime.now(UTC):
        fields["ObjectLockMode"] = head["ObjectLockMode"]
        fields["ObjectLockRetainUntilDate"] = until
    return fields


def _access_list(source: StoredObject) -> dict[str, str]:
    """Return the grants of the object, if anyone besides the owner has one."""
    if not _has_access_lists(source.client, source.bucket):
        return {}
    try:
        found = source.client.get_object_acl(**where(source))
    except ClientError:
        # Without that right it becomes what every new object is: the owner's alone.
        return {}
    owner = found.get("Owner", {}).get("ID")
    grants = found.get("Grants", [])
    # A list of the owner alone is what a new object gets; naming it would need one right more.
    if all(grant["Grantee"].get("ID") == owner for grant in grants):
        return {}
    return _granted(grants)


def _granted(grants: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    to_whom: dict[str, list[str]] = defaultdict(list)
    for grant in grants:
        grantee = grant["Grantee"]
        name = "id" if "ID" in grantee else "uri"
        to_whom[_GRANTS[grant["Permission"]]].append(f'{name}="{grantee[name.upper()]}"')
    return {field: ", ".join(names) for field, names in to_whom.items()}


@lru_cache(maxsize=64)
def _has_access_lists(client: Any, bucket: str) -> bool:
    """Return whether objects of the bucket have access lists.

    New buckets have none by default.
    """
    try:
        rules = client.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"]["Rules"]
    except ClientError:
        return True  # never set, or not for us to see: each object is asked
    return all(rule["ObjectOwnership"] != "BucketOwnerEnforced" for rule in rules)


def _checksum(client: Any, head: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    for name in _CHECKSUMS:
        if head.get(_CHECKSUM + name):
            kind = head.get("ChecksumType")
            return {"ChecksumAlgorithm": name}, {"ChecksumType": kind} if kind else {}
    return _default_checksum(client), {}


def _default_checksum(client: Any) -> dict[str, str]:
    is_wanted = client.meta.config.request_checksum_calculation == "when_supported"
    return {"ChecksumAlgorithm": _DEFAULT_CHECKSUM} if is_wanted else {}


_CONTENT = b"{}"
_ANOTHER = '"00000000000000000000000000000000"'
#: Answers of stores that do not know the condition.
_NOT_DONE = frozenset({"NotImplemented", "501"})
#: What was found, by store and bucket.
_known: dict[tuple[str, str], Conditions] = {}
_asking = threading.Lock()


def conditions(target: StoredObject) -> Conditions:
    """Return the conditions that the bucket of ``target`` honours. Asks once in a process."""
    known = (target.store, target.bucket)
    with _asking:
        if known not in _known:
            _known[known] = _asked(target)
        return _known[known]


def read_range(target: StoredObject, extent: Extent, mark: str | None) -> RangeAnswer:
    """Return a range of the object. ``mark`` is the entity tag that it must have, if given.

    An extent that starts below zero means the last bytes of the object.
    """
    start, end = extent
    condition = {} if mark is None else {"IfMatch": mark}
    bounds = f"{start}" if start < 0 else f"{start}-{end - 1}"
    answer = target.client.get_object(**where(target), Range=f"bytes={bounds}", **condition)
    with contextlib.closing(answer["Body"]) as body:
        return RangeAnswer(
            # Without a range the whole object would follow.
            content=body.read() if "ContentRange" in answer else b"",
            place=answer.get("ContentRange", ""),
            marks=(written_text(answer["LastModified"]), answer["ETag"].encode(), None, None),
        )


def remove(target: StoredObject, mark: str | None) -> None:
    """Remove the object. ``mark`` is the entity tag that it must have, if given."""
    condition = {} if mark is None else {"IfMatch": mark}
    target.client.delete_object(**where(target), **condition)


def _asked(target: StoredObject) -> Conditions:
    client, folder = target.client, target.key.rpartition("/")[0]
    # Hidden by its dot: Spark and this package pass over such names when they list a folder.
    name = f".{secrets.token_hex(8)}.secure-bloom"
    place = {"Bucket": target.bucket, "Key": f"{folder}/{name}" if folder else name}
    client.put_object(**place, Body=_CONTENT)
    try:
        writes = all(
            _refuses(client.put_object, **place, Body=_CONTENT, **condition)
            for condition in ({"IfNoneMatch": "*"}, {"IfMatch": _ANOTHER})
        )
        removals = _refuses(client.delete_object, **place, IfMatch=_ANOTHER)
    finally:
        with suppress(ClientError):
            client.delete_object(**place)
    return Conditions(writes=writes, removals=removals)


def _refuses(request: Any, **fields: Any) -> bool:
    try:
        request(**fields)
    except ClientError as error:
        if is_conflict(error):
            return True
        if code_of(error) in _NOT_DONE:
            return False
        raise
    return False


#: After these answers to a copy the bytes go through this process.  The caller may read and write
#: the object but not copy it (its key may not be used so), or the store has no such request.
_CANNOT_COPY = frozenset({"AccessDenied", "403", "NotImplemented", "501"})
#: Answer of a store that wants parts of one size, where ours were not.
_UNEVEN = "InvalidPart"
#: Answer to a completion when the upload was completed before, or aborted.
_ENDED = "NoSuchUpload"
#: Seconds between attempts while another request for the object is under way.
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
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
        """Return the attributes of the new object.

        Raises FileChangedError if the old one was changed.
        """
        if self._origin is not None:
            origin = self._origin
            return attributes_of(origin.object, origin.mark, in_its_place=self._in_place)
        self._check_source()
        return plain_attributes(self._client)

    def _put(self, content: bytes) -> None:
        attributes = self._checked_attributes()
        fields = {**attributes.fields, **attributes.checksum}
        put = partial(self._client.put_object, **where(self._target), **fields, Body=content)
        # Only a caller knows whether an equal object is its own: what must be new must not be
        # another writer's either.
        self._make_visible(put, may_be_ours=not self._must_be_new)

    def _make_visible(self, request: Callable[..., Any], *, may_be_ours: bool) -> None:
        """Send the request that makes the object visible. Repeat it while its result is unknown.

        Raises UnfinishedWriteError if the result stays unknown: then the object may still appear.
        """
        for pause in (*_PAUSES, None):
            try:
                request(**self._condition())
                return
            except ClientError as error:
                if (may_be_ours or was_repeated(error)) and self._has_done(error):
                    return
                if not is_undecided(error):
                    raise self._refusal(error) from error
            # The request that is under way may be our own, which a layer below has repeated.
            may_be_ours = True
            if pause is not None:
                time.sleep(pause * (0.5 + secrets.randbelow(1000) / 1000))
                require_permit()
        raise UnfinishedWriteError(
            "it is unknown whether the object was written: another request for it is under way, "
            "which may be our own",
            hint="run again in a minute",
            path=self._target.path,
        )

    def _has_done(self, error: ClientError) -> bool:
        """Return whether a refused request has taken effect, as :meth:`_is_there` finds out."""
        if not is_conflict(error) and code_of(error) != _ENDED:
            return False
        with suppress(ClientError):
            return self._is_there()
        return False

    def _range(self, extent: Extent) -> RangeAnswer:
        return read_range(self._target, extent, None)

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
        complete = partial(
            self._client.complete_multipart_upload,
            **where(self._target),
            UploadId=upload,
            MultipartUpload={"Parts": parts},
        )
        try:
            self._make_visible(complete, may_be_ours=True)
        except ClientError as error:
            if code_of(error) == _UNEVEN and self._is_copying:
                raise CannotCopyError from error
            raise

    def _refusal(self, error: ClientError) -> Exception:
        return already_there(self._target) if self._must_be_new and is_conflict(error) else error

    def _send(
        self, upload: str, checksum: Mapping[str, str], number: int, part: Part
    ) -> dict[str, Any]:
        to = {**where(self._target), "UploadId": upload, "PartNumber": number}
        if isinstance(part, OldRange) and self._origin is not None:
            answered = self._copied(self._origin, to, part)
        else:
            answered = self._client.upload_part(**to, **checksum, Body=part)
        # Checksums have a field for each algorithm: whichever the store has worked out is repeated
        # to it.
        fields = {name: answered[name] for name in answered if name.startswith(_PART_FIELDS)}
        return {"PartNumber": number, **fields}

    def _copied(self, origin: Origin, to: Mapping[str, Any], part: OldRange) -> dict[str, Any]:
        try:
            answer = self._client.upload_part_copy(
                **to,
                CopySource=where(origin.object),
                CopySourceIfMatch=origin.mark,
                # The last byte is named, not the one after it (RFC 9110, 14.1.2).
                CopySourceRange=f"bytes={part.offset}-{part.offset + part.length - 1}",
            )
        except ClientError as error:
            if code_of(error) in _CANNOT_COPY:
                raise CannotCopyError from error
            raise
        answered: dict[str, Any] = answer["CopyPartResult"]
        return answered


#: The class that the module of each store offers under this name.
Writer = S3Writer
