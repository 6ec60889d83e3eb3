"""Days and instants beyond what Python and pyarrow read, asked as the output writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from secure_bloom.parquet.texts import day_number

DAYS = [day_number(text) for text in ("-4712-01-01", "0000-12-31", "2024-02-29", "12345-06-07")]
_SECONDS = [day * 86_400 for day in DAYS]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Days and instants of far years, each in a row group of its own, with filters."""
    table = pa.table(
        {
            "row": range(4),
            "day": pa.array(DAYS, pa.date32()),
            "at": pa.array([1000 * s + 7 for s in _SECONDS], pa.timestamp("ms")),
            "zoned": pa.array(_SECONDS, pa.timestamp("s", "UTC")),
        }
    )
    path = tmp_path_factory.mktemp("far") / "x.parquet"
    pq.write_table(table, path, row_group_size=1, use_dictionary=False)
    assert not sb.add_bloom_filters(path, columns=["day", "at", "zoned"]).failed
    return path


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("day = '12345-06-07'", [3]),
        ("day = '0000-12-31'", [1]),
        ("day < '0001-01-01'", [0, 1]),
        ("day = '-4712-01-01'", [0]),
        ("day > '9999-12-31'", [3]),
        ("day <= '99999999-01-01'", [0, 1, 2, 3]),
        ("at = '12345-06-07T00:00:00.007'", [3]),
        ("at > '12345-06-07T00:00:00.006999999'", [3]),
        ("at > '12345-06-07T00:00:00.007000001'", []),
        ("at < '2263-01-01T00:00:00.000000001'", [0, 1, 2]),
        ("at = '0000-12-31 00:00:00.007'", [1]),
        ("zoned = '12345-06-07T02:00:00+02:00'", [3]),
        ("zoned >= '12345-06-07T00:00:00Z'", [3]),
        ("zoned = '-4712-01-01T00:00:00Z'", [0]),
        ("not (row < 2 and row in (1, null))", [2, 3]),
        ("not (row in (1, null) or row = 2)", []),
        ("not (day is null) and not (row > 0 and row in (3, null))", [0]),
    ],
)
def test_rows_are_found_as_they_are_written(path: Path, where: str, rows: list[int]) -> None:
    assert sb.read_table(path, where=where)["row"].to_pylist() == rows


@pytest.mark.parametrize("column", ["day", "at"])
def test_what_the_output_writes_can_be_asked(path: Path, column: str) -> None:
    far = sb.read_table(path, columns=[column, "row"], where="row = 3")
    assert sb.read_table(path, where=[(column, "=", far[column][0])])["row"].to_pylist() == [3]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("day", "12345-02-30"),
        ("day", "2024"),
        ("at", "12345-06-07T25:00:00"),
        ("at", "12345-06-07T00:00:00Z"),
        ("zoned", "12345-06-07T00:00:00+99:00"),
    ],
)
def test_texts_that_are_no_days_are_errors(path: Path, column: str, value: Any) -> None:
    with pytest.raises(PolicyError):
        sb.read_table(path, where=[(column, "=", value)])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("day", "12345-06-07"),
        ("at", "12345-06-07T00:00:00.007"),
        ("zoned", "12345-06-07T00:00:00Z"),
    ],
)
def test_filters_are_probed_for_them(path: Path, column: str, value: str) -> None:
    (file,) = sb.probe(path, column, [value]).files
    verdicts = [group.verdicts[value] for group in file.row_groups]
    assert verdicts == [sb.Verdict.ABSENT] * 3 + [sb.Verdict.MAYBE]
