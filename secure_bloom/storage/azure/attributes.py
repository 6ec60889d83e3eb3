"""Attributes of a blob beside its bytes; the blob that takes its place gets them, too.

Headers, metadata, tags, access tier, encryption scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from azure.core import MatchConditions
from azure.storage.blob import BlobType, ContentSettings, StandardBlobTier

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.storage.azure.blob_errors import errors
from secure_bloom.storage.object_writer import StoredObject, changed

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
    """The attributes of a new blob: ``fields`` of the request that makes it visible."""

    fields: Mapping[str, Any]
    #: Fields of this request and of each that uploads a block.
    scope: Mapping[str, str]


PLAIN = BlobAttributes(fields={}, scope={})


def attributes_of(source: StoredObject, mark: str) -> BlobAttributes:
    """Return the attributes of a blob; FileChangedError where its entity tag is another one."""
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
    """Return the properties of the blob; FileChangedError where it is another by now."""
    found = source.client.blob(source.bucket, source.key).get_blob_properties(
        etag=mark, match_condition=MatchConditions.IfNotModified
    )
    if found.etag != mark:
        raise changed(source)
    return found
