"""Convert the values of a long list to a column's type in one pass.

A list is converted here only if each value has a usual kind for the type, and the type has exactly
this value.  The result equals :func:`.coercion.coerced_values` of each value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from secure_bloom.parquet.literals import bytes_of
from secure_bloom.parquet.texts import exact_number
from secure_bloom.predicates.coercion import is_binary, is_text
from secure_bloom.predicates.tree import Numeral

#: So few values are converted one by one.
FEW = 16
#: Hexadecimal digits and bytes of a UUID; characters with its dashes.
_UUID_DIGITS, _UUID_BYTES, _UUID_TEXT = 32, 16, 36


def exact_scalars(wanted: pa.DataType, values: Sequence[object]) -> tuple[pa.Scalar, ...] | None:
    """Return many values as scalars of the type, converted in one pass.

    Return None for few values, or if any value is not exactly a value of the type.
    """
    if len(values) <= FEW:
        return None
    # Not subclasses: a truth value is no number, and a number without quotes is no text.
    kinds = frozenset(map(type, values))
    convert = next(
        (it for accepts, taken, it in _CONVERSIONS if kinds <= taken and accepts(wanted)), None
    )
    if convert is None:
        return None
    try:
        return tuple(convert(values, wanted))
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError):
        return None


def _as_given(values: Sequence[Any], wanted: pa.DataType) -> pa.Array:
    return pa.array(values, wanted)


def _bytes(values: Sequence[Any], wanted: pa.DataType) -> pa.Array:
    return pa.array([bytes_of(it) if isinstance(it, str) else it for it in values], wanted)


def _uuids(values: Sequence[UUID], wanted: pa.DataType) -> pa.Array:
    return pa.array([value.bytes for value in values], wanted)


def _uuid_texts(values: Sequence[str], wanted: pa.DataType) -> pa.Array:
    """Return UUIDs, each given in its usual form. Raises ValueError for any other text."""
    digits = [text.replace("-", "") for text in values if len(text) == _UUID_TEXT]
    stored = bytes.fromhex("".join([it for it in digits if len(it) == _UUID_DIGITS]))
    # Spaces are no digits, and are skipped.
    if wanted.byte_width != _UUID_BYTES or len(stored) != _UUID_BYTES * len(values):
        raise ValueError("not UUIDs in their usual form")
    return pa.Array.from_buffers(wanted, len(values), [None, pa.py_buffer(stored)])


def _floats(values: Sequence[float], wanted: pa.DataType) -> pa.Array:
    """Return the numbers that are values of the type. Others equal no value and are left out."""
    doubles = np.array(values, np.float64)
    with np.errstate(over="ignore"):
        nearest = doubles.astype(f"f{wanted.bit_width // 8}")
    return pa.array(nearest[nearest.astype(np.float64) == doubles], wanted)


def _decimal_texts(values: Sequence[Any], wanted: pa.DataType) -> pa.Array:
    return pa.array([exact_number(text) for text in values], wanted)


def _day_texts(values: Sequence[str], wanted: pa.DataType) -> pa.Array:
    return pa.array(values, pa.string()).cast(pa.date32()).cast(wanted)


def _instants(values: Sequence[datetime], wanted: pa.DataType) -> pa.Array:
    """Return the instants. Without a zone they are in UTC, or local times like the column's."""
    zones = {value.tzinfo for value in values}
    if not zones <= ({None, UTC} if wanted.tz else {None}):
        raise ValueError("instants of other zones")
    return _of_unit(
        pa.array([it.replace(tzinfo=None) for it in values], pa.timestamp("us")), wanted
    )


def _instant_texts(values: Sequence[str], wanted: pa.DataType) -> pa.Array:
    texts = pa.array(values, pa.string())
    # Texts with a zone are taken by a column of instants alone.
    for zone in (None, "UTC") if wanted.tz else (None,):
        for unit in ("ns", "us"):
            try:
                return _of_unit(texts.cast(pa.timestamp(unit, zone)), wanted)
            except pa.ArrowInvalid:
                continue
    raise ValueError("not instants in one form")


def _of_unit(instants: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return instants as numbers of another unit. Raises ArrowInvalid for one that does not fit."""
    numbers = instants.cast(pa.timestamp(wanted.unit, instants.type.tz)).cast(pa.int64())
    return numbers.cast(wanted)


#: What a type takes in one pass: the type, the kinds of values, and the conversion.
_CONVERSIONS: Sequence[
    tuple[
        Callable[[pa.DataType], bool],
        frozenset[type],
        Callable[[Sequence[Any], pa.DataType], pa.Array],
    ]
] = (
    (is_text, frozenset({str}), _as_given),
    (pa.types.is_integer, frozenset({int}), _as_given),
    (is_binary, frozenset({bytes, str}), _bytes),
    (pa.types.is_fixed_size_binary, frozenset({bytes}), _as_given),
    (pa.types.is_fixed_size_binary, frozenset({UUID}), _uuids),
    (pa.types.is_fixed_size_binary, frozenset({str}), _uuid_texts),
    (pa.types.is_floating, frozenset({float}), _floats),
    (pa.types.is_decimal, frozenset({Decimal, int}), _as_given),
    (pa.types.is_decimal, frozenset({str, Numeral}), _decimal_texts),
    (pa.types.is_date, frozenset({date}), _as_given),
    (pa.types.is_date, frozenset({str}), _day_texts),
    (pa.types.is_timestamp, frozenset({datetime}), _instants),
    (pa.types.is_timestamp, frozenset({str}), _instant_texts),
)
