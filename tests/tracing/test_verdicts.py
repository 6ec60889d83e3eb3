"""How many words are a finding."""

from __future__ import annotations

import pytest

from secure_bloom.tracing.index import COMMON, EXAMPLE, RARE, TELLING
from secure_bloom.tracing.verdicts import Verdict, verdict


@pytest.mark.parametrize(
    ("counts", "size", "wanted"),
    [
        ({TELLING: 1}, 2_000, Verdict.VALUES),
        ({TELLING: 1}, 20_000, Verdict.MENTION),
        ({TELLING: 3}, 1 << 30, Verdict.VALUES),
        ({EXAMPLE: 1}, 500, Verdict.VALUES),
        ({EXAMPLE: 3}, 9_000, Verdict.MENTION),
        ({EXAMPLE: 20}, 1 << 30, Verdict.VALUES),
        ({RARE: 3}, 300, Verdict.VALUES),
        ({RARE: 3}, 9_000, Verdict.NOTHING),
        ({RARE: 50}, 1 << 30, Verdict.VALUES),
        ({COMMON: 19}, 100, Verdict.NOTHING),
        ({COMMON: 300}, 1 << 30, Verdict.VALUES),
        ({COMMON: 299}, 1 << 30, Verdict.NOTHING),
    ],
)
def test_words_count_by_what_they_say(counts: dict[int, int], size: int, wanted: Verdict) -> None:
    assert verdict(counts, size, 1_000) is wanted


def test_a_column_is_a_copy_if_most_of_its_values_are_of_another() -> None:
    assert verdict({COMMON: 80}, 1 << 62, 1_000, 100) is Verdict.VALUES
    assert verdict({COMMON: 79}, 1 << 62, 1_000, 100) is Verdict.NOTHING
    assert verdict({COMMON: 9}, 1 << 62, 1_000, 9) is Verdict.NOTHING
