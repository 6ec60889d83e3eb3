"""A Parquet file's columns as Paimon sees them: their types, and the hashes of what is stored.

Paimon hashes logical values, a file stores physical ones.  The values of a file and those that are
looked for go from their physical form to the hash by one table, so that they cannot differ.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.paimon.data_types import (
    MAX_MILLIS_PRECISION,
    DataType,
    Hashed,
    TypeRoot,
    float_bits,
)
from secure_bloom.paimon.hashing import signed
from secure_bloom.parquet.literals import BeyondColumnError, physical_values, whole_value
from secure_bloom.parquet.logical_types import JULIAN_EPOCH, Kind, Logical, describe, logical_type
from secure_bloom.parquet.schema import Leaf, unknown_column
from secure_bloom.parquet.structures.metadata import (
    ConvertedType,
    FieldRepetitionType,
    SchemaElement,
    Type,
)

DAY_MICROS = 86_400_000_000
_NANOS_PER_MILLI, _NANOS_PER_MICRO = 1_000_000, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedColumn:
    """A column that an index can have: ``value`` is the ordinal of its leaf.

    For the key of a map, ``m[k]``, ``key`` is the ordinal of the leaf of keys, and ``map_key`` the
    text ``k``.
    """

    name: str
    value: int
    key: int | None = None
    map_key: str | None = None

    @property
    def ordinals(self) -> tuple[int, ...]:
        """The leaves that are read for it."""
        return (self.value,) if self.key is None else (self.key, self.value)


def find_column(leaves: tuple[Leaf, ...], name: str) -> IndexedColumn:
    """The column that Paimon calls ``name``: a top-level one, or the key of a map.

    PolicyError for one that is not there, UnsupportedFeatureError for one that has no filter.
    """
    found = _find(leaves, name)
    if found is not None:
        require_hashable(leaves[found.value])
        return found
    if any(leaf.path[0] == name for leaf in leaves):
        raise UnsupportedFeatureError(
            f"column {name} is nested, which Paimon gives no Bloom filter",
            hint="of a map with text keys one key can have one: name it as m[k]",
        )
    raise unknown_column(name, (leaf.path[0] for leaf in leaves))


def stored_leaf(leaves: tuple[Leaf, ...], name: str) -> Leaf | None:
    """The leaf of the values of a column, hashable or not; None for one that is not there."""
    found = _find(leaves, name)
    return None if found is None else leaves[found.value]


def _find(leaves: tuple[Leaf, ...], name: str) -> IndexedColumn | None:
    for ordinal, leaf in enumerate(leaves):
        if leaf.path == (name,) and not leaf.is_repeated:
            return IndexedColumn(name=name, value=ordinal)
    return _find_map_key(leaves, name)


def _find_map_key(leaves: tuple[Leaf, ...], name: str) -> IndexedColumn | None:
    map_name, bracket, rest = name.partition("[")
    if not (bracket and rest.endswith("]")):
        return None
    below = [i for i, leaf in enumerate(leaves) if leaf.path[0] == map_name]
    if len(below) != 2 or not all(_is_map_leaf(leaves[i]) for i in below):
        return None
    key, value = below
    if logical_type(leaves[key].element).kind is not Kind.TEXT:
        return None
    return IndexedColumn(name=name, value=value, key=key, map_key=rest[:-1])


def _is_map_leaf(leaf: Leaf) -> bool:
    """Whether its path is that of a key or value: ``m.key_value.key``, only the middle repeated."""
    repeated = [it is FieldRepetitionType.REPEATED for it in leaf.repetitions]
    return repeated == [False, True, False]


def require_hashable(leaf: Leaf) -> None:
    """Raise UnsupportedFeatureError for a column whose values Paimon does not hash."""
    logical = logical_type(leaf.element)
    carried = (logical.kind, leaf.type)
    is_interval = leaf.element.converted_type is ConvertedType.INTERVAL
    if carried not in _NUMBERS.keys() | _BYTES or not logical.signed or is_interval:
        raise UnsupportedFeatureError(
            f"column {leaf.name} is {describe(leaf.element)}, which Paimon gives no Bloom filter",
            hint="it has filters of signed integers, floats, dates, times, text and bytes",
        )


def is_bytes(leaf: Leaf) -> bool:
    """Whether a value's bytes are hashed, not a number."""
    return (logical_type(leaf.element).kind, leaf.type) in _BYTES


def hashed_content(leaf: Leaf, encoding: bytes) -> Hashed:
    """What is hashed of a value in PLAIN encoding, without the length of a BYTE_ARRAY."""
    if is_bytes(leaf):
        return Hashed(content=encoding)
    logical = logical_type(leaf.element)
    number = _NUMBERS[logical.kind, leaf.type](encoding) // divisor(logical)
    return Hashed(content=number, width=_width(logical, leaf.type))


def _width(logical: Logical, physical: Type) -> int:
    """Bytes of Paimon's type, whose times of the day always have 4."""
    if logical.kind is Kind.INTEGER:
        return logical.bits // 8
    return 4 if logical.kind is Kind.TIME or physical in (Type.INT32, Type.FLOAT) else 8


def divisor(logical: Logical) -> int:
    """What a stored time is divided by: Paimon counts milliseconds of the day, and microseconds."""
    coarsest = {Kind.TIME: _NANOS_PER_MILLI, Kind.TIMESTAMP: _NANOS_PER_MICRO}.get(logical.kind, 1)
    return max(1, coarsest // logical.unit)


def value_forms(leaf: Leaf, value: object) -> tuple[Hashed, ...] | None:
    """The forms under which ``value`` may be in an index of ``leaf``.

    Values as :func:`secure_bloom.probe` takes them, and whole numbers also as 5.0 and 1e1; None
    for one that an index cannot answer for, and no form for one that is too large or too fine to
    be in this file: another file of the table may store the column in a larger type.  PolicyError,
    without the value, when it cannot be one of the column.
    """
    try:
        if isinstance(value, str) and logical_type(leaf.element).kind is Kind.INTEGER:
            value = whole_value(value)
        encodings = physical_values(leaf, value)
    except BeyondColumnError:
        return ()
    return None if encodings is None else tuple(hashed_content(leaf, each) for each in encodings)


def example_form(leaf: Leaf) -> Hashed | None:
    """The form of some value, as wide as any of the column; None for one that has no filter."""
    logical = logical_type(leaf.element)
    if is_bytes(leaf):
        return Hashed(content=b"")
    if (logical.kind, leaf.type) not in _NUMBERS or not logical.signed:
        return None
    return Hashed(content=0, width=_width(logical, leaf.type))


def leaf_of(name: str, data_type: DataType) -> Leaf:
    """A leaf as Paimon stores a column of this type: for values sought without a data file."""
    root, parameter = data_type.root, data_type.parameter or 0
    if root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
        stored = _STORED_TIMESTAMPS[(parameter > MAX_MILLIS_PRECISION) + (parameter > 6)]
    else:
        stored = _STORED[root]
    physical, converted = stored
    element = SchemaElement.of(
        name=name, type=physical, repetition_type=FieldRepetitionType.OPTIONAL
    )
    if converted is not None:
        element.converted_type = converted
    return Leaf(
        path=(name,), element=element, type=physical, repetitions=(FieldRepetitionType.OPTIONAL,)
    )


def describe_type(leaf: Leaf) -> str:
    """A column's type for a person, with the bits or the unit that matter here."""
    logical = logical_type(leaf.element)
    if logical.kind is Kind.INTEGER:
        return f"{describe(leaf.element)} of {logical.bits} bits"
    if logical.kind in (Kind.TIME, Kind.TIMESTAMP):
        return f"{describe(leaf.element)} in units of {logical.unit:,} ns"
    return describe(leaf.element)


def differs(stored: Leaf, given: Leaf) -> bool:
    """Whether a value has another form in a column of the one type than in one of the other."""
    return _form(stored) != _form(given)


def _form(leaf: Leaf) -> tuple[object, ...] | None:
    """What decides over a value's form; None for a column that Paimon does not hash."""
    logical = logical_type(leaf.element)
    if is_bytes(leaf):
        return (bytes,)
    if (logical.kind, leaf.type) not in _NUMBERS or not logical.signed:
        return None
    kind, unit = logical.kind, logical.unit
    if kind is Kind.INT96:
        kind, unit = Kind.TIMESTAMP, _NANOS_PER_MICRO
    return kind, max(unit, unit * divisor(logical)), _width(logical, leaf.type)


def _integer(encoding: bytes) -> int:
    return int.from_bytes(encoding, "little", signed=True)


def _float(encoding: bytes) -> int:
    form = "<f" if len(encoding) == 4 else "<d"
    return float_bits(*struct.unpack(form, encoding), width=len(encoding))


def _int96_micros(encoding: bytes) -> int:
    nanos, days = struct.unpack("<qi", encoding)
    micros = (days - JULIAN_EPOCH) * DAY_MICROS + nanos // _NANOS_PER_MICRO
    return signed(micros)  # as the bulk rule wraps days that no calendar has


#: What is hashed as a number -> the number that a value in PLAIN encoding is.
_NUMBERS: dict[tuple[Kind, Type], Callable[[bytes], int]] = {
    (Kind.INTEGER, Type.INT32): _integer,
    (Kind.INTEGER, Type.INT64): _integer,
    (Kind.DATE, Type.INT32): _integer,
    (Kind.TIME, Type.INT32): _integer,
    (Kind.TIME, Type.INT64): _integer,
    (Kind.TIMESTAMP, Type.INT64): _integer,
    (Kind.INT96, Type.INT96): _int96_micros,
    (Kind.FLOAT, Type.FLOAT): _float,
    (Kind.FLOAT, Type.DOUBLE): _float,
}
#: What is hashed by its bytes.
_BYTES = {
    (Kind.TEXT, Type.BYTE_ARRAY),
    (Kind.BYTES, Type.BYTE_ARRAY),
    (Kind.BYTES, Type.FIXED_LEN_BYTE_ARRAY),
}
_Stored: TypeAlias = tuple[Type, ConvertedType | None]
#: How Paimon stores its types in Parquet.  BINARY is taken as bytes of any length.
_STORED: dict[TypeRoot, _Stored] = {
    TypeRoot.TINYINT: (Type.INT32, ConvertedType.INT_8),
    TypeRoot.SMALLINT: (Type.INT32, ConvertedType.INT_16),
    TypeRoot.INT: (Type.INT32, None),
    TypeRoot.BIGINT: (Type.INT64, None),
    TypeRoot.FLOAT: (Type.FLOAT, None),
    TypeRoot.DOUBLE: (Type.DOUBLE, None),
    TypeRoot.DATE: (Type.INT32, ConvertedType.DATE),
    TypeRoot.TIME: (Type.INT32, ConvertedType.TIME_MILLIS),
    TypeRoot.CHAR: (Type.BYTE_ARRAY, ConvertedType.UTF8),
    TypeRoot.VARCHAR: (Type.BYTE_ARRAY, ConvertedType.UTF8),
    TypeRoot.STRING: (Type.BYTE_ARRAY, ConvertedType.UTF8),
    TypeRoot.BINARY: (Type.BYTE_ARRAY, None),
    TypeRoot.VARBINARY: (Type.BYTE_ARRAY, None),
    TypeRoot.BYTES: (Type.BYTE_ARRAY, None),
}
#: The same of timestamps to milliseconds, to microseconds, and finer.
_STORED_TIMESTAMPS: tuple[_Stored, ...] = (
    (Type.INT64, ConvertedType.TIMESTAMP_MILLIS),
    (Type.INT64, ConvertedType.TIMESTAMP_MICROS),
    (Type.INT96, None),
)
