"""A file that is not read much more than once.

A hostile footer may point a thousand times at the same 128 MiB.  The parts of a sound file do not
overlap, so that reading all of them once reads no more than the file has.
"""

from __future__ import annotations

from secure_bloom.errors import FormatError
from secure_bloom.storage.counted_file import CountedFile

#: Room for the end of the file, and for the heads of parts, which are read before the parts.
_ROOM = 1024 * 1024
#: Once gaps, indexes and filters; once sampled pages; and twice the pages of a chunk whose zeros
#: are looked for.
_TIMES = 4


class MeteredFile(CountedFile):
    """Another file, with a bound on all that is read of it together."""

    def _read(self, offset: int, length: int) -> bytes:
        if self.bytes_read + length > _TIMES * self.size + _ROOM:
            raise FormatError("parts of the file overlap: together they are larger than the file")
        return super()._read(offset, length)
