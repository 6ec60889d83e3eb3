# The base class documents the methods.
# ruff: noqa: D102
"""Read objects through the SDK of their store: no extra request for metadata, one version.

    first GET     the last 128 KiB; its answer has the size and the mark: entity tag or generation
    later GETs    on the condition that the mark is the same: FileChangedError after a write

Azure has no ranges from the end, so there the size comes from the listing.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from secure_bloom.errors import FileChangedError, FormatError, SecureBloomError
from secure_bloom.storage.inputs import END, Extent, InputFile
from secure_bloom.storage.objects import ObjectFile, arrow_location, first_answer
from secure_bloom.storage.stores import store_of

if TYPE_CHECKING:
    from secure_bloom.storage.object_writer import Sdk, StoredObject

#: Answer to a request for a range: first and last byte, and the size of the object.
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_CHANGED = "the object was changed after it was read"


class PinnedObject(ObjectFile):
    """One object. Every read is on the condition that it is the object of ``identity``."""

    is_pinned = True

    def __init__(
        self, sdk: Sdk, target: StoredObject, size: int, identity: tuple[object, ...]
    ) -> None:
        self._sdk, self._target = sdk, target
        self._mark = store_of(arrow_location(target.path)[0]).mark(identity)
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
        extent = (offset, offset + length)
        ask = partial(self._sdk.read_range, self._target, extent, self._mark)
        with self._sdk.errors(self.path):
            answer = first_answer(self.path, ask)
        # Some stores ignore conditions.
        if answer.marks != self.identity[2:]:
            raise FileChangedError(_CHANGED, path=self.path)
        return answer.content


def open_pinned_object(path: str, listed_size: int | None) -> PinnedObject | None:
    """Open an object and fetch its end, in one request.

    ``listed_size`` is the size in a listing, if there was one.  Return None without the store's
    SDK, or if the store does not answer as expected. The caller then opens the object with pyarrow,
    which also reports any error.
    """
    try:
        found = _stored_at(path)
        extent = None if found is None else _end(path, listed_size)
        if found is None or extent is None:
            return None
        sdk, target = found
        with sdk.errors(path):
            answer = first_answer(path, partial(sdk.read_range, target, extent, None))
    except SecureBloomError:
        return None
    place = _RANGE.fullmatch(answer.place)
    # An object that grew since its listing does not end there.
    if place is None or int(place[2]) + 1 != int(place[3]):
        return None
    size, start = int(place[3]), int(place[1])
    file = PinnedObject(sdk, target, size, (None, size, *answer.marks))
    if len(answer.content) != size - start:
        raise FormatError(
            f"the store sent {len(answer.content)} bytes, its Content-Range says {size - start}",
            path=path,
        )
    file.hold(start, answer.content)
    return file


def _end(path: str, listed_size: int | None) -> Extent | None:
    if store_of(arrow_location(path)[0]).has_ends:
        return -END, 0
    return None if not listed_size else (max(0, listed_size - END), listed_size)


def reopen_pinned_object(
    path: str, size: int, identity: tuple[object, ...], held: tuple[int, bytes] = (0, b"")
) -> PinnedObject | None:
    """Open an object again without a request, or return None as :func:`open_pinned_object` does.

    ``held`` has an offset in the object and the bytes from there on. Reading these bytes makes no
    request.
    """
    try:
        found = _stored_at(path)
    except SecureBloomError:
        return None
    if found is None or store_of(arrow_location(path)[0]).mark(identity) is None:
        return None
    file = PinnedObject(*found, size, identity)
    if held[1]:
        file.hold(*held)
    return file


def _stored_at(path: str) -> tuple[Sdk, StoredObject] | None:
    """Return the store's module and the object, or None for a store without an SDK."""
    from secure_bloom.storage.object_writes import stored_at

    filesystem, key = arrow_location(path)
    if not store_of(filesystem).module:
        return None
    try:
        return stored_at(path, filesystem, key)
    except ValueError:
        # Settings that pyarrow takes and the SDK does not.
        return None
