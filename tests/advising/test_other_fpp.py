"""Another false-positive probability is named where it was tried and lookups read less with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb

ROWS = 300_000


def lake(folder: Path, values: pa.Array) -> Path:
    table = pa.table({"c": values})
    pq.write_table(table, folder / "a.parquet", row_group_size=15_000, use_dictionary=False)
    return folder


def numbers() -> np.ndarray:
    return np.random.default_rng(6).integers(0, 2**31 - 1, ROWS)


def test_small_values_are_served_better_by_smaller_filters(tmp_path: Path) -> None:
    """A number takes four bytes, and a filter of 1 % more than one of them."""
    table = lake(tmp_path, pa.array(numbers(), pa.int32()))
    [column] = sb.advise(table).columns
    assert column.better_fpp == 0.1
    assert "fpp = 0.1 reads at least a tenth less" in " ".join(column.facts)
    [coarse] = sb.advise(table, fpp=0.1).columns
    one, ten = (it.to_dict()["bytes_per_lookup"]["absent"]["with"] for it in (column, coarse))
    assert ten < 0.9 * one


@pytest.mark.parametrize("options", [{}, {"fpp": 0.05}])
def test_most_columns_need_no_other(tmp_path: Path, options: dict) -> None:
    table = lake(tmp_path, pa.array([f"user{number:016d}@example.com" for number in numbers()]))
    [column] = sb.advise(table, **options).columns
    assert column.gains
    assert column.better_fpp is None
