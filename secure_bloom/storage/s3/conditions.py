"""Which conditions a store of the S3 protocol takes: some ignore them, and do what was asked.

A small object of our own is written, overwritten and removed on conditions that do not hold:

    PUT If-None-Match: *   PUT If-Match: another   DELETE If-Match: another
"""

from __future__ import annotations

import secrets
import threading
from contextlib import suppress
from typing import Any

from botocore.exceptions import ClientError

from secure_bloom.storage.object_writer import Conditions, StoredObject
from secure_bloom.storage.s3.answers import code_of, is_conflict
from secure_bloom.storage.s3.connection import where

_CONTENT = b"{}"
_ANOTHER = '"00000000000000000000000000000000"'
#: Answers of stores that do not know the condition.
_NOT_DONE = frozenset({"NotImplemented", "501"})
#: What was found, by store and bucket.
_known: dict[tuple[str, str], Conditions] = {}
_asking = threading.Lock()


def conditions(target: StoredObject) -> Conditions:
    """Return the conditions that the bucket of ``target`` takes; asked once in a process."""
    known = (target.store, target.bucket)
    with _asking:
        if known not in _known:
            _known[known] = _asked(target)
        return _known[known]


def remove(target: StoredObject, mark: str) -> None:
    """Remove the object, only if it has this mark."""
    target.client.delete_object(**where(target), IfMatch=mark)


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
