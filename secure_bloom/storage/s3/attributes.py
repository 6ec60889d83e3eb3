"""Attributes of an object beside its bytes; the object that takes its place gets them, too.

Headers, metadata, tags, storage class, encryption, the kind of checksum; and in its own place
the access list and the lock too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from botocore.compat import HAS_CRT
from botocore.exceptions import ClientError

from secure_bloom.storage.object_writer import StoredObject, already_there, changed
from secure_bloom.storage.s3.answers import code_of, errors
from secure_bloom.storage.s3.connection import where

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
    """Attributes of a new object: ``fields`` of the request that creates it, and its checksum."""

    fields: Mapping[str, Any]
    #: Empty where the SDK is set to send none.
    checksum: Mapping[str, str]
    #: Whether the checksum is that of the whole object, or of those of its parts.
    checksum_type: Mapping[str, str]


def plain_attributes(client: Any) -> Attributes:
    """Return the attributes of an object that replaces none and copies none."""
    return Attributes(fields={}, checksum=_default_checksum(client), checksum_type={})


def attributes_of(source: StoredObject, etag: str, *, in_its_place: bool) -> Attributes:
    """Return the attributes of an object; FileChangedError where its entity tag is another one."""
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
    """Return the store's answer about the object; FileChangedError where it is another by now."""
    head: dict[str, Any] = source.client.head_object(
        # Without this mode S3 does not tell which checksum the object has.
        **where(source),
        IfMatch=etag,
        ChecksumMode="ENABLED",
    )
    # Some stores ignore the condition.
    if head.get("ETag") != etag:
        raise changed(source)
    return head


def require_absent(target: StoredObject) -> None:
    """FileChangedError if an object is there."""
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
    """Legal hold and retention; a retention that has run out is one that the store refuses."""
    fields = {}
    if head.get("ObjectLockLegalHoldStatus") == "ON":
        fields["ObjectLockLegalHoldStatus"] = "ON"
    until = head.get("ObjectLockRetainUntilDate")
    if until is not None and until > datetime.now(UTC):
        fields["ObjectLockMode"] = head["ObjectLockMode"]
        fields["ObjectLockRetainUntilDate"] = until
    return fields


def _access_list(source: StoredObject) -> dict[str, str]:
    """Return the grants of the object, where there is anyone besides the owner."""
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
    """Return whether objects of the bucket have lists of their own.

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
