"""Decode and encode the rows in Paimon's manifests: the values of a partition, and their bounds.

    number of fields (4, BE) | kind of the row (1) and a bit for each null field, padded to 8 bytes
    8 bytes a field, LE | a variable part, in words of 8 bytes

A text or bytes of at most 7 bytes is stored in its field, whose last byte is 0x80 plus the length.
A longer value is in the variable part. Its field has the offset, counted from the kind of the row,
in the upper 32 bits and the length in the lower 32 bits. Decimals beyond 18 digits and times beyond
milliseconds have a variable part, too.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final, TypeAlias

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.lakes.paimon.schema import AtomicType

#: The values of one type compare as the column's values do: texts and bytes as bytes, decimals as
#: unscaled numbers, timestamps as (milliseconds, nanoseconds).
Value: TypeAlias = Any
_WORD = 8
_SHORT_BYTES = 7
_MOST_COMPACT_DIGITS = 18
_DECIMAL_BYTES = 16
#: The kind of the row takes 8 bits before those of the nulls.
_HEADER_BITS = 8

_NUMBERS: Final = {
    "BOOLEAN": "<?",
    "TINYINT": "<b",
    "SMALLINT": "<h",
    "INT": "<i",
    "BIGINT": "<q",
    "FLOAT": "<f",
    "DOUBLE": "<d",
    "DATE": "<i",
    "TIME": "<i",
}
_TEXTS: Final = frozenset({"CHAR", "VARCHAR", "STRING", "BINARY", "VARBINARY", "BYTES"})
_TIMESTAMPS: Final = frozenset({"TIMESTAMP", "TIMESTAMP_LTZ"})


def decode_row(data: bytes, types: Sequence[AtomicType]) -> tuple[Value, ...]:
    """Return the values of a row, None for null. Raises FormatError for a damaged row."""
    if not types:
        return ()
    body, start = data[4:], _nulls_bytes(len(types))
    if data[:4] != len(types).to_bytes(4, "big") or len(body) < start + _WORD * len(types):
        raise FormatError(f"a row in a manifest does not have {len(types)} fields")
    values: list[Value] = []
    for position, kind in enumerate(types):
        bit = position + _HEADER_BITS
        if body[bit >> 3] >> (bit & 7) & 1:
            values.append(None)
            continue
        at = start + _WORD * position
        values.append(_decoded(body, body[at : at + _WORD], kind))
    return tuple(values)


def encode_row(values: Sequence[Value], types: Sequence[AtomicType]) -> bytes:
    """Return the row that :func:`decode_row` reads."""
    nulls = bytearray(_nulls_bytes(len(types)))
    words, variable = bytearray(), bytearray()
    end = len(nulls) + _WORD * len(types)
    for position, (value, kind) in enumerate(zip(values, types, strict=True)):
        if value is None:
            bit = position + _HEADER_BITS
            nulls[bit >> 3] |= 1 << (bit & 7)
            words += bytes(_WORD)
            continue
        word, more = _encoded(value, kind, end + len(variable))
        words += word
        variable += more
    return len(types).to_bytes(4, "big") + bytes(nulls + words + variable)


def present_fields(data: bytes) -> list[bool]:
    """Return for each field of a row whether it has a value. Types are not needed."""
    count = int.from_bytes(data[:4], "big")
    nulls = data[4 : 4 + _nulls_bytes(count)] if count <= 8 * len(data) else b""
    if len(data) < 4 or len(nulls) < _nulls_bytes(count):
        raise FormatError("a row in a manifest is cut short")
    bits = range(_HEADER_BITS, _HEADER_BITS + count)
    return [not nulls[bit >> 3] >> (bit & 7) & 1 for bit in bits]


def bounds(
    rows: Sequence[Sequence[Value]], types: Sequence[AtomicType]
) -> tuple[bytes, bytes, list[int]]:
    """Return a row of minima and a row of maxima, both encoded, and each field's null count."""
    least, greatest, nulls = [], [], []
    for column in zip(*rows, strict=True) if types else ():
        present = [value for value in column if value is not None]
        least.append(min(present, default=None))
        greatest.append(max(present, default=None))
        nulls.append(len(column) - len(present))
    return encode_row(least, types), encode_row(greatest, types), nulls


def _nulls_bytes(fields: int) -> int:
    return (fields + _HEADER_BITS + 63) // 64 * _WORD


def _decoded(body: bytes, word: bytes, kind: AtomicType) -> Value:
    if kind.root in _NUMBERS:
        return struct.unpack_from(_NUMBERS[kind.root], word)[0]
    if kind.root in _TEXTS:
        size = word[_WORD - 1]
        if size & 0x80:
            return word[: size & 0x7F]
        return _slice(body, *_place(word))
    if kind.root == "DECIMAL":
        if _is_compact(kind):
            return int.from_bytes(word, "little", signed=True)
        return int.from_bytes(_slice(body, *_place(word)), "big", signed=True)
    if kind.root in _TIMESTAMPS:
        if kind.precision <= 3:
            return int.from_bytes(word, "little", signed=True), 0
        at, nanos = _place(word)
        return int.from_bytes(_slice(body, at, _WORD), "little", signed=True), nanos
    raise _unknown(kind)


def _encoded(value: Value, kind: AtomicType, end: int) -> tuple[bytes, bytes]:
    """Return the word of a field, and the bytes of its value in the variable part, if any.

    These bytes begin at the offset ``end``.
    """
    if kind.root in _NUMBERS:
        return struct.pack(_NUMBERS[kind.root], value).ljust(_WORD, b"\0"), b""
    if kind.root in _TEXTS:
        if len(value) <= _SHORT_BYTES:
            return value.ljust(_WORD - 1, b"\0") + bytes([0x80 | len(value)]), b""
        return _word_of(end, len(value)), value + bytes(-len(value) % _WORD)
    if kind.root == "DECIMAL":
        if _is_compact(kind):
            return value.to_bytes(_WORD, "little", signed=True), b""
        content = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
        return _word_of(end, len(content)), content.ljust(_DECIMAL_BYTES, b"\0")
    if kind.root in _TIMESTAMPS:
        millis, nanos = value
        stored = millis.to_bytes(_WORD, "little", signed=True)
        return (stored, b"") if kind.precision <= 3 else (_word_of(end, nanos), stored)
    raise _unknown(kind)


def _is_compact(kind: AtomicType) -> bool:
    # A decimal without a precision has 10 digits.
    return (kind.length or 10) <= _MOST_COMPACT_DIGITS


def _place(word: bytes) -> tuple[int, int]:
    number = int.from_bytes(word, "little")
    return number >> 32, number & 0xFFFFFFFF


def _word_of(offset: int, size: int) -> bytes:
    return (offset << 32 | size).to_bytes(_WORD, "little")


def _slice(body: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(body):
        raise FormatError("a field of a row in a manifest is beyond the row's end")
    return body[offset : offset + size]


def _unknown(kind: AtomicType) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"a partition column of type {kind.root} is not read here")


def decimal_of(unscaled: int, kind: AtomicType) -> Decimal:
    """Return the decimal with this unscaled value."""
    return Decimal(unscaled).scaleb(-kind.scale, Context(prec=76))


def _date(value: Value, _: AtomicType) -> str:
    return (date(1970, 1, 1) + timedelta(days=value)).isoformat()


def _moment(value: Value) -> datetime:
    return datetime(1970, 1, 1) + timedelta(milliseconds=value[0])


def _java_time(value: Value, _: AtomicType) -> str:
    """Return a timestamp as Java's LocalDateTime writes it: without zeros that it can leave out."""
    moment, nanos = _moment(value), value[0] % 1000 * 1_000_000 + value[1]
    shown = moment.strftime("%Y-%m-%dT%H:%M")
    if moment.second or nanos:
        shown += f":{moment.second:02}"
    digits = f"{nanos:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{shown}.{digits}" if digits else shown


def _sql_timestamp(value: Value, kind: AtomicType) -> str:
    return _sql_shown(_moment(value), value, kind)


def _local_timestamp(value: Value, kind: AtomicType) -> str:
    """Return a timestamp in the time zone of this process, as Paimon does in its own processes."""
    return _sql_shown(_moment(value).replace(tzinfo=UTC).astimezone(), value, kind)


def _sql_shown(moment: datetime, value: Value, kind: AtomicType) -> str:
    nanos = value[0] % 1000 * 1_000_000 + value[1]
    digits = f"{nanos:09}".rstrip("0").ljust(kind.precision, "0")
    return f"{moment:%Y-%m-%d %H:%M:%S}" + (f".{digits}" if digits else "")


def _sql_time(value: Value, kind: AtomicType) -> str:
    """Return a time of the day as Paimon in Java casts it: with a fraction, which may be one 0."""
    # A time without a precision has 0.
    digits = f"{value % 1000:03}"[: kind.length or 0].rstrip("0")
    shown = f"{timedelta(seconds=value // 1000)}".zfill(len("00:00:00"))
    return f"{shown}.{digits or 0}" if kind.length else shown


def _java_number(value: Value, kind: AtomicType) -> str:
    """Return a float as Java writes it: the fewest digits that identify it, but at least two."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "-Infinity" if value < 0 else "Infinity"
    form = _NUMBERS[kind.root]
    shown = next(
        text
        for text in (f"{value:.{digits}e}" for digits in range(17))
        if struct.unpack(form, struct.pack(form, float(text)))[0] == value
    )
    mantissa, _, exponent = shown.partition("e")
    power = int(exponent)
    if value == 0 or -3 <= power < 7:
        plain = f"{Decimal(shown):f}"
        return plain if "." in plain else f"{plain}.0"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{power}"


def _utf8(value: Value, _: AtomicType) -> str:
    found: str = value.decode("utf-8", "strict")
    return found


def _plain(value: Value, _: AtomicType) -> str:
    return str(value)


_ShownAs: TypeAlias = Callable[[Value, AtomicType], str]
_PART: Final[Mapping[str, _ShownAs]] = {
    "BOOLEAN": lambda value, _: "true" if value else "false",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), _plain),
    **dict.fromkeys(("CHAR", "VARCHAR", "STRING"), _utf8),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _java_number),
    "DECIMAL": lambda value, kind: f"{decimal_of(value, kind):f}",
}
#: By ``partition.legacy-name``. Paimon names folders of binary partitions by an address in memory
#: with legacy names.
_PARTS: Final[Mapping[bool, Mapping[str, _ShownAs]]] = {
    True: {
        **_PART,
        **dict.fromkeys(("DATE", "TIME"), _plain),
        **dict.fromkeys(_TIMESTAMPS, _java_time),
    },
    False: {
        **_PART,
        "DATE": _date,
        "TIME": _sql_time,
        "TIMESTAMP": _sql_timestamp,
        "TIMESTAMP_LTZ": _local_timestamp,
        **dict.fromkeys(("BINARY", "VARBINARY", "BYTES"), _utf8),
    },
}


def text_of(value: Value, kind: AtomicType, *, legacy: bool) -> str:
    """Return a value as it is written in the name of a partition's folder.

    With ``legacy``, Paimon's default, a date is written as the number of days after 1970.
    """
    shown = _PARTS[legacy].get(kind.root)
    if shown is None:
        raise UnsupportedFeatureError(
            f"the table is partitioned by a column of type {kind.root}, whose folders have names "
            "that are not known here",
            hint="read the table with its own engine",
        )
    try:
        return shown(value, kind)
    except (UnicodeDecodeError, OverflowError) as exc:
        raise FormatError("a partition value is not valid for the type of its column") from exc
