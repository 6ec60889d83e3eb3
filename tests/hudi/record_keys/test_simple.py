"""``SIMPLE``: one row of bits."""

from __future__ import annotations

from secure_bloom.hudi.record_keys.simple import SimpleBloomFilter


def test_a_filter_comes_back_from_its_bytes() -> None:
    one = SimpleBloomFilter(num_entries=100, fpp=0.01)
    one.insert("key")
    other = SimpleBloomFilter.from_bytes(one.to_bytes())
    assert other.to_bytes() == one.to_bytes()
    assert other.check("key")
    assert not other.check("nobody")


def test_its_size_stays_however_many_keys_come() -> None:
    one = SimpleBloomFilter(num_entries=10, fpp=0.01)
    size = len(one.to_bytes())
    for number in range(1000):
        one.insert(str(number))
    assert len(one.to_bytes()) == size
