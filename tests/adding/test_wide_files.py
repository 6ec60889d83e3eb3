"""A file of many columns costs as many times more as it has columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from secure_bloom.adding.request import filter_request
from secure_bloom.adding.rewrite_plan import plan_rewrite
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.storage import open_input
from testing.steps import steps_of
from testing.tables import write


def _steps(folder: Path, columns: int) -> int:
    """Lines that the plan of filters for all columns runs; the file is planned once before."""
    names = [f"column_{number:04}" for number in range(columns)]
    path = write(folder / f"{columns}.parquet", pa.table({name: [1, 2, 3] for name in names}))
    request, keys = filter_request(names, None), KeyResolver(None).for_file()
    with open_input(str(path)) as file:
        assert len(plan_rewrite(file, keys, request).filters) == columns
        return steps_of(lambda: plan_rewrite(file, keys, request))


def test_filters_for_four_times_as_many_columns_are_four_times_the_work(tmp_path: Path) -> None:
    assert _steps(tmp_path, 400) <= 4.1 * _steps(tmp_path, 100)
