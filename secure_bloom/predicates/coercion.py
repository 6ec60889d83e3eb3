"""Convert a value to a column's type without rounding: to the greatest value not above it.

    2.5 among integers           2, not exact
    3 among integers             3, exact
    -1 among unsigned integers   none: all values of the type are above it

Numbers are compared as in mathematics.  Two rules say which number a value means. In a FLOAT or
DOUBLE column it means the nearest double. In a DECIMAL column a double means the shortest decimal
number that prints it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import ROUND_FLOOR, Context, Decimal
from numbers import Real
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.errors import PolicyError
from secure_bloom.parquet.literals import bytes_of
from secure_bloom.parquet.texts import (
    SECOND,
    TICKS,
    day_number,
    duration_nanos,
    exact_number,
    floating_number,
    shortest_decimal,
    timestamp_nanos,
)
from secure_bloom.predicates.tree import Numeral

_DAY = 86_400 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Coerced:
    """The place of a value among the values of a type.

    ``floor`` is the greatest value of the type that is not above the given value, or None if all
    are above it.  ``is_exact`` says that ``floor`` equals the given value.  A NaN is neither above
    nor below any value.
    """

    floor: pa.Scalar | None = field(repr=False)
    is_exact: bool
    is_nan: bool = False


_NAN = Coerced(floor=None, is_exact=False, is_nan=True)


def coerced_values(column: str, wanted: pa.DataType, values: Iterable[object]) -> list[Coerced]:
    """Return ``values`` in the type ``wanted``.

    Raises PolicyError, without values, for values of other kinds.
    """
    coerce = next((coerce for accepts, coerce in _COERCIONS if accepts(wanted)), _other)
    try:
        return [coerce(value, wanted) for value in values]
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError):
        raise PolicyError(
            f"the value is not one that the column can hold, wanted {wanted}",
            hint=_spelling_hint(wanted),
            column=column,
        ) from None


def _exactly(value: object, wanted: pa.DataType) -> Coerced:
    return Coerced(floor=pa.scalar(value, wanted), is_exact=True)


def _other(value: object, wanted: pa.DataType) -> Coerced:
    return _exactly(_held(value), wanted)


def _held(value: object) -> Any:
    """Return the value inside a pyarrow scalar, or any other value unchanged."""
    return value.as_py() if isinstance(value, pa.Scalar) else value


def _text(value: object, wanted: pa.DataType) -> Coerced:
    held = _held(value)
    if not isinstance(held, str) or isinstance(held, Numeral):
        raise TypeError
    return _exactly(held, wanted)


def _binary(value: object, wanted: pa.DataType) -> Coerced:
    return _exactly(_bytes(value, is_uuid=False), wanted)


def _fixed_binary(value: object, wanted: pa.DataType) -> Coerced:
    """Return the place of bytes among bytes of one fixed length, in the order of bytes."""
    width = wanted.byte_width
    given = _bytes(value, is_uuid=width == 16)
    if len(given) >= width:
        return Coerced(floor=pa.scalar(given[:width], wanted), is_exact=len(given) == width)
    # Filled up with zeros it is the least value above the given one; the floor is one less.
    above = int.from_bytes(given.ljust(width, b"\0"))
    floor = pa.scalar((above - 1).to_bytes(width), wanted) if above else None
    return Coerced(floor=floor, is_exact=False)


def _bytes(value: object, *, is_uuid: bool) -> bytes:
    """Return the bytes of ``hex:00ff``, of a UUID if the type has 16 bytes, or of a text."""
    held = _held(value)
    if isinstance(held, UUID):
        return held.bytes
    if isinstance(held, str):
        is_uuid = is_uuid and not held.startswith("hex:") and len(held.encode()) != 16
        return UUID(held).bytes if is_uuid else bytes_of(held)
    if not isinstance(held, bytes):
        raise TypeError
    return held


_BOOLEANS = {"true": True, "false": False}


def _boolean(value: object, wanted: pa.DataType) -> Coerced:
    held = _held(value)
    if isinstance(held, str):
        held = _BOOLEANS.get(held.lower())
    if not isinstance(held, bool | np.bool_):
        raise TypeError
    return _exactly(bool(held), wanted)


def _number(value: object) -> int | float | Decimal:
    held = _held(value)
    if isinstance(held, bool | np.bool_):
        raise TypeError
    if isinstance(held, str):
        try:
            return exact_number(held)
        except ValueError:
            # The name of an infinity, or of NaN.
            return floating_number(held)
    if isinstance(held, float | Decimal):
        return held
    if not isinstance(held, Real):
        # `float` also takes bytes, and the real part of a complex number.
        raise TypeError
    if hasattr(held, "__index__"):
        return operator.index(held)
    # A fraction, or a number that is longer than a double, may be whole without being a double.
    real: Any = held
    return int(real) if math.isfinite(real) and real == int(real) else float(real)


def _integer(value: object, wanted: pa.DataType) -> Coerced:
    number = _number(value)
    signed = pa.types.is_signed_integer(wanted)
    low = -(1 << (wanted.bit_width - 1)) if signed else 0
    return _among(number, low, low + (1 << wanted.bit_width) - 1, wanted, math.floor)


def _among(
    number: int | float | Decimal,
    low: int | Decimal,
    high: int | Decimal,
    wanted: pa.DataType,
    floor: Callable[[Any], int | Decimal],
) -> Coerced:
    """Return the place of a number among the values of a type, from ``low`` to ``high``.

    ``floor`` rounds a number down to a value of the type.
    """
    if number != number:
        return _NAN
    if number < low:
        return Coerced(floor=None, is_exact=False)
    # Do not round numbers above the range: 1e999999999 has more digits than there is memory.
    found = high if number > high else floor(number)
    return Coerced(floor=pa.scalar(found, wanted), is_exact=found == number)


def _decimal(value: object, wanted: pa.DataType) -> Coerced:
    number = _number(value)
    exact = shortest_decimal(number) if isinstance(number, float) else Decimal(number)
    ulp = Decimal(1).scaleb(-wanted.scale)
    high = Decimal(10**wanted.precision - 1).scaleb(-wanted.scale, _WIDE)
    # The minus sign would round to the 28 digits of the default context.
    low = _WIDE.minus(high)
    return _among(exact, low, high, wanted, lambda n: n.quantize(ulp, ROUND_FLOOR, _WIDE))


#: Wide enough for any decimal type.
_WIDE = Context(prec=200)
_FLOATS: dict[int, Any] = {16: np.float16, 32: np.float32, 64: np.float64}


def _float(value: object, wanted: pa.DataType) -> Coerced:
    number = _number(value)
    double = float(Decimal(number)) if isinstance(number, int) else float(number)
    if math.isnan(double):
        return _NAN
    kind = _FLOATS[wanted.bit_width]
    with np.errstate(over="ignore"):
        nearest = kind(double)
    # A finite number that overflows to an infinity is below that infinity, not equal to it.
    is_beyond = math.isinf(double) and Decimal(number).is_finite()
    if float(nearest) > double or (is_beyond and double > 0):
        nearest = np.nextafter(nearest, kind(-math.inf))
    is_exact = float(nearest) == double and not is_beyond
    return Coerced(floor=pa.scalar(nearest, wanted), is_exact=is_exact)


def _date(value: object, wanted: pa.DataType) -> Coerced:
    if isinstance(value, pa.Scalar) and pa.types.is_date(value.type):
        return _among_ticks(_epoch_nanos(value, is_utc=False), _DAY, wanted)
    is_instant = pa.types.is_timestamp(value.type) if isinstance(value, pa.Scalar) else False
    held = value if is_instant else _held(value)
    if is_instant or isinstance(held, datetime):
        return _among_ticks(_epoch_nanos(held, is_utc=False), _DAY, wanted)
    text = held.isoformat() if isinstance(held, date) else held
    if not isinstance(text, str):
        raise TypeError
    return _among_ticks(day_number(text) * _DAY, _DAY, wanted)


#: Nanoseconds of what a date of this many bits counts.
_DATE_TICKS = {32: _DAY, 64: TICKS["ms"]}


def _time(value: object, wanted: pa.DataType) -> Coerced:
    if isinstance(value, pa.Scalar) and pa.types.is_time(value.type):
        nanos = value.value * TICKS[value.type.unit]
    else:
        held = _held(value)
        text = held.isoformat() if isinstance(held, time) else held
        if not isinstance(text, str):
            raise TypeError
        # pyarrow parses timestamps from texts, but no times.
        nanos = _parsed(f"1970-01-01T{text}", is_utc=False)
    return _among_ticks(nanos, TICKS[wanted.unit], wanted)


def _timestamp(value: object, wanted: pa.DataType) -> Coerced:
    nanos = _epoch_nanos(value, is_utc=wanted.tz is not None)
    return _among_ticks(nanos, TICKS[wanted.unit], wanted)


def _epoch_nanos(value: object, *, is_utc: bool) -> int:
    """Return nanoseconds since 1970. A time without a zone is UTC.

    Raises TypeError for a zone unless ``is_utc``.
    """
    if isinstance(value, pa.Scalar) and pa.types.is_timestamp(value.type):
        if value.type.tz is not None and not is_utc:
            raise TypeError
        nanos: int = value.value * TICKS[value.type.unit]
        return nanos
    if isinstance(value, pa.Scalar) and pa.types.is_date(value.type):
        return int(value.value) * _DATE_TICKS[value.type.bit_width]
    held = _held(value)
    text = held.isoformat() if isinstance(held, date) else held
    if not isinstance(text, str):
        raise TypeError
    return _parsed(text, is_utc=is_utc)


def _parsed(text: str, *, is_utc: bool) -> int:
    """Return the nanoseconds of a text.

    Pyarrow parses it in microseconds if nanoseconds overflow.
    """
    for unit in ("ns", "us"):
        for zone in (None, "UTC") if is_utc else (None,):
            try:
                return int(pc.cast(pa.scalar(text), pa.timestamp(unit, zone)).value) * TICKS[unit]
            except pa.ArrowInvalid:
                continue
    # pyarrow reads instants up to the year 9999, in nanoseconds up to 2262; later ones are read
    # here.
    return timestamp_nanos(text, is_utc=is_utc)


def _duration(value: object, wanted: pa.DataType) -> Coerced:
    if isinstance(value, str):
        nanos = duration_nanos(value)
    else:
        scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
        if not pa.types.is_duration(scalar.type):
            raise TypeError
        nanos = scalar.value * TICKS[scalar.type.unit]
    return _among_ticks(nanos, TICKS[wanted.unit], wanted)


def _among_ticks(nanos: int, tick: int, wanted: pa.DataType) -> Coerced:
    """Return the place of an instant or duration among the multiples of ``tick`` nanoseconds."""
    ticks, rest = divmod(nanos, tick)
    low = -(1 << (wanted.bit_width - 1))
    place = _among(ticks, low, -low - 1, pa.int64(), int)
    floor = None if place.floor is None else _of_ticks(place.floor.as_py(), wanted)
    return Coerced(floor=floor, is_exact=place.is_exact and rest == 0)


def _of_ticks(ticks: int, wanted: pa.DataType) -> pa.Scalar:
    # date64 counts milliseconds, but only whole days are values of it.
    return pa.scalar(ticks * 86_400_000 if wanted == pa.date64() else ticks, wanted)


def is_text(of: pa.DataType) -> bool:
    """Return whether the values of a type are texts."""
    checks = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view
    return any(check(of) for check in checks)


def is_binary(of: pa.DataType) -> bool:
    """Return whether the values of a type are bytes, whatever their length."""
    checks = pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view
    return any(check(of) for check in checks)


_COERCIONS: list[tuple[Callable[[pa.DataType], bool], Callable[[object, pa.DataType], Coerced]]] = [
    (is_text, _text),
    (is_binary, _binary),
    (pa.types.is_fixed_size_binary, _fixed_binary),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _float),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_date, _date),
    (pa.types.is_time, _time),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_duration, _duration),
]

_OF_A_MONTH = "; a month is >= its first day and < that of the next month"
_TEXT = "a text in quotes: '5'"
_EXAMPLES: list[tuple[Callable[[pa.DataType], bool], str]] = [
    (pa.types.is_string, _TEXT),
    (pa.types.is_large_string, _TEXT),
    (pa.types.is_string_view, _TEXT),
    (pa.types.is_boolean, "true or false"),
    (pa.types.is_integer, "12 or -12"),
    (pa.types.is_floating, "1.5, -2e-3 or inf"),
    (pa.types.is_decimal, "1.50"),
    (pa.types.is_date, f"2024-03-01{_OF_A_MONTH}"),
    (pa.types.is_time, "10:30:00"),
    (pa.types.is_duration, "PT1H30M or P2DT0.5S (ISO 8601)"),
    (
        lambda t: pa.types.is_timestamp(t) and t.tz is None,
        f"2024-03-01T10:30:00, without a zone; an instant (INT96) in UTC{_OF_A_MONTH}",
    ),
    (pa.types.is_timestamp, f"2024-03-01T10:30:00Z{_OF_A_MONTH}"),
    (pa.types.is_fixed_size_binary, "text, hex:00ff or, of 16 bytes, a UUID"),
]


def _spelling_hint(of: pa.DataType) -> str | None:
    """Return an example of a value of the type in a condition.

    Return None if it may be written in many ways.
    """
    example = next((text for accepts, text in _EXAMPLES if accepts(of)), None)
    return None if example is None else f"write it as {example}"
