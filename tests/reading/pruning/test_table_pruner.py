"""What is in memory leaves some row groups of the files that it knows, and all other files."""

from __future__ import annotations

import pytest

from secure_bloom.reading.pruning.table_pruner import TableSurvivors


@pytest.mark.parametrize(
    ("asked", "left", "wanted"),
    [
        (set(), {}, [0, 1, 2, 3]),
        ({0, 1, 2, 3}, {}, []),
        ({0, 1, 2, 3}, {2: {0: frozenset({0})}}, [2]),
        ({1, 2}, {2: {0: frozenset()}}, [0, 2, 3]),
    ],
)
def test_files_are_planned_that_may_match_or_were_not_asked(
    asked: set[int], left: dict[int, dict[int, frozenset[int]]], wanted: list[int]
) -> None:
    assert TableSurvivors(asked=asked, left=left).ordinals(4) == wanted
