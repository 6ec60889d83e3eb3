"""Settings of S3 that a catalog or ``storage_options`` gives for files, found by their paths.

    grant = StoreGrant(places=["s3://lake/db/people"], settings=S3Settings(endpoint=..., ...))
    open_input("s3://lake/db/people/data/1.parquet")     uses them while `grant` is referenced

Paths stay as the table's metadata have them, so no endpoint and no credential is in a report.  A
URI with settings in its query uses those instead.
"""

from __future__ import annotations

import gc
import itertools
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final
from weakref import WeakSet

from secure_bloom.errors import PolicyError
from secure_bloom.storage.paths import ObjectUri, below, is_object_uri, object_uri


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """How one store is accessed by the S3 protocol. Missing settings come from the environment."""

    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    is_anonymous: bool = False
    is_virtual: bool = False
    proxy: str | None = field(default=None, repr=False)
    connect_timeout: float | None = None
    request_timeout: float | None = None

    def without_credentials(self) -> S3Settings:
        """Return the settings that say where the store is, without credentials."""
        return replace(self, access_key=None, secret_key=None, session_token=None, proxy=None)

    def file_system(self, bucket: str) -> Any:
        """Return pyarrow's file system for a bucket."""
        from pyarrow import fs

        region = self.region
        if region is None and self.endpoint is None:
            region = fs.resolve_s3_region(bucket)
        given = {
            "endpoint_override": self.endpoint,
            "region": region,
            "access_key": self.access_key,
            "secret_key": self.secret_key,
            "session_token": self.session_token,
            "proxy_options": self.proxy,
            "connect_timeout": self.connect_timeout,
            "request_timeout": self.request_timeout,
            "anonymous": self.is_anonymous,
            "force_virtual_addressing": self.is_virtual,
        }
        return fs.S3FileSystem(**{name: value for name, value in given.items() if value})


class StoreGrant:
    """The settings for all objects below some places. They are used while the grant is referenced.

    If several grants match an object, the grant with the longest matching place is used. Among
    grants for the same place, the newest is used.  Raises PolicyError if another grant sends a part
    of these objects to another endpoint, because one path would mean two objects.
    """

    def __init__(self, places: Iterable[str], settings: S3Settings) -> None:
        self.places = tuple(object_uri(place) for place in places if is_object_uri(place))
        self.settings = settings
        self.number = next(_numbers)
        with _lock:
            if any(self._contradicts(other) for other in _grants):
                # It may be kept by nothing but an exception that was handled.
                gc.collect()
            if any(self._contradicts(other) for other in _grants):
                raise PolicyError(
                    "two catalogs give the files of one place from different endpoints",
                    hint="open their tables in different processes",
                    path=str(self.places[0]),
                )
            _grants.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without credentials: another machine has its own."""
        return _granted, (tuple(map(str, self.places)), self.settings.without_credentials())

    def _contradicts(self, other: StoreGrant) -> bool:
        return other.settings.endpoint != self.settings.endpoint and any(
            _covers(one, two) or _covers(two, one) for one in self.places for two in other.places
        )


def _granted(places: Iterable[str], settings: S3Settings) -> StoreGrant:
    return StoreGrant(places, settings)


_grants: Final[WeakSet[StoreGrant]] = WeakSet()
#: Reentrant: the collector may close files of a store while it is held.
_lock: Final = threading.RLock()
_numbers: Final = itertools.count()


def settings_for(uri: ObjectUri) -> S3Settings | None:
    """Return the settings that a catalog or ``storage_options`` gave for an object.

    Return None if the environment has the settings.
    """
    if uri.query or not _grants:
        return None
    with _lock:
        found = max(_covering(uri), key=lambda it: it[:2], default=None)
    return None if found is None else found[2]


def _covering(uri: ObjectUri) -> Iterator[tuple[int, int, S3Settings]]:
    for grant in _grants:
        for place in grant.places:
            if _covers(place, uri):
                yield len(place.key), grant.number, grant.settings


def _covers(place: ObjectUri, uri: ObjectUri) -> bool:
    return place == uri or below(str(uri), str(place)) is not None
