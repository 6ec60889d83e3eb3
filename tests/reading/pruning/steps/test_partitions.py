"""What a file's folders say, and columns that it lacks, have one answer for all of its rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb

_FOR_WHOLE_FILES = ("partition value", "missing column")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for day, table in ((1, pa.table({"n": [1, 2]})), (2, pa.table({"n": [1, 2], "late": [5, 6]}))):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(table, tmp_path / f"day={day}" / "x.parquet")
    return tmp_path


@pytest.mark.parametrize(
    ("where", "rows", "skipped"),
    [
        ("day = 1", 2, {"partition value": 1}),
        ("day = 3", 0, {"partition value": 2}),
        ("day > 1 and n = 2", 1, {"partition value": 1}),
        ("day = 1 or n = 2", 3, {}),
        ("late = 5", 1, {"missing column": 1}),
        ("late is null", 2, {}),
        ("late is not null and day = 1", 0, {"partition value": 1, "missing column": 1}),
        ("late = 5 and day = 3", 0, {"partition value": 2}),
    ],
)
def test_files_are_skipped_by_what_all_of_their_rows_have(
    lake: Path, where: str, rows: int, skipped: dict[str, int]
) -> None:
    assert sb.read_table(lake, where=where).num_rows == rows
    found = sb.explain(lake, where=where).skipped
    assert {step: count for step, count in found.items() if step in _FOR_WHOLE_FILES} == skipped
