"""A predicate gets the columns, types and values of a schema."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from secure_bloom.predicates.binding import bind, bound_conditions, joined
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.from_tuples import from_structure
from secure_bloom.predicates.tree import AllOf, AnyOf, Condition, leaves
from testing.growth import growth
from testing.steps import steps_of

SCHEMA = pa.schema(
    [("id", pa.int32()), ("s", pa.struct([("a", pa.string())])), ("at", pa.timestamp("us", "UTC"))]
)


def test_conditions_are_numbered_in_their_order() -> None:
    found = bound_conditions(bind(from_text("id = 1 AND (s.a = 'x' OR id > 2)"), SCHEMA))
    assert [condition.ordinal for condition in found] == [0, 1, 2]
    assert [condition.path for condition in found] == [("id",), ("s", "a"), ("id",)]


def test_values_have_the_type_of_the_column() -> None:
    (condition,) = bound_conditions(bind(from_text("id = 7"), SCHEMA))
    assert condition.values == (pa.scalar(7, pa.int32()),)


def test_no_predicate_has_no_conditions() -> None:
    assert bound_conditions(None) == []


def test_an_unknown_column_is_named_without_the_value() -> None:
    with pytest.raises(PolicyError, match="nobody") as caught:
        bind(from_text("nobody = 'swordfish'"), SCHEMA)
    assert "swordfish" not in str(caught.value)


def test_a_column_whose_name_is_not_utf8_is_unknown() -> None:
    with pytest.raises(PolicyError, match="column"):
        bind(from_text("\udcff = 'x'"), SCHEMA)


def test_a_value_of_another_type_is_refused_without_being_shown() -> None:
    with pytest.raises(PolicyError) as caught:
        bind(from_text("id = 'swordfish'"), SCHEMA)
    assert "swordfish" not in str(caught.value)


def test_lists_of_extension_types_can_be_tested_for_null() -> None:
    schema = pa.schema([("ids", pa.list_(pa.uuid()))])
    (condition,) = bound_conditions(bind(from_text("ids is null"), schema))
    assert condition.type == pa.list_(pa.uuid())


def test_flags_of_numpy_are_flags() -> None:
    schema = pa.schema([("flag", pa.bool_())])
    (condition,) = bound_conditions(bind(from_structure(("flag", "=", np.True_)), schema))
    assert condition.values == (pa.scalar(True),)


@pytest.mark.parametrize("in_structure", [False, True])
def test_conditions_on_many_columns_take_time_by_their_number(in_structure: bool) -> None:
    def bind_all(count: int) -> None:
        fields = [(f"c{number}", pa.int64()) for number in range(count)]
        schema = pa.schema([("s", pa.struct(fields))] if in_structure else fields)
        before = "s." if in_structure else ""
        bind(from_structure([(f"{before}c{n}", "<", n) for n in range(count)]), schema)

    assert growth(bind_all, 50) < 6


CASES = {
    "a = 1 or a = 2 or a in (3, null)": 1,
    "a = 1 or (a = 2 or (b = 3 or a = 4))": 2,
    "a != 1 and a not in (2, 3)": 1,
    "a = 1 and a = 2": 2,
    "a != 1 or a != 2": 2,
    "not (a = 1 or a = 2)": 1,
    "a = 1 or a > 2 or a = 0": 2,
    "(a = 1 or a = 2) and (b = 1 or b = 4)": 2,
    "a is null or a = 1 or a = 5": 2,
}


@pytest.mark.parametrize("text", CASES)
def test_the_rows_stay_the_same(tmp_path: Path, text: str) -> None:
    numbers = [None, 0, 1, 2, 3, 4, 5]
    rows = [{"a": a, "b": b} for a in numbers for b in numbers]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet", row_group_size=7)
    given = from_text(text)
    assert len(list(leaves(joined(given)))) == CASES[text]
    wanted = [row for row in rows if _is_true(given, row)]
    assert sb.read_table(tmp_path / "x.parquet", where=text).to_pylist() == wanted


def _is_true(predicate: object, row: dict[str, int | None]) -> bool:
    """By one comparison after the other, which is what joining must not change."""
    if isinstance(predicate, AllOf | AnyOf):
        join = all if isinstance(predicate, AllOf) else any
        return join(_is_true(part, row) for part in predicate.parts)
    assert isinstance(predicate, Condition)
    value = row[predicate.column]
    if predicate.operator == "is null":
        return value is None
    if value is None:
        return False
    wanted = [int(str(v)) for v in predicate.values]
    is_in = value in wanted
    return {"=": is_in, "in": is_in, "!=": not is_in, "not in": not is_in}.get(
        str(predicate.operator), value > wanted[0]
    )


def test_twice_the_terms_take_about_twice_the_time(tmp_path: Path) -> None:
    table = pa.table({"a": list(range(5000))})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=500)

    def steps(count: int) -> int:
        text = " or ".join(f"a = {3 * i}" for i in range(count))
        rows: list[int] = []
        done = steps_of(
            lambda: rows.append(sb.read_table(tmp_path / "x.parquet", where=text).num_rows)
        )
        assert rows == [len({3 * i for i in range(count)} & set(range(5000)))]
        return done

    # Where the work grew with the square, it was 25 times as much, and a minute for 20,000 terms.
    assert steps(2000) < 7 * steps(400)
