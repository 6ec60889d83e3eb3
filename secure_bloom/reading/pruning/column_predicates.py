"""A condition on one column of one file, with its values as the file stores them.

If the column has no order, or cannot store a value exactly, nothing is concluded from bounds or
filters.  The C extension takes the values of a lookup as arrays (:class:`ProbeValues`).

The values of a long list are encoded in one pass, if each value of the type has exactly one PLAIN
encoding, and Arrow holds the same bytes or the reversed bytes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.file_ciphers import bounds_of
from secure_bloom.parquet.literals import BeyondColumnError, physical_values
from secure_bloom.parquet.logical_types import Kind
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.parquet.texts import TICKS, temporal_text
from secure_bloom.parquet.value_order import ByteOrder, OrderKey, byte_order_of, order_of
from secure_bloom.predicates.binding import BoundCondition
from secure_bloom.predicates.tree import LOOKUPS, Operator

#: Microseconds of a unit; a nanosecond is a part of one.
_MICROS = {"s": Fraction(10**6), "ms": Fraction(1000), "us": Fraction(1), "ns": Fraction(1, 1000)}
#: Operators that test for equality.
_EQUALITIES = {Operator.EQUAL, Operator.NOT_EQUAL, Operator.IN, Operator.NOT_IN}


# Not frozen: a frozen one takes twice as long to make, and a list has thousands.
@dataclass(slots=True, kw_only=True)
class StoredValue:
    """One value: its key in the column's order, and the PLAIN encodings that may store it."""

    key: Any = field(repr=False)
    encodings: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnPredicate:
    """A condition on one leaf. ``ordinal`` is the leaf's number in the file.

    ``values`` are in the column's order, or None if nothing can be concluded from the stored form
    of some value.  For a test of equality, values that this file's type cannot hold are left out.
    ``order`` is None if the column has no usable order.  ``keys`` are the values in that order, to
    be compared with bounds, or () if bounds cannot be used.
    """

    condition: BoundCondition
    ordinal: int
    leaf: Leaf
    order: OrderKey | None
    values: tuple[StoredValue, ...] | None = field(repr=False)
    keys: tuple[Any, ...] = field(repr=False)

    def between(self, low: Any, high: Any) -> tuple[StoredValue, ...] | None:
        """Return the values between two keys, both included, or None if there is none."""
        start = bisect_left(self.keys, low)
        end = bisect_right(self.keys, high)
        # A slice of everything is the very same tuple, so its cached hashes serve again.
        return (self.values or ())[start:end] if start < end else None


def column_predicate(condition: BoundCondition, ordinal: int, leaf: Leaf) -> ColumnPredicate:
    """Return ``condition`` on ``leaf``, with its values sorted and as the leaf stores them."""
    order = order_of(leaf)
    values = _stored(condition, leaf, order)
    if values is not None and order is not None:
        values = tuple(sorted(values, key=lambda value: value.key))
    is_int96 = leaf.type is Type.INT96
    keys = _instants(condition) if is_int96 else tuple(value.key for value in values or ())
    return ColumnPredicate(
        condition=condition,
        ordinal=ordinal,
        leaf=leaf,
        order=order,
        values=values,
        keys=() if order is None else keys,
    )


def _instants(condition: BoundCondition) -> tuple[Fraction, ...]:
    """Return the values of a condition on INT96 as microseconds since 1970, ascending.

    Return () unless each of them is a timestamp.
    """
    if not pa.types.is_timestamp(condition.type):
        return ()
    unit = _MICROS[condition.type.unit]
    found = [scalar.value for scalar in condition.values]
    return () if None in found else tuple(sorted(value * unit for value in found))


def _stored(
    condition: BoundCondition, leaf: Leaf, order: OrderKey | None
) -> tuple[StoredValue, ...] | None:
    """Return the values as stored.

    Return None if one cannot be used. A value that nothing can equal is left out.
    """
    if leaf.type is Type.INT96 or pa.types.is_duration(condition.type):
        # INT96 is read in microseconds, so one value means a thousand stored ones.  No leaf
        # says the unit of a duration.
        return None
    if len(condition.values) > _FEW:
        together = encoded_together(condition.value_set, leaf)
        if together is not None:
            keys = together if order is None else map(order, together)
            pairs = zip(keys, together, strict=True)
            return tuple(StoredValue(key=key, encodings=(stored,)) for key, stored in pairs)
    found, is_temporal = [], pa.types.is_temporal(condition.type)
    for scalar in condition.values:
        value = _python_value(scalar, leaf, is_temporal=is_temporal)
        try:
            encodings = _encodings(leaf, value)
        except BeyondColumnError:
            # A wider type in another file of the table can hold the value; this file has none.
            encodings = () if condition.operator in _EQUALITIES else None
        if encodings is None:
            return None
        if not encodings:
            continue
        key = None if order is None else order(encodings[0])
        if isinstance(key, float) and key != value:
            # A narrower type stores another number.
            if condition.operator in _EQUALITIES:
                continue
            key = value
        found.append(StoredValue(key=key, encodings=encodings))
    return tuple(found)


#: So few values are encoded one by one.
_FEW = 16


def _encodings(leaf: Leaf, value: object) -> tuple[bytes, ...] | None:
    if leaf.type is Type.BOOLEAN:
        return (bytes([value]),) if isinstance(value, bool) else None
    try:
        return physical_values(leaf, value)
    except BeyondColumnError:
        raise
    except SecureBloomError:
        return None


def _python_value(scalar: pa.Scalar, leaf: Leaf, *, is_temporal: bool) -> object:
    if is_temporal:
        # Not `as_py`: Python has no nanoseconds, and no years beyond 9999.
        return temporal_text(scalar)
    value = scalar.as_py()
    is_uuid = leaf.logical.kind is Kind.UUID
    return UUID(bytes=value) if is_uuid and isinstance(value, bytes) else value


def encodings_of(values: Iterable[StoredValue]) -> list[bytes]:
    """Return all encodings of the values."""
    return [encoding for value in values for encoding in value.encodings]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProbeValues:
    """The PLAIN encodings of the values, ascending, one after the other.

    Value ``i`` is ``values[offsets[i]:offsets[i + 1]]``.  ``path`` is the column's
    ``path_in_schema``, encoded as in its metadata.
    """

    order: ByteOrder
    path: bytes
    values: bytes = field(repr=False)
    offsets: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, predicate: ColumnPredicate) -> ProbeValues | None:
        """Return the values of a lookup.

        Return None if it is no lookup or if bytes do not give the order.
        """
        order = byte_order_of(predicate.leaf)
        if predicate.condition.operator not in LOOKUPS or order is None or not predicate.values:
            return None
        if any(len(value.encodings) != 1 for value in predicate.values):
            return None
        encodings = [value.encodings[0] for value in predicate.values]
        return cls(
            order=order,
            path=predicate.leaf.encoded_path,
            values=b"".join(encodings),
            offsets=bounds_of(encodings),
        )


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


def _timestamps(values: pa.Array, leaf: Leaf) -> list[bytes] | None:
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
    Kind.TIMESTAMP: _timestamps,
    Kind.FLOAT: _floats,
    Kind.DECIMAL: _decimals,
}
