"""The header of a filter's bits, and the size of a filter. All numbers are big-endian.

    i32 -1 | i32 nbHash | i8 hashType | i32 vectorSize        as Hadoop's ``Filter`` writes it
    i32 nbHash | i32 vectorSize                               its old form, Jenkins

The header is followed by ceil(vectorSize / 8) bytes; bit ``i`` is bit ``i & 7`` of byte ``i >> 3``.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from secure_bloom.calling.arguments import checked_arguments, member_of
from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError
from secure_bloom.hudi.record_keys.hadoop_hashes import HashType

INT_MAX = 2**31 - 1
_VERSION = -1
_FORM = struct.Struct(">iibi")
_OLD_FORM = struct.Struct(">ii")
#: Sizing gives 1,076 at most, for the smallest fpp that a double has.
_MAX_HASHES = 1100


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The shape of one row of bits. Raises FormatError for impossible numbers."""

    num_hashes: int
    hash_type: HashType
    vector_size: int

    def __post_init__(self) -> None:
        if not 1 <= self.num_hashes <= _MAX_HASHES:
            raise FormatError(f"nbHash is {self.num_hashes}, wanted 1 to {_MAX_HASHES}")
        # Positions are remainders by it, so it is not 0.
        if not 1 <= self.vector_size <= INT_MAX:
            raise FormatError(f"vectorSize is {self.vector_size}, wanted 1 to {INT_MAX}")

    @property
    def row_bytes(self) -> int:
        """Number of bytes of the bits."""
        return (self.vector_size + 7) // 8

    def encode(self) -> bytes:
        """Return the header in its newer form."""
        return _FORM.pack(_VERSION, self.num_hashes, self.hash_type, self.vector_size)

    @classmethod
    def decode(cls, stored: memoryview) -> tuple[Header, int]:
        """Return the header at the start of ``stored``, in either form, and its length."""
        (version,) = unpack(">i", stored)
        # The old form has no version: a positive first number is its number of hashes.
        if version > 0:
            num_hashes, vector_size = unpack(_OLD_FORM.format, stored)
            jenkins = HashType.JENKINS
            header = cls(num_hashes=num_hashes, hash_type=jenkins, vector_size=vector_size)
            return header, _OLD_FORM.size
        if version != _VERSION:
            raise UnsupportedFeatureError(f"the filter's version is {version}, wanted {_VERSION}")
        _, num_hashes, kind, vector_size = unpack(_FORM.format, stored)
        if kind not in set(HashType):
            raise UnsupportedFeatureError(f"hashType is {kind}, wanted 0 (jenkins) or 1 (murmur)")
        header = cls(num_hashes=num_hashes, hash_type=HashType(kind), vector_size=vector_size)
        return header, _FORM.size


def unpack(form: str, stored: memoryview) -> tuple[int, ...]:
    """Return the numbers at the start of ``stored``. Raises FormatError if it is too short."""
    wanted = struct.calcsize(form)
    if len(stored) < wanted:
        raise FormatError(f"the filter is cut short: wants {wanted} bytes, {len(stored)} remain")
    return struct.unpack_from(form, stored)


def header_for(num_entries: int, fpp: float, hash_type: HashType | str) -> Header:
    """Return the shape that Hudi gives a row for ``num_entries`` keys at ``fpp``.

    Raises PolicyError unless 1 <= num_entries < 2^31 and 0 < fpp < 1.
    """
    kind = member_of(HashType, "hash_type", hash_type)
    # Sizing comes first, because it checks num_entries.  It takes an fpp of 1, which leaves no bit
    # for a filter.
    bits, hashes = sizing(num_entries, fpp)
    if not 0.0 < fpp < 1.0:
        raise PolicyError(f"fpp is {fpp}, it must lie between 0 and 1, both excluded")
    return Header(num_hashes=hashes, hash_type=kind, vector_size=bits)


@checked_arguments
def sizing(num_entries: int, fpp: float) -> tuple[int, int]:
    """Return Hudi's number of bits, and of hashes, for ``num_entries`` keys at ``fpp``.

    An fpp of 1 gives 0 and 0: there is no filter of that size.  Raises PolicyError unless 1 <=
    num_entries < 2^31 and 0 < fpp <= 1.
    """
    if not 1 <= num_entries <= INT_MAX:
        raise PolicyError(f"num_entries is {num_entries}, it must lie between 1 and {INT_MAX}")
    if not 0.0 < fpp <= 1.0:
        raise PolicyError(f"fpp is {fpp}, it must lie between 0 and 1")
    bits = bit_size(num_entries, fpp)
    return bits, num_hashes(bits, num_entries)


def bit_size(num_entries: int, fpp: float) -> int:
    """Return ceil(n * (-ln fpp / ln(2)^2)) as an int of Java: never beyond 2^31 - 1."""
    # The order of these operations is Hudi's: another order may round to other bits.
    wanted = num_entries * (-math.log(fpp) / (math.log(2) * math.log(2)))
    return min(INT_MAX, math.ceil(wanted))


def num_hashes(bits: int, num_entries: int) -> int:
    """Return ceil(ln(2) * bits / n) as an int of Java."""
    return min(INT_MAX, math.ceil(math.log(2) * bits / num_entries))
