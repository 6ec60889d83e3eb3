"""A column's physical values as arrays: of one width, or of any length.

The arrays are views on the memory of Arrow or of a Parquet page. Nothing is copied.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.parquet.logical_types import Kind
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type

if TYPE_CHECKING:
    import pyarrow as pa


# Without slots: the longest value is looked for once.
@dataclass(frozen=True, kw_only=True)
class Binary:
    """Values of any length: value ``i`` is ``data[offsets[i] + prefix:offsets[i + 1]]``.

    With ``prefix`` 0 this is Arrow's binary layout, with ``prefix`` 4 it is Parquet's PLAIN
    encoding.
    """

    offsets: NDArray[Any]
    data: NDArray[np.uint8]
    prefix: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @functools.cached_property
    def longest(self) -> int:
        """The bytes of the longest value with its prefix, 0 without values."""
        return int((self.offsets[1:] - self.offsets[:-1]).max()) if len(self) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedValues:
    """The ``count`` values in ``content``, without nulls, in the encoding of their page.

    In PLAIN, ``width`` is the width of each value, or None if each value follows its length.  Only
    :func:`.plain_pages.encoded_entries` checks these numbers against the content.
    """

    content: NDArray[np.uint8] = field(repr=False)
    count: int
    width: int | None

    def __len__(self) -> int:
        return self.count


#: Values of one width, in the type that their bytes have, or of any length.
Entries: TypeAlias = NDArray[Any] | Binary

_FIXED_TYPES: dict[Type, np.dtype[Any]] = {
    Type.INT32: np.dtype("<i4"),
    Type.INT64: np.dtype("<i8"),
    Type.FLOAT: np.dtype("<f4"),
    Type.DOUBLE: np.dtype("<f8"),
}


def as_entries(leaf: Leaf, array: pa.Array) -> Entries:
    """Return the physical values of ``leaf`` in an Arrow array without nulls. Nothing is copied.

    Raises UnsupportedFeatureError for booleans: they have bits and no bytes.
    """
    if leaf.type is Type.BOOLEAN:
        raise UnsupportedFeatureError("values of a BOOLEAN column are not read one by one")
    if leaf.type is Type.BYTE_ARRAY:
        return _binary_buffers(array)
    dtype = fixed_type(leaf)
    if len(array) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(
        array.buffers()[1], dtype=dtype, count=len(array), offset=array.offset * dtype.itemsize
    )


def _binary_buffers(array: pa.Array) -> Binary:
    import pyarrow as pa

    is_large = pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    every = np.frombuffer(offsets, dtype="<i8" if is_large else "<i4")
    # Arrow has no buffer for data of no bytes at all.
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    # An array may be a slice of a longer one, whose buffers it shares: it begins at its offset.
    return Binary(offsets=every[array.offset : array.offset + len(array) + 1], data=content)


def fixed_type(leaf: Leaf) -> np.dtype[Any]:
    """Return the numpy type of values that all have ``leaf.width`` bytes."""
    if is_float16(leaf):
        return np.dtype("<f2")
    # V for raw bytes: numpy's S would cut zeros off at the end of a value.
    return _FIXED_TYPES.get(leaf.type) or np.dtype(f"V{leaf.width}")


def is_float16(leaf: Leaf) -> bool:
    """Return whether the column holds two-byte floating-point numbers."""
    is_fixed = leaf.type is Type.FIXED_LEN_BYTE_ARRAY
    return is_fixed and leaf.logical.kind is Kind.FLOAT16
