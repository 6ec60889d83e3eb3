"""Scan a column chunk for the values of a lookup.

The values of the chunk are compared in the bytes of their pages, without an Arrow array.  The C
extension compares their hashes. Without it, a few values are compared as they are.  If all pages
use the dictionary, only the dictionary page is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from secure_bloom.bloom.xxh64 import hash_value
from secure_bloom.kernels import extension
from secure_bloom.parquet.column_values import read_plain_values
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.value_arrays import EncodedValues
from secure_bloom.storage import InputFile

#: Bits of marks for each probe value: one of 32 other values is then looked up in vain.
_MARKS_PER_VALUE = 32


_MIN_MARKS = 1 << 15


#: Bytes of the length before a BYTE_ARRAY.
_LENGTH_SIZE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeHashes:
    """Hashes in ascending order, and ``marks``: one bit set for the lowest bits of each hash."""

    hashes: NDArray[np.uint64] = field(repr=False)
    marks: NDArray[np.uint8] = field(repr=False)

    @classmethod
    def of(cls, encodings: Sequence[bytes]) -> ProbeHashes:
        """Return the hashes of values in PLAIN encoding, without the length of a BYTE_ARRAY."""
        found = np.unique(np.array([hash_value(encoding) for encoding in encodings], np.uint64))
        count = max(_MIN_MARKS, 1 << (len(encodings) * _MARKS_PER_VALUE).bit_length())
        bits = np.zeros(count, np.bool_)
        bits[found & np.uint64(count - 1)] = True
        return cls(hashes=found, marks=np.packbits(bits, bitorder="little"))

    def may_be_in(self, file: InputFile, chunk: Chunk) -> bool:
        """Return whether ``chunk`` may have one of the values. False is certain.

        Reading stops at the first match.  Raises IntegrityError for a page that does not
        authenticate, with row group and column.
        """
        return any(
            page is None or self._may_be_among(page) for page in read_plain_values(file, chunk)
        )

    def _may_be_among(self, values: EncodedValues) -> bool:
        page, probes = (values.content, values.count, values.width or 0), self.hashes
        # A damaged page counts as "maybe": decoding it later says what is wrong.
        return bool(extension.native.look_for(*page, self.marks, probes))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeBytes:
    """A few values in their stored form, which are found without the C extension."""

    encodings: tuple[bytes, ...] = field(repr=False)

    def may_be_in(self, file: InputFile, chunk: Chunk) -> bool:
        """Like :meth:`ProbeHashes.may_be_in`."""
        return any(
            page is None or any(_has(page, encoding) for encoding in self.encodings)
            for page in read_plain_values(file, chunk)
        )


def _has(values: EncodedValues, encoding: bytes) -> bool:
    """Return whether the encoding may be in the bytes of the values.

    Bytes that span two values give a false "maybe".
    """
    if values.width is None:
        length = len(encoding).to_bytes(_LENGTH_SIZE, "little")
        return values.content.tobytes().find(length + encoding) >= 0
    if len(encoding) != values.width or len(values.content) < values.count * values.width:
        # Decoding says what is wrong with the page.
        return True
    rows = values.content[: values.count * values.width].reshape(-1, values.width)
    return bool((rows == np.frombuffer(encoding, np.uint8)).all(axis=1).any())
