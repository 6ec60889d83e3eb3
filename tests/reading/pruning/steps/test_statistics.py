"""What statistics, indexes and dictionaries of all sorts of writers may and may not conclude."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.reading.pruning.plan import Step
from testing.live_footer import encode_footer
from testing.surgery import edit_column, opened
from testing.thrift.metadata import ColumnMetaData, Statistics
from testing.thrift.trees import Struct
from testing.thrift.views import tree_of

NAN = float("nan")


def file_of(folder: Path, array: pa.Array, **options: Any) -> Path:
    path = folder / "x.parquet"
    pq.write_table(pa.table({"x": array}), path, use_dictionary=False, **options)
    return path


def skipped_by(path: Path, where: object) -> str | None:
    (group,) = sb.explain(path, where=where).files[0].row_groups
    # Values rule out row groups that the steps before left, with the C extension alone.
    return None if group.skipped_by in (None, Step.VALUES) else str(group.skipped_by)


def with_statistics(path: Path, **fields: object) -> None:
    """Give the only column these statistics instead of its own."""

    def change(meta_data: ColumnMetaData) -> None:
        meta_data.statistics = Statistics.of(**fields)

    edit_column(path, 0, "x", change)


def without_column_orders(path: Path) -> None:
    with opened(path, None) as it:
        del it.footer.metadata.column_orders
        content = it.file.read_at(0, it.footer.tail.offset) + encode_footer(it.footer)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("operator", "value", "skipped"),
    [
        ("=", 4, True),
        ("=", 5, False),
        ("=", 9, False),
        ("=", 10, True),
        ("<", 5, True),
        ("<=", 5, False),
        (">", 9, True),
        (">=", 9, False),
        ("!=", 5, False),
        ("in", [1, 20], True),
        ("in", [1, 7, 20], False),
        ("in", [], True),
        ("not in", [5, 9], False),
        ("is null", None, True),
        ("is not null", None, False),
    ],
)
def test_bounds_of_numbers(tmp_path: Path, operator: str, value: Any, skipped: bool) -> None:
    path = file_of(tmp_path, pa.array([5, 9]))
    assert skipped_by(path, [("x", operator, value)]) == ("statistics" if skipped else None)


@pytest.mark.parametrize("operator", ["=", "!=", "<", "in", "not in", "is not null"])
def test_a_column_of_nulls_matches_no_comparison(tmp_path: Path, operator: str) -> None:
    path = file_of(tmp_path, pa.array([None, None], pa.int64()))
    value = {"in": [1], "not in": [1], "is not null": None}.get(operator, 1)
    assert skipped_by(path, [("x", operator, value)]) == "statistics"
    assert sb.read_table(path, where=[("x", "is null")]).num_rows == 2


@pytest.mark.parametrize("where", ["x in ()", "x = 2.5", "x in (2.5)", "x < -9223372036854775809"])
def test_what_no_value_can_be_needs_no_statistics(tmp_path: Path, where: str) -> None:
    path = file_of(tmp_path, pa.array([2, 3]), write_statistics=False)
    asked = [("x", "in", [])] if where == "x in ()" else where
    assert skipped_by(path, asked) == "statistics"


def test_one_value_alone_is_ruled_out_by_its_opposites(tmp_path: Path) -> None:
    path = file_of(tmp_path, pa.array([5, 5, None]))
    assert skipped_by(path, [("x", "!=", 5)]) == "statistics"
    assert skipped_by(path, [("x", "not in", [4, 5])]) == "statistics"
    assert skipped_by(path, [("x", "not in", [4])]) is None


def test_a_nan_beside_one_value_is_another_value(tmp_path: Path) -> None:
    """pyarrow's own dataset loses this row: its statistics leave NaN out."""
    path = file_of(tmp_path, pa.array([5.0, NAN]))
    for where in ("x != 5", "x not in (5)", "not x < 6", "not x > 4"):
        assert sb.read_table(path, where=where).num_rows == 1, where
    for where in ("x < 5", "x >= 6", "x = nan", "x in (nan)"):
        assert sb.read_table(path, where=where).num_rows == 0, where


@pytest.mark.parametrize("bounds", [(NAN, 9.0), (1.0, NAN), (NAN, NAN), (9.0, 1.0)])
def test_bounds_that_are_nan_or_upside_down_bound_nothing(
    tmp_path: Path, bounds: tuple[float, float]
) -> None:
    path = file_of(tmp_path, pa.array([1.0, 9.0, 50.0]))
    low, high = (struct.pack("<d", bound) for bound in bounds)
    with_statistics(path, min_value=low, max_value=high, null_count=0)
    assert sb.read_table(path, where="x = 50").num_rows == 1


def test_zeros_of_either_sign_are_one_bound(tmp_path: Path) -> None:
    path = file_of(tmp_path, pa.array([0.0, -0.0]))
    for zero in (0.0, -0.0):
        with_statistics(path, **dict.fromkeys(("min_value", "max_value"), struct.pack("<d", zero)))
        assert sb.read_table(path, where="x = -0.0").num_rows == 2
        assert sb.read_table(path, where="x >= 0").num_rows == 2
        assert skipped_by(path, "x != 0") is None


def test_cut_bounds_of_texts_are_bounds_all_the_same(tmp_path: Path) -> None:
    path = file_of(tmp_path, pa.array(["abcd", "abzz"]))
    with_statistics(path, min_value=b"ab", max_value=b"ac", null_count=0)
    for text in ("abcd", "abzz"):
        assert sb.read_table(path, where=[("x", "=", text)]).num_rows == 1
    assert skipped_by(path, "x = 'ad'") == "statistics"
    assert skipped_by(path, "x = 'ac'") is None
    assert skipped_by(path, "x != 'ab'") is None


def test_texts_are_ordered_by_unsigned_bytes(tmp_path: Path) -> None:
    path = file_of(tmp_path, pa.array(["a", "é"]))
    assert sb.read_table(path, where="x = 'é'").num_rows == 1
    assert sb.read_table(path, where="x > 'z'").num_rows == 1
    assert skipped_by(path, "x < 'a'") == "statistics"


@pytest.mark.parametrize(
    ("array", "value", "trusted"),
    [
        (pa.array([5, 9]), 4, True),
        (pa.array([5.0, 9.0]), 4.0, True),
        (pa.array([5, 9], pa.uint64()), 4, False),
        (pa.array(["a", "é"]), "A", False),
        (pa.array([b"a"]), b"A", False),
    ],
    ids=str,
)
def test_the_older_bounds_count_only_where_signed_order_is_right(
    tmp_path: Path, array: pa.Array, value: Any, trusted: bool
) -> None:
    path = file_of(tmp_path, array)

    def to_older(meta_data: ColumnMetaData) -> None:
        new = meta_data.statistics
        assert new is not None
        meta_data.statistics = Statistics.of(min=new.min_value, max=new.max_value)

    edit_column(path, 0, "x", to_older)
    assert skipped_by(path, [("x", "=", value)]) == ("statistics" if trusted else None)


def test_newer_bounds_of_an_unknown_order_are_not_trusted(tmp_path: Path) -> None:
    path = file_of(tmp_path, pa.array(["a", "b"]))
    assert skipped_by(path, "x = 'c'") == "statistics"
    without_column_orders(path)
    assert skipped_by(path, "x = 'c'") is None


def test_int96_has_no_order(tmp_path: Path) -> None:
    array = pa.array([0, 10**18], pa.timestamp("ns"))
    path = file_of(tmp_path, array, use_deprecated_int96_timestamps=True)
    low, high = struct.pack("<qi", 0, 1), struct.pack("<qi", 0, 2)
    with_statistics(path, min_value=low, max_value=high, null_count=0)
    assert skipped_by(path, "x = 1970-01-02") is None
    assert sb.read_table(path, where="x = 1970-01-01").num_rows == 1


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_int96_that_is_cut_when_it_is_read_is_not_looked_up(
    tmp_path: Path, use_dictionary: bool
) -> None:
    """The row is read as one microsecond, while page, dictionary and filter have 1,001 ns."""
    table = pa.table({"x": pa.array([1001, 5000], pa.timestamp("ns"))})
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, use_dictionary=use_dictionary)
    sb.add_bloom_filters(path, columns=["x"])
    wanted = pa.scalar(1, pa.timestamp("us"))
    assert sb.read_table(path, where=[("x", "=", wanted)]).num_rows == 1


def test_a_type_of_a_later_format_has_no_order(tmp_path: Path) -> None:
    path = file_of(tmp_path, pa.array([b"a", b"b"]))
    with opened(path, None) as it:
        # GEOMETRY, whose bounds are no values.
        tree_of(it.footer.leaves[0].element).fields[10] = (12, Struct({17: (12, Struct())}))
        it.footer.metadata.tree.fields.pop(5, None)
        content = it.file.read_at(0, it.footer.tail.offset) + encode_footer(it.footer)
    path.write_bytes(content)
    assert skipped_by(path, [("x", "=", b"c")]) is None


@pytest.mark.parametrize("size", [0, 3, 9])
def test_bounds_of_a_wrong_size_bound_nothing(tmp_path: Path, size: int) -> None:
    path = file_of(tmp_path, pa.array([5, 9]))
    with_statistics(path, min_value=bytes(size), max_value=bytes(size), null_count=0)
    assert sb.plan_read(path, where="x = 9").files[0].row_groups


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
