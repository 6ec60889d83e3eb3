"""Headers of rows of bits, in both forms, and the sizes that Hudi gives them."""

from __future__ import annotations

import struct

import pytest

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.hudi import HashType
from secure_bloom.hudi.record_keys.row_header import Header, header_for


@pytest.mark.parametrize("hash_type", list(HashType))
def test_a_header_is_read_as_it_was_written(hash_type: HashType) -> None:
    header = Header(num_hashes=10, hash_type=hash_type, vector_size=1437)
    stored = header.encode()
    assert Header.decode(memoryview(stored + b"bits")) == (header, len(stored))
    assert header.row_bytes == 180


def test_the_older_form_has_no_version_and_one_hash() -> None:
    header, length = Header.decode(memoryview(struct.pack(">ii", 7, 100) + b"bits"))
    assert header == Header(num_hashes=7, hash_type=HashType.JENKINS, vector_size=100)
    assert length == 8


@pytest.mark.parametrize(
    ("stored", "error"),
    [
        (struct.pack(">i", -2), UnsupportedFeatureError),
        (struct.pack(">iibi", -1, 7, 9, 100), UnsupportedFeatureError),
        (struct.pack(">iibi", -1, 0, 1, 100), FormatError),
        (struct.pack(">iibi", -1, 7, 1, 0), FormatError),
        (struct.pack(">i", -1), FormatError),
        (b"", FormatError),
    ],
    ids=["version", "hash", "no hashes", "no bits", "cut short", "empty"],
)
def test_what_is_no_header_is_refused(stored: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        Header.decode(memoryview(stored))


def test_more_keys_and_fewer_false_positives_want_more_bits() -> None:
    def bits(keys: int, fpp: float) -> int:
        return header_for(keys, fpp, HashType.MURMUR).vector_size

    assert bits(1000, 0.01) < bits(1000, 0.001) < bits(10_000, 0.001)
