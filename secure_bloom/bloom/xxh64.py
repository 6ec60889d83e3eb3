"""XXH64 (seed 0) of PLAIN-encoded values, singly or in bulk. BloomFilter.md, "Hash Function".

The hash is over a value's bytes in PLAIN encoding, but without the length before a BYTE_ARRAY.  The
``xxhash`` library hashes single values, ``kernels`` hash arrays.  Only the functions for arrays
import numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import xxhash

from secure_bloom.errors import FormatError, PolicyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Hashes: TypeAlias = NDArray[np.uint64]

#: Values hashed at a time by the `*_chunks` functions: their hashes stay in the CPU's cache.
CHUNK: Final = 1 << 16


def hash_value(value: bytes) -> int:
    """Return the hash of one value's bytes, 0 <= hash < 2^64.

    Raises PolicyError if ``value`` is not bytes.
    """
    # The type is not checked beforehand: this is called for each value of a probe.
    try:
        return xxhash.xxh64_intdigest(value)
    except TypeError as exc:
        raise PolicyError(f"value is of type {type(value).__name__}, wanted bytes") from exc


def hash_fixed(values: NDArray[Any]) -> Hashes:
    """Return the hash of each fixed-width value's little-endian bytes.

    ``values`` is 1-D of integers, floats or void, or 2-D uint8 of shape (n, width). The result has
    shape (n,).  Raises PolicyError for any other array.
    """
    return _hash_rows(_rows(values))


def hash_binary(
    offsets: NDArray[np.int32] | NDArray[np.int64], data: NDArray[np.uint8], *, prefix: int = 0
) -> Hashes:
    """Return the hash of each ``data[offsets[i] + prefix:offsets[i + 1]]``.

    With ``prefix`` 0 this is Arrow's layout of binary values. With 4 it is Parquet's PLAIN
    encoding, where a length comes before each value.  ``offsets`` has n + 1 items and need not
    start at 0. The result has shape (n,).  Raises FormatError for offsets that descend or leave
    ``data``.
    """
    _check_offsets(offsets, data, prefix)
    return _hash_spans(offsets, data, prefix)


def fixed_chunks(values: NDArray[Any]) -> Iterator[Hashes]:
    """Yield the hashes of :func:`hash_fixed`, at most ``CHUNK`` at a time."""
    rows = _rows(values)
    for start in range(0, len(rows), CHUNK):
        yield _hash_rows(rows[start : start + CHUNK])


def binary_chunks(
    offsets: NDArray[np.int32] | NDArray[np.int64], data: NDArray[np.uint8], *, prefix: int = 0
) -> Iterator[Hashes]:
    """Yield the hashes of :func:`hash_binary`, at most ``CHUNK`` at a time.

    All offsets are checked first.
    """
    _check_offsets(offsets, data, prefix)
    for start in range(0, len(offsets) - 1, CHUNK):
        yield _hash_spans(offsets[start : start + CHUNK + 1], data, prefix)


def _rows(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the values' little-endian bytes, shape (n, width), without a copy where possible."""
    import numpy as np

    if values.ndim == 2 and values.dtype == np.uint8:
        return np.ascontiguousarray(values)
    # An array of objects holds addresses, whose bytes are no values.
    if values.ndim != 1 or values.dtype.kind not in "iufV" or values.dtype.hasobject:
        raise PolicyError(
            f"cannot hash a {values.ndim}-D array of {values.dtype} as fixed-width values,"
            " wanted 1-D integers, floats or void, or 2-D uint8"
        )
    # PLAIN is little-endian, whatever the machine is (Encodings.md).
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return little.view(np.uint8).reshape(len(values), values.dtype.itemsize)


def _hash_rows(rows: NDArray[np.uint8]) -> Hashes:
    import numpy as np

    from secure_bloom.kernels.loops import hash_rows

    hashes = np.empty(len(rows), np.uint64)
    hash_rows(rows, hashes)
    return hashes


def _hash_spans(offsets: NDArray[Any], data: NDArray[np.uint8], prefix: int) -> Hashes:
    import numpy as np

    from secure_bloom.kernels.loops import hash_spans

    hashes = np.empty(len(offsets) - 1, np.uint64)
    hash_spans(offsets, prefix, data, hashes)
    return hashes


def _check_offsets(offsets: NDArray[Any], data: NDArray[np.uint8], prefix: int) -> None:
    """Raise an error for arrays of a wrong type, and for offsets that leave ``data``."""
    if offsets.ndim != 1 or offsets.dtype.kind != "i" or offsets.dtype.itemsize < 4:
        raise PolicyError(
            f"offsets are {offsets.ndim}-D {offsets.dtype}, wanted 1-D int32 or int64"
        )
    if data.ndim != 1 or data.dtype != "uint8":
        raise PolicyError(f"binary data is {data.ndim}-D {data.dtype}, wanted 1-D uint8")
    if len(offsets) == 0:
        raise FormatError("binary offsets are empty, wanted one more than values")
    if (offsets[1:] < offsets[:-1]).any():
        raise FormatError("binary offsets descend, each must be at least the one before")
    if not 0 <= offsets[0] <= offsets[-1] <= len(data):
        raise FormatError(
            f"binary offsets run from {offsets[0]} to {offsets[-1]}, the data has {len(data)} bytes"
        )
    # Checked last: differences of unchecked offsets could overflow and look right.
    if prefix and (offsets[1:] - offsets[:-1] < prefix).any():
        raise FormatError(f"a binary value is shorter than its length field of {prefix} bytes")
