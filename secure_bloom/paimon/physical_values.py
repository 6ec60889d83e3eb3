"""Turn the values that a Parquet file stores into the values that Paimon hashes.

Paimon hashes logical values, a file stores physical ones.  One table converts both the values of a
file and the values of a predicate, so that they cannot differ.

``Forms`` finds the form that a value has in the index of a column, by the type of the column.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.paimon import data_types
from secure_bloom.paimon.data_types import DataType, Hashed, float_bits, signed
from secure_bloom.parquet.literals import (
    BeyondColumnError,
    physical_values,
    python_value,
)
from secure_bloom.parquet.logical_types import JULIAN_EPOCH, Kind, Logical, describe
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import ConvertedType, Type

DAY_MICROS = 86_400_000_000
_NANOS_PER_MILLI, _NANOS_PER_MICRO = 1_000_000, 1_000


def require_hashable(leaf: Leaf) -> None:
    """Raise UnsupportedFeatureError for a column whose values Paimon does not hash."""
    logical = leaf.logical
    carried = (logical.kind, leaf.type)
    is_interval = leaf.converted_type is ConvertedType.INTERVAL
    if carried not in _NUMBERS.keys() | _BYTES or not logical.signed or is_interval:
        raise UnsupportedFeatureError(
            f"column {leaf.name} is {describe(leaf.element)}, which Paimon gives no Bloom filter",
            hint="it has filters of signed integers, floats, dates, times, text and bytes",
        )


def is_bytes(leaf: Leaf) -> bool:
    """Return whether a value's bytes are hashed, rather than a number."""
    return (leaf.logical.kind, leaf.type) in _BYTES


def hashed_content(leaf: Leaf, encoding: bytes) -> Hashed:
    """Return the bytes of a PLAIN value that are hashed, without a BYTE_ARRAY's length."""
    if is_bytes(leaf):
        return Hashed(content=encoding)
    logical = leaf.logical
    # Rounded down, also before 1970, as the values of a whole column are.
    number = _NUMBERS[logical.kind, leaf.type](encoding) // divisor(logical)
    return Hashed(content=number, width=_width(logical, leaf.type))


def _width(logical: Logical, physical: Type) -> int:
    """Return the width of Paimon's type in bytes. A time of the day always takes 4."""
    if logical.kind is Kind.INTEGER:
        return logical.bits // 8
    return 4 if logical.kind is Kind.TIME or physical in (Type.INT32, Type.FLOAT) else 8


def divisor(logical: Logical) -> int:
    """Return the number that a stored time is divided by.

    Paimon counts milliseconds of the day, and microseconds for timestamps.
    """
    coarsest = {Kind.TIME: _NANOS_PER_MILLI, Kind.TIMESTAMP: _NANOS_PER_MICRO}.get(logical.kind, 1)
    return max(1, coarsest // logical.unit)


def value_forms(leaf: Leaf, value: object) -> tuple[Hashed, ...] | None:
    """Return the forms that ``value`` may have in an index of ``leaf``.

    Return None if no index can answer. Values are written as :func:`secure_bloom.probe` takes them.
    A value that is too large or too fine for this file has no form. It may still be in another file
    of the table, which stores the column in a larger type. Raises PolicyError, without the value,
    if it cannot be a value of the column.
    """
    try:
        encodings = physical_values(leaf, python_value(value))
    # No form and not an error: the value is in another file of the table, or in none.
    except BeyondColumnError:
        return ()
    return None if encodings is None else tuple(hashed_content(leaf, each) for each in encodings)


def example_form(leaf: Leaf) -> Hashed | None:
    """Return the form of an arbitrary value, as wide as all values of the column.

    Return None for a column that cannot have a filter.
    """
    logical = leaf.logical
    if is_bytes(leaf):
        return Hashed(content=b"")
    if (logical.kind, leaf.type) not in _NUMBERS or not logical.signed:
        return None
    return Hashed(content=0, width=_width(logical, leaf.type))


def differs(stored: Leaf, given: Leaf) -> bool:
    """Return whether a value has different forms in columns of these two types."""
    return _form(stored) != _form(given)


def _form(leaf: Leaf) -> tuple[object, ...] | None:
    """Return everything that the form of a value depends on.

    Return None for a column that Paimon does not hash.
    """
    logical = leaf.logical
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
    # In bulk, days that no calendar has wrap around in 64 bits: the same must happen here.
    return signed(micros)


#: Types that are hashed as numbers -> the number of a value in PLAIN encoding.
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

#: Types that are hashed by their bytes.
_BYTES = {
    (Kind.TEXT, Type.BYTE_ARRAY),
    (Kind.BYTES, Type.BYTE_ARRAY),
    (Kind.BYTES, Type.FIXED_LEN_BYTE_ARRAY),
}


class Forms(Protocol):
    """The forms of values, by column."""

    def __call__(self, column: str, value: object) -> Sequence[Hashed] | None:
        """Return the forms that the value may have in an index, or None if no index can answer."""
        ...

    def example(self, column: str) -> Hashed | None:
        """Return the form of an arbitrary value of the column.

        Return None for a column that has no form. A bitmap index stores the rows of its nulls after
        the list of values, and only the width of a value shows where that list ends.
        """
        ...


@checked_arguments
def typed_forms(types: Mapping[str, DataType]) -> Forms:
    """Return the forms of values that are written as :func:`hash_value` takes them."""
    return _TypedForms(types)


@dataclass(frozen=True, slots=True)
class _TypedForms:
    """Forms by Paimon's types."""

    types: Mapping[str, DataType]

    def __call__(self, column: str, value: object) -> Sequence[Hashed] | None:
        return None if value is None else (data_types.hashed_form(self.types[column], value),)

    def example(self, column: str) -> Hashed | None:
        return data_types.example_form(self.types[column]) if column in self.types else None


@dataclass(frozen=True, slots=True)
class StoredForms:
    """Forms by the leaves of a Parquet schema. A column without a leaf has no form."""

    leaves: Mapping[str, Leaf]

    def __call__(self, column: str, value: object) -> tuple[Hashed, ...] | None:
        """Return the forms of a value, or None for a column without a leaf."""
        leaf = self.leaves.get(column)
        return None if leaf is None else value_forms(leaf, value)

    def example(self, column: str) -> Hashed | None:
        """Return the form of an arbitrary value of the column.

        Return None for a column without a form.
        """
        leaf = self.leaves.get(column)
        return None if leaf is None else example_form(leaf)
