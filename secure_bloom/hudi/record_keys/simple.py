"""``SIMPLE``: one row of bits, whose size is fixed when the filter is made.

header | bits
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.hudi.record_keys.bloom_filter import HudiBloomFilter, Run, decode_row, encode_row
from secure_bloom.hudi.record_keys.hadoop_hashes import HashType
from secure_bloom.hudi.record_keys.row_header import header_for


class SimpleBloomFilter(HudiBloomFilter):
    """A filter for ``num_entries`` keys at ``fpp``. More keys give more false positives.

    Raises PolicyError unless 1 <= num_entries < 2^31 and 0 < fpp < 1.
    """

    __slots__ = ()
    TYPE_CODE: ClassVar[str] = "SIMPLE"

    @checked_arguments
    def __init__(
        self, num_entries: int, fpp: float, *, hash_type: HashType = HashType.MURMUR
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
