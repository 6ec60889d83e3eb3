"""The type that holds every value of several types: for a column whose type differs by file.

    int, uint                 the int that holds both; decimal(20, 0) where none does
    int, float                float of 16 bits of integer or fewer, double of 32
    int, decimal              a decimal with digits for both, 76 at most
    decimal, decimal          the same
    float, float              the longer
    text, text                large_string;  binary, binary  the longer offsets
    text, binary              binary;  fixed-size binary, any binary  binary
    date, date                date64
    timestamp, timestamp      the finer unit, UTC where zones differ
    date, local timestamp     the timestamp: midnight
    time, time                the finer unit;  duration, duration  the same
    dictionary, any           of the dictionary's values
    extension, any            of the extension's storage
    list, list                a list of that type;  map and struct the same, members by name
    null, any                 that

Other pairs have no common type: a date is not an instant, an instant is not a local time, and a
double holds neither all 64-bit integers nor the decimal 0.1.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence

import pyarrow as pa

_UNITS = ["s", "ms", "us", "ns"]
#: The decimal digits of integers, by their bits.
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}
#: Bits of an integer -> the shortest float that holds all of them.
_FLOATS_OF = {8: pa.float16(), 16: pa.float32(), 32: pa.float64()}


class ClashError(ValueError):
    """Types have no common type. ``path`` leads to them, below the column."""

    def __init__(self, types: Sequence[pa.DataType], path: tuple[str, ...] = ()) -> None:
        super().__init__(f"no type holds all values of {', '.join(map(str, types))}")
        self.types, self.path = types, path


class _Family(enum.Enum):
    """Types that share rules of promotion."""

    INTEGER = enum.auto()
    FLOAT = enum.auto()
    DECIMAL = enum.auto()
    TEXT = enum.auto()
    BINARY = enum.auto()
    FIXED_BINARY = enum.auto()
    DATE = enum.auto()
    TIMESTAMP = enum.auto()
    TIME = enum.auto()
    DURATION = enum.auto()
    LIST = enum.auto()
    MAP = enum.auto()
    STRUCT = enum.auto()


_FAMILIES: dict[_Family, Sequence[Callable[[pa.DataType], bool]]] = {
    _Family.INTEGER: [pa.types.is_integer],
    _Family.FLOAT: [pa.types.is_floating],
    _Family.DECIMAL: [pa.types.is_decimal],
    _Family.TEXT: [pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view],
    _Family.BINARY: [pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view],
    _Family.FIXED_BINARY: [pa.types.is_fixed_size_binary],
    _Family.DATE: [pa.types.is_date],
    _Family.TIMESTAMP: [pa.types.is_timestamp],
    _Family.TIME: [pa.types.is_time],
    _Family.DURATION: [pa.types.is_duration],
    _Family.LIST: [pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list],
    _Family.MAP: [pa.types.is_map],
    _Family.STRUCT: [pa.types.is_struct],
}


def common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type that has all values of all ``types``, in any order.

    Raises ClashError if there is none.
    """
    valued = [of for of in dict.fromkeys(types) if not pa.types.is_null(of)]
    if len(valued) < 2:
        return valued[0] if valued else types[0]
    plain = list(dict.fromkeys(map(plain_type, valued)))
    family = _family(plain[0])
    if family in _NESTED and all(_family(of) is family for of in plain):
        return _NESTED[family](plain)
    try:
        # In a fixed order: which two of three types come first may decide whether the third fits.
        return functools.reduce(_pair, sorted(plain, key=_rank))
    except LookupError:
        raise ClashError(valued) from None


def common_fields(rows: Sequence[Sequence[pa.Field]]) -> list[pa.Field]:
    """Return the fields of all rows by name, in the order of their first occurrence.

    A field may be null if some row lacks it.  Raises ClashError for a name whose types have no
    common type.
    """
    named: dict[str, list[pa.Field]] = {}
    for row in rows:
        for field in row:
            named.setdefault(field.name, []).append(field)
    return [_field(fields, lacking=len(fields) < len(rows)) for fields in named.values()]


def _field(fields: Sequence[pa.Field], *, lacking: bool = False) -> pa.Field:
    try:
        found = common_type([field.type for field in fields])
    except ClashError as clash:
        raise ClashError(clash.types, (fields[0].name, *clash.path)) from None
    nullable = lacking or any(field.nullable for field in fields)
    return fields[0].with_type(found).with_nullable(nullable)


def _pair(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the common type of two types. Raises LookupError if there is none."""
    found = None
    for one, other in ((left, right), (right, left)):
        join = _JOINS.get((_family(one), _family(other)))
        found = found or (join(one, other) if join else None)
    if found is None:
        raise LookupError
    return found


def plain_type(of: pa.DataType) -> pa.DataType:
    """Return the type of the values themselves, without extension and dictionary."""
    if isinstance(of, pa.BaseExtensionType):
        return plain_type(of.storage_type)
    return plain_type(of.value_type) if pa.types.is_dictionary(of) else of


def _family(of: pa.DataType) -> _Family | None:
    found = (name for name, checks in _FAMILIES.items() if any(check(of) for check in checks))
    return next(found, None)


def _rank(of: pa.DataType) -> tuple[bool, bool, str]:
    """Return a sort key that puts integers, and binary values of one length, last.

    If these types came earlier, they could be promoted to a type that a third type cannot join.
    """
    return pa.types.is_integer(of), pa.types.is_fixed_size_binary(of), str(of)


def _integers(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    signed = [of.bit_width for of in (left, right) if pa.types.is_signed_integer(of)]
    unsigned = [of.bit_width for of in (left, right) if pa.types.is_unsigned_integer(of)]
    if not signed:
        return _UNSIGNED[max(unsigned)]
    # An unsigned integer of 64 bits has no signed one that is longer.
    bits = max(*signed, *(2 * width for width in unsigned), 8)
    return _SIGNED.get(bits, pa.decimal128(_DIGITS[64], 0))


def _integer_and_float(integer: pa.DataType, real: pa.DataType) -> pa.DataType | None:
    shortest = _FLOATS_OF.get(integer.bit_width)
    return None if shortest is None else _floats(shortest, real)


def _floats(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    return max(left, right, key=lambda of: of.bit_width)


def _integer_and_decimal(integer: pa.DataType, decimal: pa.DataType) -> pa.DataType | None:
    return _decimals(pa.decimal128(_DIGITS[integer.bit_width], 0), decimal)


def _decimals(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    kind = next((kind for most, kind in _DECIMALS.items() if precision <= most), None)
    return None if kind is None else kind(precision, scale)


_DECIMALS: dict[int, Callable[[int, int], pa.DataType]] = {38: pa.decimal128, 76: pa.decimal256}


def _texts(_left: pa.DataType, _right: pa.DataType) -> pa.DataType:
    return pa.large_string()


def _binaries(_left: pa.DataType, _right: pa.DataType) -> pa.DataType:
    return pa.large_binary()


def _text_and_binary(text: pa.DataType, binary: pa.DataType) -> pa.DataType:
    is_short = pa.types.is_string(text) and not pa.types.is_large_binary(binary)
    return pa.binary() if is_short else pa.large_binary()


def _binary_and_fixed(binary: pa.DataType, _fixed: pa.DataType) -> pa.DataType:
    return binary


def _fixed_binaries(_left: pa.DataType, _right: pa.DataType) -> pa.DataType:
    return pa.binary()


def _dates(_left: pa.DataType, _right: pa.DataType) -> pa.DataType:
    return pa.date64()


def _finer(left: pa.DataType, right: pa.DataType) -> str:
    return _UNITS[max(_UNITS.index(of.unit) for of in (left, right))]


def _timestamps(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if (left.tz is None) != (right.tz is None):
        return None
    return pa.timestamp(_finer(left, right), left.tz if left.tz == right.tz else "UTC")


def _date_and_timestamp(_date: pa.DataType, timestamp: pa.DataType) -> pa.DataType | None:
    return timestamp if timestamp.tz is None else None


def in_utc(field: pa.Field) -> pa.Field:
    """Return the field with UTC in place of no zone, in members and elements too."""

    def changed(of: pa.DataType) -> pa.DataType:
        is_local = pa.types.is_timestamp(of) and of.tz is None
        return pa.timestamp(of.unit, "UTC") if is_local else of

    return field.with_type(with_leaves(field.type, changed))


def with_leaves(of: pa.DataType, changed: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return the type with each leaf changed, also in members and elements."""

    def inner(field: pa.Field) -> pa.Field:
        return field.with_type(with_leaves(field.type, changed))

    if pa.types.is_struct(of):
        return pa.struct([inner(member) for member in of])
    if pa.types.is_map(of):
        return pa.map_(inner(of.key_field), inner(of.item_field))
    if pa.types.is_large_list(of):
        return pa.large_list(inner(of.value_field))
    if pa.types.is_fixed_size_list(of):
        return pa.list_(inner(of.value_field), of.list_size)
    return pa.list_(inner(of.value_field)) if pa.types.is_list(of) else changed(of)


def _times(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    unit = _finer(left, right)
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def _durations(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    return pa.duration(_finer(left, right))


def _lists(types: Sequence[pa.DataType]) -> pa.DataType:
    item = _field([of.value_field for of in types])
    sizes = {of.list_size if pa.types.is_fixed_size_list(of) else None for of in types}
    if len(sizes) == 1 and None not in sizes:
        return pa.list_(item, *sizes)
    return pa.large_list(item) if any(map(pa.types.is_large_list, types)) else pa.list_(item)


def _maps(types: Sequence[pa.DataType]) -> pa.DataType:
    return pa.map_(_field([of.key_field for of in types]), _field([of.item_field for of in types]))


def _structs(types: Sequence[pa.DataType]) -> pa.DataType:
    if any(len({field.name for field in of}) < of.num_fields for of in types):
        # If two members have one name, nobody knows which one is meant.
        raise ClashError(types)
    return pa.struct(common_fields([list(of) for of in types]))


_NESTED: dict[_Family | None, Callable[[Sequence[pa.DataType]], pa.DataType]] = {
    _Family.LIST: _lists,
    _Family.MAP: _maps,
    _Family.STRUCT: _structs,
}
_JOINS: dict[
    tuple[_Family | None, _Family | None],
    Callable[[pa.DataType, pa.DataType], pa.DataType | None],
] = {
    (_Family.INTEGER, _Family.INTEGER): _integers,
    (_Family.INTEGER, _Family.FLOAT): _integer_and_float,
    (_Family.INTEGER, _Family.DECIMAL): _integer_and_decimal,
    (_Family.FLOAT, _Family.FLOAT): _floats,
    (_Family.DECIMAL, _Family.DECIMAL): _decimals,
    (_Family.TEXT, _Family.TEXT): _texts,
    (_Family.TEXT, _Family.BINARY): _text_and_binary,
    (_Family.BINARY, _Family.BINARY): _binaries,
    (_Family.BINARY, _Family.FIXED_BINARY): _binary_and_fixed,
    (_Family.FIXED_BINARY, _Family.FIXED_BINARY): _fixed_binaries,
    (_Family.DATE, _Family.DATE): _dates,
    (_Family.TIMESTAMP, _Family.TIMESTAMP): _timestamps,
    (_Family.DATE, _Family.TIMESTAMP): _date_and_timestamp,
    (_Family.TIME, _Family.TIME): _times,
    (_Family.DURATION, _Family.DURATION): _durations,
}
