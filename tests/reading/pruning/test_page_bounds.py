"""Ranges of rows, joined and cut."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.reading.pruning.page_bounds import common, merged

_ranges = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 8)).map(lambda pair: (pair[0], sum(pair)))
)


def _rows(ranges: list[tuple[int, int]]) -> set[int]:
    return {row for start, end in ranges for row in range(start, end)}


@given(_ranges)
def test_a_union_has_the_rows_of_all_in_order_and_apart(ranges: list[tuple[int, int]]) -> None:
    found = merged(ranges)
    assert _rows(found) == _rows(ranges)
    assert all(left[1] < right[0] for left, right in itertools.pairwise(found))


@given(_ranges, _ranges)
def test_what_is_common_are_the_rows_of_both(
    left: list[tuple[int, int]], right: list[tuple[int, int]]
) -> None:
    assert _rows(common(merged(left), merged(right))) == _rows(left) & _rows(right)
