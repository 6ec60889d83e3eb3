"""How many words are a finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import MissingPathError
from secure_bloom.tracing.column_words import COMMON, DISTINCTIVE, EXAMPLE, RARE
from secure_bloom.tracing.lake import candidates
from secure_bloom.tracing.verdicts import Meaning, verdict


@pytest.mark.parametrize(
    ("counts", "size", "wanted"),
    [
        ({DISTINCTIVE: 1}, 2_000, Meaning.VALUES),
        ({DISTINCTIVE: 1}, 20_000, Meaning.MENTION),
        ({DISTINCTIVE: 3}, 1 << 30, Meaning.VALUES),
        ({EXAMPLE: 1}, 500, Meaning.VALUES),
        ({EXAMPLE: 3}, 9_000, Meaning.MENTION),
        ({EXAMPLE: 5}, 1 << 30, Meaning.VALUES),
        ({RARE: 3}, 300, Meaning.VALUES),
        ({RARE: 3}, 9_000, Meaning.NOTHING),
        ({RARE: 50}, 1 << 30, Meaning.VALUES),
        ({COMMON: 19}, 100, Meaning.NOTHING),
        ({COMMON: 300}, 1 << 30, Meaning.VALUES),
        ({COMMON: 299}, 1 << 30, Meaning.NOTHING),
    ],
)
def test_words_count_by_what_they_say(counts: dict[int, int], size: int, wanted: Meaning) -> None:
    assert verdict(counts, size, 1_000) is wanted


def test_a_column_is_a_copy_if_most_of_its_values_are_of_another() -> None:
    assert verdict({COMMON: 80}, 1 << 62, 1_000, 100) is Meaning.VALUES
    assert verdict({COMMON: 79}, 1 << 62, 1_000, 100) is Meaning.NOTHING
    assert verdict({COMMON: 9}, 1 << 62, 1_000, 9) is Meaning.NOTHING


def test_a_path_to_nothing_has_a_hint_of_similar_names(tmp_path: Path) -> None:
    (tmp_path / "dump.csv").touch()
    with pytest.raises(MissingPathError) as caught:
        list(candidates([str(tmp_path / "dumb.csv")]))
    assert "dump.csv" in str(caught.value.hint)
