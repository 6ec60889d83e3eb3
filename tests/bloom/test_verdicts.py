"""Verdicts: the answer of a filter for a value in any of its encodings."""

from __future__ import annotations

from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.verdicts import Verdict, verdict


def test_a_verdict_needs_one_of_the_encodings() -> None:
    bloom_filter = SplitBlockBloomFilter(1)
    bloom_filter.insert(b"a")
    assert verdict(bloom_filter, (b"b", b"a")) is Verdict.MAYBE
    assert verdict(bloom_filter, (b"b",)) is Verdict.ABSENT
    assert verdict(bloom_filter, None) is Verdict.MAYBE
