"""Encode the values of a long list as a column stores them, in one pass.

This works for types in which every value has exactly one PLAIN encoding, and Arrow holds the same
bytes or the reversed bytes.  The result equals :func:`.literals.physical_values` of each value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.parquet.logical_types import Kind
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.parquet.texts import TICKS

#: A decimal of Arrow: little-endian, two's complement.
_DECIMAL_BYTES = 16


def encoded_together(values: pa.Array, leaf: Leaf) -> list[bytes] | None:
    """Return values without nulls in PLAIN encoding, in their order.

    Return None for a type in which some value has two encodings, or none: see
    :func:`.literals.physical_values`.
    """
    encode = _ENCODERS.get(leaf.logical.kind)
    return None if encode is None else encode(values, leaf)


def _texts(values: pa.Array, _leaf: Leaf) -> list[bytes] | None:
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return None
    return [text.encode() for text in values.to_pylist()]


def _bytes(values: pa.Array, leaf: Leaf) -> list[bytes] | None:
    of = values.type
    if pa.types.is_fixed_size_binary(of):
        return values.to_pylist() if of.byte_width == leaf.width else None
    is_binary = pa.types.is_binary(of) or pa.types.is_large_binary(of)
    return values.to_pylist() if is_binary and leaf.width is None else None


def _integers(values: pa.Array, leaf: Leaf) -> list[bytes] | None:
    of, logical = values.type, leaf.logical
    is_same = (
        pa.types.is_integer(of)
        and of.bit_width == logical.bits
        and pa.types.is_signed_integer(of) is logical.signed
    )
    return _numbers(values, leaf) if is_same else None


def _days(values: pa.Array, leaf: Leaf) -> list[bytes] | None:
    return _numbers(values.cast(pa.int32()), leaf) if pa.types.is_date32(values.type) else None


def _instants(values: pa.Array, leaf: Leaf) -> list[bytes] | None:
    of, logical = values.type, leaf.logical
    # A column of local times has no instant.
    if not pa.types.is_timestamp(of) or (of.tz is not None and not logical.is_utc):
        return None
    return _numbers(values.cast(pa.int64()), leaf) if TICKS[of.unit] == logical.unit else None


def _numbers(values: pa.Array, leaf: Leaf) -> list[bytes] | None:
    if leaf.width is None:
        return None
    numbers = values.to_numpy(zero_copy_only=False)
    return _rows(numbers.astype(f"<i{leaf.width}", casting="unsafe").view(np.uint8), leaf.width)


def _floats(values: pa.Array, leaf: Leaf) -> list[bytes] | None:
    numbers = values.to_numpy(zero_copy_only=False)
    # Both zeros are asked for, and of a NaN a filter says nothing.
    if numbers.dtype != np.dtype(f"f{leaf.width}") or not (np.abs(numbers) > 0).all():
        return None
    return _rows(numbers.view(np.uint8), numbers.dtype.itemsize)


def _decimals(values: pa.Array, leaf: Leaf) -> list[bytes] | None:
    of, width = values.type, leaf.width
    if not pa.types.is_decimal128(of) or of.scale != leaf.logical.scale:
        return None
    if width is None or width > _DECIMAL_BYTES:
        return None
    first = values.offset * _DECIMAL_BYTES
    stored = np.frombuffer(values.buffers()[1], np.uint8)[first:].reshape(-1, _DECIMAL_BYTES)
    kept, rest = stored[: len(values), :width], stored[: len(values), width:]
    # The bytes that are left out must repeat the sign: a number beyond the column has no encoding.
    signs = np.where(kept[:, -1:] >= 1 << 7, np.uint8(255), np.uint8(0))
    if (rest != signs).any():
        return None
    is_little = leaf.type is not Type.FIXED_LEN_BYTE_ARRAY
    return _rows(np.ascontiguousarray(kept if is_little else kept[:, ::-1]), width)


def _rows(stored: NDArray[np.uint8], width: int) -> list[bytes]:
    content = stored.tobytes()
    return [content[start : start + width] for start in range(0, len(content), width)]


_ENCODERS: dict[Kind, Callable[[pa.Array, Leaf], list[bytes] | None]] = {
    Kind.TEXT: _texts,
    Kind.BYTES: _bytes,
    Kind.UUID: _bytes,
    Kind.INTEGER: _integers,
    Kind.DATE: _days,
    Kind.TIMESTAMP: _instants,
    Kind.FLOAT: _floats,
    Kind.DECIMAL: _decimals,
}
