"""Write one object of a store: whole in one request, or in parts that the store copies itself.

    old object   | kept bytes ............ | old footer
    new object   | copied range | ... | copied range | uploaded part (filters, footer)
    conditions     the old object's mark, on every copy and on the last request

Packages of stores (``s3``, ``azure_blobs``, ``gcs``) make each of these requests.

S3 takes at most 10,000 parts. Each part but the last has at least 5 MiB, and a copied part at most
5 GiB. Azure takes 50,000 blocks of any size.  Some stores (Cloudflare R2) want all parts but the
last to have one size, and the last one to be no larger.  So all copied parts have one size, and the
few bytes that are left over are uploaded with the tail.
"""

from __future__ import annotations

import contextlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Any, ClassVar, Protocol, TypeVar, cast

from secure_bloom.errors import (
    FileChangedError,
    MissingExtraError,
    SecureBloomError,
    UnsupportedFeatureError,
    imported_for,
)
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage.inputs import Extent, InputFile
from secure_bloom.storage.os_errors import CHANGED, error_of
from secure_bloom.storage.rewritten_file import OldRange
from secure_bloom.storage.stores import ObjectStore
from secure_bloom.storage.write_permit import require_permit

MIB = 1024 * 1024
#: Least bytes of a part that is not the last.
LEAST_PART = 5 * MIB
#: Bytes that the store copies in one request: far fewer than it could, because it copies side by
#: side what is asked side by side.
_COPIED = 256 * MIB
_UPLOADED = 8 * MIB
#: A quarter of the 10,000 stays free: for the tail, and for files that grow.
_MOST_PARTS = 7_500

#: A range that the store copies, or bytes that go up.
Part = OldRange | bytes


def can_copy(keep: int) -> bool:
    """Return whether ``keep`` bytes are enough for one copied part."""
    return keep >= LEAST_PART


def copied_ranges(keep: int) -> list[OldRange]:
    """Return the kept bytes as ranges of equal length.

    They may leave out a remainder, of fewer bytes than there are ranges.
    """
    # `-(-a // b)` rounds up: ranges grow where there would be too many of them.
    count = -(-keep // max(_COPIED, -(-keep // _MOST_PARTS)))
    size = keep // count
    return [OldRange(number * size, size) for number in range(count)]


def parts_after_copies(source: InputFile, keep: int, tail: Sequence[bytes]) -> Iterator[Part]:
    """Yield the first ``keep`` bytes of source as copies, then the rest and the tail."""
    ranges = copied_ranges(keep)
    yield from ranges
    end = ranges[-1].offset + ranges[-1].length
    left_over = source.read_at(end, keep - end) if end < keep else b""
    yield from (part for part in uploaded_parts([left_over, *tail], 0) if part)


def uploaded_parts(pieces: Iterable[bytes], expected: int) -> Iterator[bytes]:
    """Yield the pieces as parts of one size. ``expected`` is about the sum of their bytes.

    Yields at least one part.
    """
    size = max(_UPLOADED, -(-expected // _MOST_PARTS))
    waiting = bytearray()
    for piece in pieces:
        for start in range(0, len(piece), size):
            waiting += memoryview(piece)[start : start + size]
            # More than a part, so that what stays for the last one is never nothing.
            while len(waiting) > size:
                yield bytes(waiting[:size])
                del waiting[:size]
    yield bytes(waiting)


#: Parts of one object under way at a time.
_AT_ONCE = 4
T = TypeVar("T")


class CannotCopyError(Exception):
    """The store refuses to copy from the source for this caller, or refuses parts of this size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """The address of one object, which may not exist.

    The store can copy between two objects if their ``store`` is equal.
    """

    path: str
    bucket: str
    key: str
    store: str
    client: Any = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeAnswer:
    """A store's answer to a request for a range: its bytes, its ``Content-Range``, and its marks.

    ``marks`` are the parts that follow the size in an object's identity: see :mod:`.objects`.
    """

    content: bytes = field(repr=False)
    place: str
    marks: tuple[object, ...]


def written_text(written: datetime) -> bytes:
    """Return the time of the last write in the form of the metadata that pyarrow returns."""
    return f"{written:%Y-%m-%dT%H:%M:%SZ}".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The object that kept bytes come from, and its mark when it was opened.

    The mark is the entity tag, or Google's generation. It changes with every write.
    """

    object: StoredObject
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Whether a store replaces, and removes, an object only if its mark is the requested one."""

    writes: bool
    removals: bool


ALL_CONDITIONS = Conditions(writes=True, removals=True)
NO_CONDITIONS = Conditions(writes=False, removals=False)


class ObjectWriter(ABC):
    """Writes one object. After an exception, the old object is still there.

    ``origin`` is the source as an object of the same store, or None if the source is elsewhere.  An
    object is replaced in its own place only if it is still the object that was read.  With
    ``must_be_new`` no object may be at the target. ``over`` is the mark of the only object that may
    be replaced.
    """

    #: Whether the store copies ranges of objects.
    copies: ClassVar[bool] = True

    def __init__(
        self,
        target: StoredObject,
        origin: Origin | None,
        check_source: Callable[[], None],
        *,
        must_be_new: bool,
        over: str | None = None,
    ) -> None:
        self._target = target
        self._client = target.client
        self._origin = origin
        self._check_source = check_source
        self._must_be_new = must_be_new
        # Only then is the mark of the source a condition of the target: elsewhere there is another
        # object.
        self._in_place = origin is not None and _is_same(origin.object, target)
        #: The mark of the object that may be replaced; None for any.
        self._expected = origin.mark if origin is not None and self._in_place else over
        self._is_copying = False
        #: The bytes that were sent, by number, and those at the end of them.
        self._sent = 0
        self._end = b""

    def replace(self, source: InputFile, keep: int, tail: Sequence[bytes]) -> int:
        """Write the first ``keep`` bytes of source and the tail as the object. Return its size."""
        if self.copies and self._origin is not None and can_copy(keep):
            self._is_copying = True
            with contextlib.suppress(CannotCopyError):
                return self.write(parts_after_copies(source, keep, tail))
            self._is_copying = False
        return self.write(uploaded_parts(source.chunks(keep, tail), source.size))

    def write(self, parts: Iterator[Part]) -> int:
        """Write the parts. Return the size of the new object in bytes."""
        self._sent = 0
        parts = self._noted(parts)
        first = next(parts)
        second = next(parts, None)
        # The number of parts is looked at before anything is sent: an upload in parts takes three
        # requests for what one can do.
        if second is None and isinstance(first, bytes):
            require_permit()
            self._put(first)
            return len(first)
        rest = () if second is None else (second,)
        return self._upload(itertools.chain((first, *rest), parts))

    def _noted(self, parts: Iterator[Part]) -> Iterator[Part]:
        for part in parts:
            self._sent += part.length if isinstance(part, OldRange) else len(part)
            self._end = b"" if isinstance(part, OldRange) else part
            yield part

    def _is_there(self) -> bool:
        """Return whether the store has what was sent, although it refused the request.

        The SDK, or a layer below, may repeat a request whose first answer was lost. The repeat
        meets the object of the first one.  An object in parts is known by its size and its last
        part, which has the footer.
        """
        if not self._end:
            return False
        found = self._range((self._sent - len(self._end), self._sent))
        return found.content == self._end and found.place.endswith(f"/{self._sent}")

    @abstractmethod
    def _range(self, extent: Extent) -> RangeAnswer:
        """Return bytes of the object at the target."""

    @abstractmethod
    def _put(self, content: bytes) -> None:
        """Write a small object in one request."""

    @abstractmethod
    def _upload(self, parts: Iterator[Part]) -> int:
        """Write a larger object in parts. Return its size."""

    @abstractmethod
    def _require_absent(self) -> None:
        """Raise FileChangedError if an object is at the target."""

    @abstractmethod
    def _require_same(self, origin: Origin) -> None:
        """Raise FileChangedError if another program replaced the origin."""

    def _check(self) -> None:
        """Check the permit.

        For stores that ignore conditions, also check that the objects are unchanged.

        A change right before the write may be missed.
        """
        require_permit()
        if self._must_be_new:
            self._require_absent()
        if self._origin is None:
            self._check_source()
        else:
            self._require_same(self._origin)


def sent_in_order(send: Callable[[int, Part], T], parts: Iterable[Part]) -> tuple[list[T], int]:
    """Send parts in parallel, numbered from 1.

    Return the answers in order, and the sum of bytes.
    """
    sizes: list[int] = []

    def sent(numbered: tuple[int, Part]) -> T:
        return send(*numbered)

    # The room is for as many parts as an upload can have: no part waits because an earlier answer
    # is late.
    done = list(in_order(sent, _numbered(parts, sizes), _AT_ONCE, room=10_000))
    return done, sum(sizes)


def already_there(target: StoredObject) -> FileChangedError:
    """Return the error for an object that must be new but exists."""
    return FileChangedError("the object is there already", path=target.path)


def changed(source: StoredObject) -> SecureBloomError:
    """Return the error for an object that another program replaced."""
    return error_of(CHANGED, source.path)


def _is_same(one: StoredObject, other: StoredObject) -> bool:
    return (one.store, one.bucket, one.key) == (other.store, other.bucket, other.key)


def _numbered(parts: Iterable[Part], sizes: list[int]) -> Iterator[tuple[int, Part]]:
    """Yield the parts with their numbers, and add their sizes to ``sizes``."""
    for number, part in enumerate(parts, 1):
        sizes.append(part.length if isinstance(part, OldRange) else len(part))
        yield number, part


class Sdk(Protocol):
    """The module with the requests to one kind of store, through the store's own SDK."""

    @property
    def Writer(self) -> type[ObjectWriter]:  # noqa: N802 - a class
        """The subclass of ``ObjectWriter`` that writes one object."""

    def connect(self, path: str, filesystem: Any, /) -> tuple[str, Any]:
        """Return the name of the store of a path, and the client for it."""

    def errors(self, path: str, /) -> AbstractContextManager[None]:
        """Raise exceptions of the SDK as errors of this package about ``path``."""

    def conditions(self, target: StoredObject, /) -> Conditions:
        """Return the conditions that the store honours."""

    def read_range(self, target: StoredObject, extent: Extent, mark: str | None, /) -> RangeAnswer:
        """Return a range of an object. The store refuses if ``mark`` is given and has changed."""

    def remove(self, target: StoredObject, mark: str | None, /) -> None:
        """Remove an object. The store refuses if ``mark`` is given and has changed."""


def sdk_of(store: ObjectStore) -> Sdk:
    """Return the module with the requests to a store's SDK.

    Raises MissingExtraError if the SDK is not installed.
    """
    if store.module is None:
        raise UnsupportedFeatureError(
            f"pyarrow writes to {store.name}, and this needs requests that only an SDK sends"
        )
    try:
        with imported_for(f"writing to {store.name}", store.extra):
            return cast(Sdk, import_module(store.module))
    except MissingExtraError as error:
        error.hint = f"{error.hint}, or in a clone: pip install '.[{store.extra}]'"
        raise
