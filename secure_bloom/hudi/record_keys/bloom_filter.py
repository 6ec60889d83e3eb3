"""The base of both filters: rows of bits of one shape. Inserts and checks keys.

``SIMPLE`` is here too: header | bits, one row whose size is fixed when the filter is made.

    i32 -1 | i32 nbHash | i8 hashType | i32 vectorSize        as Hadoop's ``Filter`` writes it
    i32 nbHash | i32 vectorSize                               its old form, Jenkins

Numbers of the header are big-endian.  It is followed by ceil(vectorSize / 8) bytes; bit ``i`` is
bit ``i & 7`` of byte ``i >> 3``.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from secure_bloom.calling.arguments import checked_arguments, member_of
from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError
from secure_bloom.hudi.record_keys.packed_keys import (
    HashType,
    PackedKeys,
    key_bytes,
    keys_bytes,
    positions,
)
from secure_bloom.kernels import extension

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The rows for the next ``count`` keys.

    With ``stride`` 0 all these keys go to ``row``. With ``stride`` 1 the first key goes to ``row``,
    and each other key to the next row.
    """

    row: int
    count: int
    stride: int = 0


class HudiBloomFilter(ABC):
    """Rows of bits. A key may have been inserted if any row has all its bits.

    Single keys are handled in plain Python, many keys by the C extension.  Do not insert from
    several threads at once. Checking from several threads is safe.
    """

    __slots__ = ("_bits", "_header")
    TYPE_CODE: ClassVar[str]

    def __init__(self, header: Header, bits: bytearray) -> None:
        self._header = header
        self._bits = bits

    @property
    def num_hashes(self) -> int:
        """Number of bits that a key sets, ``nbHash``."""
        return self._header.num_hashes

    @property
    def hash_type(self) -> HashType:
        """The hash function."""
        return self._header.hash_type

    @property
    def vector_size(self) -> int:
        """Number of bits in a row."""
        return self._header.vector_size

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self._bits) // self._header.row_bytes

    @property
    def byte_count(self) -> int:
        """Number of bytes of all rows, without headers."""
        return len(self._bits)

    def insert(self, key: str) -> None:
        """Insert one key. Raises PolicyError for an empty key."""
        encoded = key_bytes(key)
        # The row is chosen before a bit is set: a filter that counts no more keys must stay as it
        # is.
        (run,) = self._runs(1)
        self._insert(encoded, run.row)

    def check(self, key: str) -> bool:
        """Return whether the key may have been inserted. False is certain."""
        return self._has(key_bytes(key))

    def _insert(self, key: bytes, row: int) -> None:
        base = row * self._header.row_bytes
        for bit in self._positions(key):
            self._bits[base + (bit >> 3)] |= 1 << (bit & 7)

    def _has(self, key: bytes) -> bool:
        known = list(self._positions(key))
        starts = range(0, len(self._bits), self._header.row_bytes)
        return any(
            all(self._bits[base + (bit >> 3)] >> (bit & 7) & 1 for bit in known) for base in starts
        )

    def insert_many(self, keys: Iterable[str]) -> None:
        """Insert all keys in their order or, after an error, none of them."""
        self.insert_packed(PackedKeys.of(keys_bytes(keys)))

    def check_many(self, keys: Iterable[str]) -> NDArray[np.bool_]:
        """Return :meth:`check` of each key, as an array of shape (n,)."""
        return self.check_packed(PackedKeys.of(keys_bytes(keys)))

    @checked_arguments
    def insert_packed(self, keys: PackedKeys) -> None:
        """Insert all packed keys in their order."""
        start = 0
        for run in self._runs(len(keys)):
            part = keys.part(start, start + run.count)
            if extension.native is None:
                for i, key in enumerate(part.each()):
                    self._insert(key, (run.row + i * run.stride) % self.rows)
            else:
                extension.native.hudi_insert(*self._kernel_arguments(part), run.row, run.stride)
            start += run.count

    @checked_arguments
    def check_packed(self, keys: PackedKeys) -> NDArray[np.bool_]:
        """Return :meth:`check_many` of packed keys."""
        import numpy as np

        if extension.native is None:
            return np.array([self._has(key) for key in keys.each()], np.bool_)
        found, positions = np.empty(len(keys), np.bool_), np.empty(self.num_hashes, np.uint64)
        extension.native.hudi_check(*self._kernel_arguments(keys), positions, found)
        return found

    def fill(self) -> float:
        """Return the share of all bits that are set."""
        return sum(self._set_bits()) / (self.rows * self.vector_size)

    def fpp(self) -> float:
        """Return the probability that a key which was not inserted passes :meth:`check`.

        It passes a row by chance with probability (share of set bits) ^ num_hashes. It is rejected
        only if it passes no row.
        """
        # 1 - product of (1 - share ^ k), by logarithms: the shares are as small as 1e-9.
        shares = (bits / self.vector_size for bits in self._set_bits())
        # Never above 0, and the 0 of an empty filter has no sign.
        return abs(math.expm1(sum(_log_failing(share**self.num_hashes) for share in shares)))

    def serialize(self) -> str:
        """Return the text that Hudi stores in the footer."""
        return base64.b64encode(self.to_bytes()).decode()

    @classmethod
    @checked_arguments
    def parse(cls, text: str) -> Self:
        """Return the filter in a text of :meth:`serialize`.

        Raises FormatError for damaged texts, UnsupportedFeatureError for unknown versions and
        hashes.
        """
        try:
            # validate: without it Python skips characters that are no base64, and damage would
            # pass.
            stored = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise FormatError("the filter is not base64 text") from None
        return cls.from_bytes(stored)

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Return the bytes that the text encodes."""

    @classmethod
    @abstractmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Return the filter in these bytes. Like Hudi, ignores bytes after it."""

    @abstractmethod
    def _runs(self, count: int) -> Iterator[Run]:
        """Yield the rows for the next ``count`` keys. Rows are added as they are needed."""

    def _positions(self, key: bytes) -> Iterator[int]:
        return positions(self.hash_type, key, self.num_hashes, self.vector_size)

    def _kernel_arguments(self, keys: PackedKeys) -> tuple[Any, ...]:
        is_murmur = self.hash_type is HashType.MURMUR
        shape = (self._header.row_bytes, self.vector_size, self.num_hashes, is_murmur)
        return (self._bits, *shape, keys.offsets, keys.data)

    def _set_bits(self) -> list[int]:
        """Return the number of set bits of each row."""
        size = self._header.row_bytes
        rows = (self._bits[start : start + size] for start in range(0, len(self._bits), size))
        return [int.from_bytes(row, "big").bit_count() for row in rows]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(rows={self.rows}, vector_size={self.vector_size}, "
            f"num_hashes={self.num_hashes}, hash_type={self.hash_type.name})"
        )


def _log_failing(passing: float) -> float:
    """Return ln(1 - ``passing``), or minus infinity if ``passing`` is 1.

    ``passing`` is the probability that a key passes a row.
    """
    return -math.inf if passing >= 1.0 else math.log1p(-passing)


def encode_row(header: Header, bits: bytes | bytearray) -> bytes:
    """Return one row as it is stored: header and bits."""
    return header.encode() + bits


def decode_row(stored: memoryview) -> tuple[Header, bytearray, int]:
    """Return the row at the start of ``stored``: its shape, its bits, and its length."""
    header, length = Header.decode(stored)
    whole = length + header.row_bytes
    if whole > len(stored):
        raise FormatError(f"a row of {whole} bytes is cut short: {len(stored)} remain")
    bits = bytearray(stored[length:whole])
    # Hadoop drops the bits that only fill the last byte of the row.
    bits[-1] &= 0xFF >> -header.vector_size % 8
    return header, bits, whole


class SimpleBloomFilter(HudiBloomFilter):
    """A filter for ``num_entries`` keys at ``fpp``. More keys give more false positives.

    Raises PolicyError unless 1 <= num_entries < 2^31 and 0 < fpp < 1.
    """

    __slots__ = ()
    TYPE_CODE: ClassVar[str] = "SIMPLE"

    @checked_arguments
    def __init__(
        self, num_entries: int, fpp: float, *, hash_type: HashType | str = HashType.MURMUR
    ) -> None:
        header = header_for(num_entries, fpp, hash_type)
        super().__init__(header, bytearray(header.row_bytes))

    def to_bytes(self) -> bytes:
        """Return header and bits."""
        return encode_row(self._header, self._bits)

    @classmethod
    @checked_arguments
    def from_bytes(cls, stored: bytes) -> SimpleBloomFilter:
        """Return the filter at the start of ``stored``."""
        header, bits, _ = decode_row(memoryview(stored))
        loaded = cls.__new__(cls)
        HudiBloomFilter.__init__(loaded, header, bits)
        return loaded

    def _runs(self, count: int) -> Iterator[Run]:
        yield Run(row=0, count=count)


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
