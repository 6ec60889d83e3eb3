"""Convert a value, as a person or a program writes it, to the PLAIN encodings that filters hold.

A filter holds *physical* values, so a value is converted by the column's logical type
(LogicalTypes.md).  Zero in a floating-point column becomes two encodings, 0.0 and -0.0.  For NaN
and null a filter has no answer.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Context, Decimal, Inexact, InvalidOperation
from numbers import Real
from typing import Any
from uuid import UUID

from secure_bloom.errors import PolicyError
from secure_bloom.parquet.logical_types import JULIAN_EPOCH, Kind, Logical
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.parquet.texts import (
    SECOND,
    day_number,
    exact_number,
    floating_number,
    shortest_decimal,
    timestamp_nanos,
)

_DAY = 86_400 * SECOND

#: More than any whole number of 64 bits has.
_MOST_DIGITS = 20

#: Decimals are converted without rounding: no column holds a number that this would round.
_EXACT = Context(prec=1000, traps=[Inexact, InvalidOperation])


class _NotSuchAValueError(ValueError):
    """The value cannot be of the column's type. The message is empty: a value is never shown."""


class _BeyondError(_NotSuchAValueError):
    """The value is of the column's kind, but too large or too fine for its type."""


class BeyondColumnError(PolicyError):
    """The value is of the column's kind, but no value of the column can equal it.

    Examples are a number out of the type's range and a time finer than the type's unit.  Another
    file may store the same column in a larger type, so asking for the value makes sense.  In this
    file it is certainly absent.
    """


def python_value(value: object) -> object:
    """Return the Python value of a pyarrow scalar or a numpy instant, or ``value`` itself."""
    if not hasattr(value, "as_py"):
        return _instant_text(value) if type(value).__name__ == "datetime64" else value
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        # Whoever has a scalar has loaded pyarrow.
        from secure_bloom.parquet.texts import temporal_text

        # Python has no nanoseconds, and no years beyond 9999.
        return temporal_text(value)


def _instant_text(instant: Any) -> str:
    """Return the day or the timestamp of numpy's datetime64, with all of its digits."""
    # numpy need not be loaded here.  A month is no day, and an hour no timestamp.
    rounded = (instant.astype(f"datetime64[{unit}]") for unit in "Ds")
    return str(next((it for it in rounded if it == instant), instant))


def physical_values(leaf: Leaf, value: object) -> tuple[bytes, ...] | None:
    """Return the PLAIN encodings that ``value`` may have in ``leaf``.

    Return None if a filter cannot answer for the value (null, NaN), so that it may be there. Raises
    PolicyError, without the value, if it cannot be a value of this column. The error is a
    BeyondColumnError if the value is only too large or too fine.
    """
    if value is None:
        return None
    logical = leaf.logical
    try:
        return _CONVERTERS[logical.kind](leaf, logical, value)
    except (ValueError, ArithmeticError, TypeError, struct.error) as error:
        beyond = isinstance(error, _BeyondError | OverflowError | struct.error)
        wanted = _WANTED[logical.kind].format(
            width=leaf.width, logical=logical, zone="Z" if logical.is_utc else ""
        )
        # Two errors, because a comparison with a number that is only too large has an answer.
        refused = BeyondColumnError if beyond else PolicyError
        raise refused(
            f"the value is not one the column can hold, wanted {wanted}", column=leaf.name
        ) from None


_WANTED = {
    Kind.TEXT: "text",
    Kind.BYTES: "bytes, as text or as hex:00ff",
    Kind.INTEGER: "a whole number that fits {logical.bits} bits",
    Kind.FLOAT: "a number, such as 1.5",
    Kind.FLOAT16: "a number, such as 1.5",
    Kind.DECIMAL: "a decimal number with at most {logical.scale} digits after the point",
    Kind.DATE: "a date, such as 2024-03-01",
    Kind.TIME: "a time of the day, such as 10:00:00, no finer than the column's unit",
    Kind.TIMESTAMP: (
        "a timestamp, such as 2024-03-01T10:00:00{zone}, no finer than the column's unit"
    ),
    Kind.INT96: "a timestamp, such as 2024-03-01T10:00:00Z",
    Kind.UUID: "a UUID, such as 01234567-89ab-cdef-0123-456789abcdef",
    Kind.BOOLEAN: "true or false; BOOLEAN columns have no filter",
}


def _text(_leaf: Leaf, _logical: Logical, value: Any) -> tuple[bytes, ...]:
    if isinstance(value, bytes):
        return (value,)
    if not isinstance(value, str):
        raise _NotSuchAValueError
    return (value.encode(),)


def _bytes(leaf: Leaf, _logical: Logical, value: Any) -> tuple[bytes, ...]:
    if isinstance(value, str):
        value = bytes_of(value)
    if not isinstance(value, bytes):
        raise _NotSuchAValueError
    # FIXED_LEN_BYTE_ARRAY holds values of one length, so the value is certainly absent.
    if leaf.width not in (None, len(value)):
        raise _BeyondError
    return (value,)


def bytes_of(text: str) -> bytes:
    """Return the bytes that a text denotes: ``hex:00ff`` is two bytes, other texts are UTF-8.

    Raises ValueError for wrong digits.
    """
    if text.startswith("hex:"):
        return bytes.fromhex(text.removeprefix("hex:"))
    return text.encode()


def _integer(leaf: Leaf, logical: Logical, value: Any) -> tuple[bytes, ...]:
    number = _whole(value) if isinstance(value, str) else _number(value)
    # An infinity raises OverflowError in `int`, which counts as beyond the column; NaN is no
    # number.
    if number != int(number):
        raise _BeyondError
    number = int(number)
    # The bits that the column declares count: an INT8 is stored in 32 bits and holds no 1000.
    low = -(1 << (logical.bits - 1)) if logical.signed else 0
    if not low <= number < low + (1 << logical.bits):
        raise _BeyondError
    return (_low_bytes(number, leaf.width or 0),)


def _number(value: Any) -> Any:
    """Return a number of Python, numpy or another library. Raises ValueError for other values."""
    # To Python True is 1, and no user means that by it.  A value of another library's type need not
    # equal its own number, and would look like one that no column holds.
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise _NotSuchAValueError
    return value


def _whole(text: str) -> int:
    """Return the whole number in a text, also if it is written as 5.0 or 1e1.

    Raises _BeyondError for a number with a fraction, or too large for every integer type.
    """
    number = exact_number(text)
    # The exponent is checked before the digits are made: those of 1e999999999 fill the memory.
    too_large = bool(number) and number.adjusted() > _MOST_DIGITS
    if too_large or number != number.to_integral_value():
        raise _BeyondError
    return int(number)


def _low_bytes(number: int, width: int) -> bytes:
    """Return two's complement, little-endian. An unsigned integer is stored by its bits."""
    return (number & ((1 << (8 * width)) - 1)).to_bytes(width, "little")


_FLOAT_FORMATS = {2: "<e", 4: "<f", 8: "<d"}


def _float(leaf: Leaf, _logical: Logical, value: Any) -> tuple[bytes, ...] | None:
    number = floating_number(value) if isinstance(value, str) else float(_number(value))
    # No filter can answer for NaN: which of its many bit patterns a writer hashed is not known.
    if math.isnan(number):
        return None
    # Engines find the zeros equal, and a hash of their bits does not.
    if number == 0.0:
        form = _FLOAT_FORMATS[leaf.width or 0]
        return struct.pack(form, 0.0), struct.pack(form, -0.0)
    return (struct.pack(_FLOAT_FORMATS[leaf.width or 0], number),)


def _decimal(leaf: Leaf, logical: Logical, value: Any) -> tuple[bytes, ...]:
    if isinstance(value, str):
        number = exact_number(value)
    elif isinstance(value, Decimal) or hasattr(value, "__index__"):
        exact = _number(value)
        number = exact if isinstance(exact, Decimal) else Decimal(operator.index(exact))
    else:
        # Decimal(0.1) has 55 digits; who writes 0.1 means the number with one.
        number = shortest_decimal(_number(value))
    unscaled = number.scaleb(logical.scale, _EXACT)
    if unscaled != unscaled.to_integral_value():
        raise _BeyondError
    return _unscaled(leaf, int(unscaled))


def _unscaled(leaf: Leaf, number: int) -> tuple[bytes, ...]:
    # Little-endian here, big-endian in bytes: LogicalTypes.md, DECIMAL.
    if leaf.type in (Type.INT32, Type.INT64):
        return (number.to_bytes(leaf.width or 0, "little", signed=True),)
    if leaf.type is Type.FIXED_LEN_BYTE_ARRAY:
        return (number.to_bytes(leaf.width or 0, "big", signed=True),)
    # BYTE_ARRAY: the fewest bytes, as the format advises, or what some writers pad to.
    widths = {_signed_width(number), _signed_width(10 ** (leaf.decimal_digits or 1) - 1)}
    return tuple(number.to_bytes(width, "big", signed=True) for width in sorted(widths))


def _signed_width(number: int) -> int:
    """Return the smallest number of bytes that hold ``number`` in two's complement."""
    return (number if number >= 0 else ~number).bit_length() // 8 + 1


def _date(_leaf: Leaf, _logical: Logical, value: Any) -> tuple[bytes, ...]:
    if isinstance(value, datetime):
        # The instant at which the day begins. No other instant equals a date.
        nanos = _epoch_nanos(value, is_utc=False)
        return (struct.pack("<i", _in_units(nanos, _DAY)),)
    if isinstance(value, date):
        value = value.isoformat()
    if not isinstance(value, str):
        raise _NotSuchAValueError
    return (struct.pack("<i", day_number(value)),)


def _time(leaf: Leaf, logical: Logical, value: Any) -> tuple[bytes, ...]:
    text = value.isoformat() if isinstance(value, time) else value
    if not isinstance(text, str):
        raise _NotSuchAValueError
    nanos = timestamp_nanos(f"1970-01-01T{text}", is_utc=False)
    return (_low_bytes(_in_units(nanos, logical.unit), leaf.width or 0),)


def _timestamp(_leaf: Leaf, logical: Logical, value: Any) -> tuple[bytes, ...]:
    nanos = _epoch_nanos(value, is_utc=logical.is_utc)
    return (struct.pack("<q", _in_units(nanos, logical.unit)),)


def _int96(_leaf: Leaf, _logical: Logical, value: Any) -> tuple[bytes, ...]:
    # Spark and Hive mean an instant by INT96, although the file does not say so.
    days, nanos = divmod(_epoch_nanos(value, is_utc=True), _DAY)
    # Nanoseconds of the day (8 bytes) come before the Julian day (4), both little-endian.
    return (struct.pack("<qi", nanos, days + JULIAN_EPOCH),)


def _epoch_nanos(value: Any, *, is_utc: bool) -> int:
    """Return nanoseconds since the epoch.

    A text without a zone is UTC, or local time if the column has local times.
    """
    text = value.isoformat() if isinstance(value, date) else value
    if not isinstance(text, str):
        raise _NotSuchAValueError
    return timestamp_nanos(text, is_utc=is_utc)


def _in_units(nanos: int, unit: int) -> int:
    units, rest = divmod(nanos, unit)
    if rest:
        raise _BeyondError
    return units


def _uuid(leaf: Leaf, logical: Logical, value: Any) -> tuple[bytes, ...]:
    if isinstance(value, bytes) or (isinstance(value, str) and value.startswith("hex:")):
        return _bytes(leaf, logical, value)
    if not isinstance(value, str | UUID):
        raise _NotSuchAValueError
    # Big-endian, as RFC 4122 orders the fields (LogicalTypes.md, UUID), and not Microsoft's order.
    return ((value if isinstance(value, UUID) else UUID(value)).bytes,)


def _boolean(_leaf: Leaf, _logical: Logical, _value: Any) -> None:
    return None


_CONVERTERS: dict[Kind, Callable[[Leaf, Logical, Any], tuple[bytes, ...] | None]] = {
    Kind.TEXT: _text,
    Kind.BYTES: _bytes,
    Kind.INTEGER: _integer,
    Kind.FLOAT: _float,
    Kind.FLOAT16: _float,
    Kind.DECIMAL: _decimal,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _timestamp,
    Kind.INT96: _int96,
    Kind.UUID: _uuid,
    Kind.BOOLEAN: _boolean,
}
