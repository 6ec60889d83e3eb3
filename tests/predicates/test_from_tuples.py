"""What is asked for, in any of its forms, is what is found."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError

_NESTED = [
    ({"a": [{"b": 1}], "a.b": [2]}, ("a", "b")),
    ({"a": [{"b": 1}], "a.b": [2]}, ("a.b",)),
    ({"a": [{"b.c": 1}, {"b.c": 2}], "a.b": [{"c": 3}, {"c": 4}]}, ("a.b", "c")),
    ({"a": [{"b.c": 1}, {"b.c": 2}], "a.b": [{"c": 3}, {"c": 4}]}, ("a", "b.c")),
]


def _written(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(("columns", "path"), _NESTED, ids=str)
@pytest.mark.parametrize("value", [1, 2, 3])
def test_a_path_is_that_column_and_no_other(
    tmp_path: Path, columns: dict[str, Any], path: tuple[str, ...], value: int
) -> None:
    file = _written(tmp_path / "x.parquet", **columns)
    field = pc.field(*path) if len(path) == 1 else pc.field(path)
    for asked in (field == value, field.isin([value])):
        wanted = ds.dataset(file).to_table(filter=asked)
        assert sb.read_table(file, where=asked) == wanted
        assert sb.read_table(file, where=(path, "=", value)) == wanted
    assert sb.read_table(file, where=field.is_null()).num_rows == 0


def test_a_path_is_that_column_in_every_file(tmp_path: Path) -> None:
    _written(tmp_path / "1.parquet", a=[{"b": 1}], id=[1])
    _written(tmp_path / "2.parquet", **{"a.b": [1], "id": [2]})
    _written(tmp_path / "3.parquet", **{"a": [{"b": 2}], "a.b": [1], "id": [3]})
    for field, ids in ((pc.field("a", "b"), [1]), (pc.field("a.b"), [2, 3])):
        found = sb.read_table(tmp_path, where=field == 1, columns=["id"])
        assert found.column("id").to_pylist() == ids
    nulls = sb.read_table(tmp_path, where=pc.field("a", "b").is_null(), columns=["id"])
    assert nulls.column("id").to_pylist() == [2]


@pytest.mark.parametrize("where", ["a.b = 1", ("a.b", "=", 1)], ids=str)
def test_a_dotted_name_of_two_columns_is_refused(tmp_path: Path, where: object) -> None:
    file = _written(tmp_path / "x.parquet", **{"a": [{"b": 1}], "a.b": [2]})
    with pytest.raises(PolicyError) as caught:
        sb.read_table(file, where=where)
    assert 'pc.field("a", "b") and pc.field("a.b")' in str(caught.value)


@pytest.mark.parametrize("columns", [{"a": [{"b": 1}]}, {"a.b": [1]}], ids=str)
@pytest.mark.parametrize("where", ["a.b = 1", ("a.b", "=", 1), pc.field("a.b") == 1], ids=str)
def test_a_dotted_name_of_one_column_is_that(
    tmp_path: Path, columns: dict[str, Any], where: object
) -> None:
    assert sb.read_table(_written(tmp_path / "x.parquet", **columns), where=where).num_rows == 1


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    file = _written(tmp_path / "x.parquet", **{"a.b": [1]})
    with pytest.raises(PolicyError, match=r"there is no column a\.b"):
        sb.read_table(file, where=pc.field("a", "b") == 1)


@pytest.mark.parametrize(
    "of", [pa.timestamp("ns"), pa.time64("ns"), pa.duration("ns"), pa.timestamp("us")], ids=str
)
def test_a_plan_is_sent_with_values_of_nanoseconds(tmp_path: Path, of: pa.DataType) -> None:
    file = _written(tmp_path / "x.parquet", t=pa.array([1, 2], of))
    value = pa.scalar(1, of)
    for where in ([("t", "=", value)], pc.field("t") == value, ("t", "in", [value])):
        plan = pickle.loads(pickle.dumps(sb.plan_read(file, where=where)))
        assert [b.num_rows for b in sb.read_row_groups(plan, plan.files[0])] == [1]


def test_a_plan_is_sent_with_texts_lists_and_paths(tmp_path: Path) -> None:
    file = _written(tmp_path / "x.parquet", **{"a": [{"b": 1}], "a.b": ["2"]})
    for where in (pc.field("a", "b").isin([1, None]), (("a.b",), "in", ["2", None])):
        plan = pickle.loads(pickle.dumps(sb.plan_read(file, where=where)))
        assert [b.num_rows for b in sb.read_row_groups(plan, plan.files[0])] == [1]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (("id", "in", [1, None]), [1]),
        ("id in (1, null)", [1]),
        ("id in (NULL)", []),
        (("id", "in", [None]), []),
        (("id", "in", [1, pa.scalar(None, pa.int64())]), [1]),
        (pc.field("id").isin([1, None]), [1, None]),
    ],
    ids=str,
)
def test_a_null_in_a_list(tmp_path: Path, where: object, ids: list[int | None]) -> None:
    file = _written(tmp_path / "x.parquet", id=[1, 2, None])
    assert sb.read_table(file, where=where).column("id").to_pylist() == ids


@pytest.mark.parametrize("where", ["s = 5", "s < 10", "s in ('a', 5)", "s != -1.5e3"])
@pytest.mark.parametrize(
    "of", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_a_text_is_no_bare_number(tmp_path: Path, where: str, of: pa.DataType) -> None:
    file = _written(tmp_path / "x.parquet", s=pa.array(["5", "nan"]).cast(of))
    with pytest.raises(PolicyError) as caught:
        sb.read_table(file, where=where)
    assert "in quotes: '5'" in str(caught.value.hint)
    for quoted in ("s = '5'", "s = nan", "s < '6'"):
        assert sb.read_table(file, where=quoted).num_rows == 1


@pytest.mark.parametrize("limit", [2.5, "3", 10.0])
def test_a_limit_that_is_no_whole_number_is_refused(tmp_path: Path, limit: Any) -> None:
    file = _written(tmp_path / "x.parquet", a=[1, 2, 3])
    with pytest.raises(PolicyError, match="wanted a whole number"):
        sb.read_table(file, limit=limit)


@pytest.mark.parametrize("limit", [2, 10**30, np.int64(2)])
def test_a_limit_may_be_beyond_all_rows(tmp_path: Path, limit: int) -> None:
    file = _written(tmp_path / "x.parquet", a=[1, 2, 3])
    assert sb.read_table(file, limit=limit).num_rows == min(limit, 3)


def test_digits_of_other_scripts_are_texts_in_names_of_folders(tmp_path: Path) -> None:
    for folder in ("p=1", "p=\u0661"):
        (tmp_path / folder).mkdir()
        _written(tmp_path / folder / "x.parquet", a=[1])
    assert sb.read_table(tmp_path).column("p").to_pylist() == ["1", "\u0661"]


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("2024-03-01T00:00:00.000000001", 1),
        ("2024-03-01", 1),
        ("2024-03-01T00", 1),
        ("2024-03", 1),
        ("2024-03-01T00:00:00.000000002", 0),
    ],
)
def test_times_of_numpy_count_exactly(tmp_path: Path, value: str, count: int) -> None:
    base = np.datetime64("2024-03-01T00:00:00.000000000").astype(np.int64).item()
    stamps = pa.array([base, base + 1], pa.timestamp("ns"))
    file = _written(tmp_path / "x.parquet", t=stamps, z=stamps.cast(pa.timestamp("ns", "UTC")))
    for column in ("t", "z"):
        found = sb.read_table(file, where=(column, "=", np.datetime64(value)))
        assert found.num_rows == count


def test_a_date_is_held_against_a_time_of_numpy(tmp_path: Path) -> None:
    file = _written(tmp_path / "x.parquet", d=pa.array([19783], pa.date32()))
    for value, count in (("2024-03-01", 1), ("2024-03-01T00:00:00.000000001", 0)):
        assert sb.read_table(file, where=("d", "=", np.datetime64(value))).num_rows == count
    for refused in (np.datetime64("NaT"), np.datetime64(1, "as")):
        with pytest.raises(PolicyError, match="not one that the column can hold"):
            sb.read_table(file, where=("d", "=", refused))


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        (pc.field("b"), "== True"),
        (~pc.field("b") & (pc.field("f") == 1), "== True"),
        (pc.field("f").is_nan(), "no test for NaN"),
        (pc.field("f").is_null(nan_is_null=True), "without nan_is_null"),
    ],
    ids=str,
)
def test_an_expression_that_is_not_understood_has_a_way_out(
    tmp_path: Path, where: pc.Expression, hint: str
) -> None:
    file = _written(tmp_path / "x.parquet", b=[True], f=[1.0])
    with pytest.raises(PolicyError) as caught:
        sb.read_table(file, where=where)
    assert hint in str(caught.value.hint)


def test_many_comparisons_are_a_list(tmp_path: Path) -> None:
    file = _written(tmp_path / "x.parquet", a=[1, 2, 3])
    where = pc.field("a") == 0
    for value in range(1, 200):
        where = where | (pc.field("a") == value)
    with pytest.raises(PolicyError, match="nests deeper than 100 levels") as caught:
        sb.read_table(file, where=where)
    assert "isin" in str(caught.value.hint)
