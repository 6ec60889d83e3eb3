"""Paimon's data types that can have Bloom filters, and which form of their values is hashed.

    TINYINT SMALLINT INT BIGINT      the number
    FLOAT DOUBLE                     the IEEE bits as a signed number, one NaN for all
    DATE                             days since 1970-01-01
    TIME(p)                          milliseconds of the day
    TIMESTAMP(p), TIMESTAMP_LTZ(p)   milliseconds since the epoch to p = 3, microseconds above
    CHAR VARCHAR STRING              UTF-8
    BINARY VARBINARY BYTES           the bytes

Hashes have 64 bits.  Numbers are hashed by Thomas Wang's mix with arithmetic right shifts, text and
bytes by XXH64 with seed 0 (:mod:`secure_bloom.bloom.xxh64` hashes many at once).  Hashes are
signed, as in Java.  Hashing one value does not need numpy.
"""

from __future__ import annotations

import enum
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from secure_bloom.bloom import xxh64
from secure_bloom.calling.arguments import check_fields, checked_arguments, member_of
from secure_bloom.errors import PolicyError, UnsupportedFeatureError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_HALF, _WHOLE = 1 << 63, 1 << 64


@checked_arguments
def hash_long(number: int) -> int:
    """Return the hash of a signed 64-bit number."""
    # Wrapped after each step, so that `>>` keeps the sign as Java's does: Wang's own mix shifts
    # zeros in.
    k = signed(~number + (number << 21))
    k ^= k >> 24
    k = signed(k + (k << 3) + (k << 8))
    k ^= k >> 14
    k = signed(k + (k << 2) + (k << 4))
    k ^= k >> 28
    return signed(k + (k << 31))


def hash_bytes(value: bytes) -> int:
    """Return the hash of a text's UTF-8 bytes, or of bytes."""
    return signed(xxh64.hash_value(value))


def signed(number: int) -> int:
    """Return the lowest 64 bits of ``number`` as a signed number in two's complement."""
    return (number + _HALF) % _WHOLE - _HALF


@checked_arguments
def hash_longs(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return :func:`hash_long` of each number in a 1-D array of int64, in the same shape."""
    import numpy as np

    from secure_bloom.kernels import loops

    hashes = np.empty(len(numbers), np.int64)
    loops.paimon_hash(np.require(numbers, np.int64, ["C", "A"]), hashes)
    return hashes


class TypeRoot(enum.StrEnum):
    """The types whose values are hashed."""

    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    STRING = "STRING"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    BYTES = "BYTES"


#: The finest timestamps that are hashed by their milliseconds.
MAX_MILLIS_PRECISION = 3
#: Paimon's own, where a type is written without a precision.
_DEFAULT_PRECISION = {TypeRoot.TIMESTAMP: 6, TypeRoot.TIMESTAMP_LTZ: 6, TypeRoot.TIME: 0}
_OTHER_NAMES = {"INTEGER": TypeRoot.INT}
_TEXT = re.compile(
    r"(?P<root>[A-Z_]+) *(?:\( *(?P<parameter>\d{1,10}) *\))?"
    r"(?P<zone> WITH LOCAL TIME ZONE| WITHOUT TIME ZONE)?(?: NOT NULL)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataType:
    """A type. ``parameter`` is the precision of a time, the length of text, or None.

    A time without a precision gets Paimon's default precision.
    """

    root: TypeRoot
    parameter: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", member_of(TypeRoot, "root", self.root))
        check_fields(self)
        # Set here, not by `parse` alone: a TIMESTAMP of precision 0 is hashed in milliseconds, and
        # what was hashed in microseconds would not be found.
        if self.parameter is None:
            object.__setattr__(self, "parameter", _DEFAULT_PRECISION.get(self.root))

    @classmethod
    @checked_arguments
    def parse(cls, text: str) -> DataType:
        """Return the type in Paimon's notation, such as ``TIMESTAMP(6)`` or ``BIGINT NOT NULL``.

        Raises UnsupportedFeatureError for a type that cannot have a Bloom filter.
        """
        found = _TEXT.fullmatch(text.strip().upper())
        name = "" if found is None else found["root"]
        root = _OTHER_NAMES.get(name) or TypeRoot.__members__.get(name)
        if found is None or root is None:
            raise UnsupportedFeatureError(
                f"Paimon has no Bloom filter of the type {text!r}",
                hint=f"there is one for {', '.join(TypeRoot)}",
            )
        if found["zone"] == " WITH LOCAL TIME ZONE":
            root = TypeRoot.TIMESTAMP_LTZ
        return cls(root=root, parameter=int(found["parameter"]) if found["parameter"] else None)

    def __str__(self) -> str:
        return str(self.root) if self.parameter is None else f"{self.root}({self.parameter})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashed:
    """The part of a value that is hashed: bytes, or a number with the ``width`` of its type."""

    content: int | bytes = field(repr=False)
    width: int = 0

    def hash(self) -> int:
        """Return the signed 64-bit hash."""
        if isinstance(self.content, bytes):
            return hash_bytes(self.content)
        return hash_long(self.content)


@checked_arguments
def hash_value(data_type: DataType, value: Any) -> int | None:
    """Return Paimon's hash of a value, or None for NULL, which is in no filter.

    Numbers, days and milliseconds of the day are ints, a timestamp is ``(milliseconds since the
    epoch, nanoseconds within the millisecond)``, text is str.  Raises PolicyError for anything
    else.
    """
    return None if value is None else hashed_form(data_type, value).hash()


def hashed_form(data_type: DataType, value: Any) -> Hashed:
    """Return the form in which a value is hashed. NULL has no form."""
    try:
        content = _CONTENTS[data_type.root](data_type, value)
    except (TypeError, ValueError, OverflowError, struct.error):
        raise PolicyError(f"the value is not one of the type {data_type}") from None
    return Hashed(content=content, width=_WIDTHS.get(data_type.root, 4))


def example_form(data_type: DataType) -> Hashed:
    """Return the form of an arbitrary value of the type.

    All values of a type have equally wide forms.
    """
    if data_type.root in _OF_BYTES:
        return Hashed(content=b"")
    return Hashed(content=0, width=_WIDTHS.get(data_type.root, 4))


def float_bits(number: float, *, width: int) -> int:
    """Return the bits of a float of 4 or 8 bytes as a signed number, with Java's one NaN."""
    form, as_integer, nan = _FLOATS[width]
    # Java's floatToIntBits has one NaN, but two zeros: a probe of a column asks for both.
    if math.isnan(number):
        return nan
    (bits,) = struct.unpack(as_integer, struct.pack(form, number))
    return int(bits)


#: Bytes -> the struct of the float, the struct of its bits, and the bits of every NaN.
_FLOATS = {4: ("<f", "<i", 0x7FC00000), 8: ("<d", "<q", 0x7FF8000000000000)}
#: The bytes of a number, for types that do not have 4.
_WIDTHS = {
    TypeRoot.TINYINT: 1,
    TypeRoot.SMALLINT: 2,
    TypeRoot.BIGINT: 8,
    TypeRoot.DOUBLE: 8,
    TypeRoot.TIMESTAMP: 8,
    TypeRoot.TIMESTAMP_LTZ: 8,
}
#: Types whose values are hashed by their bytes.
_OF_BYTES = {
    TypeRoot.CHAR,
    TypeRoot.VARCHAR,
    TypeRoot.STRING,
    TypeRoot.BINARY,
    TypeRoot.VARBINARY,
    TypeRoot.BYTES,
}


def _integer(data_type: DataType, value: Any) -> int:
    # True is an int to Python, and BOOLEAN has no filter.
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    # Called for its error alone: the number may be too large for the type.
    value.to_bytes(_WIDTHS.get(data_type.root, 4), signed=True)
    return value


def _timestamp(data_type: DataType, value: Any) -> int:
    millis, nanos = value
    # Milliseconds are not cut to a precision of 0 to 2: Paimon hashes them whole.
    if (data_type.parameter or 0) <= MAX_MILLIS_PRECISION:
        return int(millis)
    return int(millis) * 1000 + int(nanos) // 1000


def _float(data_type: DataType, value: Any) -> int:
    return float_bits(value, width=_WIDTHS.get(data_type.root, 4))


def _text(_data_type: DataType, value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError
    return value.encode()


def _bytes(_data_type: DataType, value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError
    return value


_CONTENTS: dict[TypeRoot, Callable[[DataType, Any], int | bytes]] = {
    TypeRoot.TINYINT: _integer,
    TypeRoot.SMALLINT: _integer,
    TypeRoot.INT: _integer,
    TypeRoot.BIGINT: _integer,
    TypeRoot.DATE: _integer,
    TypeRoot.TIME: _integer,
    TypeRoot.FLOAT: _float,
    TypeRoot.DOUBLE: _float,
    TypeRoot.TIMESTAMP: _timestamp,
    TypeRoot.TIMESTAMP_LTZ: _timestamp,
    TypeRoot.CHAR: _text,
    TypeRoot.VARCHAR: _text,
    TypeRoot.STRING: _text,
    TypeRoot.BINARY: _bytes,
    TypeRoot.VARBINARY: _bytes,
    TypeRoot.BYTES: _bytes,
}
