"""Cut a new object into the parts of an upload, for every store that takes parts.

S3 takes 10,000 parts at most, each of 5 MiB at least save the last, and copies 5 GiB at most; Azure
takes 50,000 blocks of any size.  Some stores (Cloudflare R2) want all parts but the last to have
one size, and the last one to be no larger.  So all copied parts have one size, and the few bytes
that are left over go up with the tail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.rewritten_file import OldRange

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
    """Return whether the kept bytes are enough for a part."""
    return keep >= LEAST_PART


def copied_ranges(keep: int) -> list[OldRange]:
    """Return the kept bytes as ranges of one length.

    Fewer bytes than there are ranges are left over.
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
    """Yield the pieces as parts of one size, of about ``expected`` bytes in all.

    At least one part.
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
