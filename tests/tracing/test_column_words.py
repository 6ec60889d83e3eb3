"""A column that does not fit into memory: what its sample says, and which words are kept."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from secure_bloom.tracing.column_words import (
    MASK,
    WantedHashes,
    sampled_words,
    taken_words,
    words_among,
)
from secure_bloom.tracing.subjects import SearchedColumn

COUNT = 30_000
EMAILS = SearchedColumn(
    name="email", values=lambda: iter([pa.array([f"anna{n}@post.fi" for n in range(COUNT)])])
)


def test_a_sample_counts_all_words_and_those_that_are_wanted_are_kept() -> None:
    inserted: list[np.ndarray] = []
    sample = sampled_words(EMAILS, COUNT // 2, inserted.append)
    assert sample.column.values == pytest.approx(COUNT, rel=0.1)
    assert sum(map(len, inserted)) == COUNT
    every = taken_words(EMAILS, 2 * COUNT)
    wanted = np.sort(np.append(every.entries[::1_000] & MASK, np.uint64(256)))
    kept = words_among(EMAILS, sample, wanted)
    assert kept.entries.tolist() == every.entries[::1_000].tolist()


def test_wanted_hashes_are_found_among_others() -> None:
    hashes = np.arange(256, 256_000, 256, dtype=np.uint64)
    found = np.array([7, 512, 1 << 40, 256], np.uint64)
    assert WantedHashes(hashes).places(found).tolist() == [1, 3]
