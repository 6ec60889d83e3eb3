"""The kinds of object stores, one record each: their schemes, their abilities, and their package.

A new kind of store is a record of :data:`STORES` and a module with the requests to its SDK, which
offers the names of :class:`.object_writer.Sdk`.  All other modules of ``storage`` ask the record.
Importing this module loads no SDK, and not pyarrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStore:
    """One kind of object store.

    Attributes:
        name: The store's name in messages.
        arrow_name: The ``type_name`` of pyarrow's file system.
        schemes: Maps each scheme that a user may write to the scheme that pyarrow knows.
        module: The module with the requests to the SDK. None if pyarrow writes the objects.
        extra: The extra of this package that installs the SDK.
        mark_at: The index, in the identity of an open object, of the mark that conditions compare.
        has_ends: Whether a request may ask for the last bytes of an object of unknown size.
        lists_folders: Whether pyarrow's listings have folders, and not only keys.
        takes_commits: Whether commits of a table's log are written here.
    """

    name: str
    arrow_name: str
    schemes: Mapping[str, str]
    module: str | None = None
    extra: str = ""
    mark_at: int | None = None
    has_ends: bool = False
    lists_folders: bool = True
    takes_commits: bool = False

    def mark(self, identity: tuple[object, ...]) -> str | None:
        """Return the part of an object's identity that conditions compare, or None."""
        mark = None if self.mark_at is None else identity[self.mark_at]
        return mark.decode() if isinstance(mark, bytes) else None


STORES: Final = (
    ObjectStore(
        name="S3",
        arrow_name="s3",
        schemes={"s3": "s3", "s3a": "s3", "s3n": "s3"},
        module="secure_bloom.storage.s3",
        extra="aws",
        mark_at=3,  # the entity tag
        has_ends=True,
        takes_commits=True,
    ),
    ObjectStore(
        name="Google Cloud Storage",
        arrow_name="gcs",
        schemes={"gs": "gs", "gcs": "gcs"},
        module="secure_bloom.storage.gcs",
        extra="gcp",
        mark_at=5,  # the generation
        has_ends=True,
        lists_folders=False,
    ),
    ObjectStore(
        name="Azure",
        arrow_name="abfs",
        schemes={"abfs": "abfs", "abfss": "abfss"},
        module="secure_bloom.storage.azure_blobs",
        extra="azure",
        mark_at=3,  # the entity tag
    ),
    ObjectStore(name="HDFS", arrow_name="hdfs", schemes={"hdfs": "hdfs"}),
)
#: The kind of store of each scheme that a user may write.
STORE_OF_SCHEME: Final = {scheme: store for store in STORES for scheme in store.schemes}


def store_of(filesystem: Any) -> ObjectStore:
    """Return the record of a file system of pyarrow. A disk's record has no abilities."""
    known = {store.arrow_name: store for store in STORES}
    name = filesystem.type_name
    return known.get(name) or ObjectStore(name=name, arrow_name=name, schemes={})
