"""No distinct count is needed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from testing.surgery import filter_of
from testing.tables import write

ROWS = 20_000
#: The bits of a filter for each distinct value, at most: twice what 1 % takes, for powers of two.
BITS = 2 * 11


@pytest.mark.parametrize("distinct", [1, 100, 3_000, ROWS])
def test_no_distinct_count_is_needed(tmp_path: Path, distinct: int) -> None:
    """Only the number of rows is the same: the size follows the values that are there."""
    table = pa.table({"x": [i % distinct for i in range(ROWS)]})
    path = write(tmp_path / "x.parquet", table, row_group_size=ROWS, use_dictionary=False)
    sb.add_bloom_filters(path, columns="x")
    bits = 8 * filter_of(path, 0, "x").byte_count
    assert bits <= max(256, BITS * distinct)


@pytest.mark.parametrize("fpp", [0.1, 0.01, 0.001])
def test_a_filter_is_folded_while_its_exact_probability_stays_within_the_request(
    tmp_path: Path, fpp: float
) -> None:
    path = write(tmp_path / "x.parquet", pa.table({"x": range(3_000)}), row_group_size=3_000)
    sb.add_bloom_filters(path, columns={"x": fpp})
    stored = filter_of(path, 0, "x")
    assert stored.fpp() <= fpp
    # One fold more would break the promise.
    assert stored.folded().fpp() > fpp
