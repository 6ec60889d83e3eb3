"""Which rows a predicate is true for, null being neither true nor false."""

from __future__ import annotations

import random
import tracemalloc
from datetime import datetime
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.predicates.binding import bind
from secure_bloom.predicates.evaluation import true_rows
from secure_bloom.predicates.from_text import from_text

TABLE = pa.table(
    {
        "a": pa.array([1, 2, None, 4], pa.int32()),
        "f": pa.array([0.5, float("nan"), None, -0.0], pa.float32()),
        "s": [{"t": "x"}, {"t": None}, None, {"t": "y"}],
    }
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a = 2", [False, True, None, False]),
        ("a != 2", [True, False, None, True]),
        ("not a < 2", [False, True, None, True]),
        ("a in (1, 4)", [True, False, None, True]),
        ("a not in (1, 4)", [False, True, None, False]),
        ("a is null", [False, False, True, False]),
        ("a is not null", [True, True, False, True]),
        ("a > 1.5", [False, True, None, True]),
        ("f = 0", [False, False, None, True]),
        ("f < 1", [True, False, None, True]),
        ("not f < 1", [False, True, None, False]),
        ("s.t = 'y'", [False, None, None, True]),
        ("a = 1 or s.t = 'y'", [True, None, None, True]),
        ("a = 1 and s.t = 'y'", [False, False, None, False]),
    ],
)
def test_rows_of_a_predicate(text: str, rows: list[bool | None]) -> None:
    predicate = bind(from_text(text), TABLE.schema)
    assert true_rows(predicate, TABLE).to_pylist() == rows


def lists(kind: pa.DataType) -> pa.Table:
    rows = [[1, None], [], None, [2, 3], [None], [3]]
    return pa.table({"l": pa.array([[0], *rows, [3]], kind).slice(1, len(rows))})


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.large_list(pa.int8())], ids=str)
def test_a_list_fulfils_a_condition_that_an_element_fulfils(kind: pa.DataType) -> None:
    table = lists(kind)
    predicate = bind(from_text("l = 3"), table.schema)
    assert true_rows(predicate, table).to_pylist() == [False, False, None, True, False, True]
    predicate = bind(from_text("l in (1, 2)"), table.schema)
    assert true_rows(predicate, table).to_pylist() == [True, False, None, True, False, False]
    assert true_rows(predicate, table.slice(1, 1)).to_pylist() == [False]
    assert true_rows(predicate, table.slice(0, 0)).to_pylist() == []


def test_no_number_is_made_for_each_element_of_a_list() -> None:
    """A row with two million elements that all match: they take a byte each, not dozens."""
    count, elements = 2_000_000, pa.array(np.zeros(2_000_000, np.int8))
    table = pa.table({"l": pa.ListArray.from_arrays([0, count], elements)})
    predicate = bind(from_text("l = 0"), table.schema)
    default = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(default)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        assert true_rows(predicate, table).to_pylist() == [True]
        peak = tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(default)
    assert peak < 8 * count


def test_members_of_slices_and_of_null_structures() -> None:
    rows = [{"t": {"n": 1}}, {"t": None}, None, {"t": {"n": 2}}, {"t": {"n": 3}}]
    table = pa.table({"s": pa.chunked_array([pa.array(rows), pa.array(rows[3:])])})
    predicate = bind(from_text("s.t.n > 1"), table.schema)
    expected = [False, None, None, True, True, True, True]
    assert true_rows(predicate, table).to_pylist() == expected
    assert true_rows(predicate, table.slice(1, 5)).to_pylist() == expected[1:6]
    assert true_rows(predicate, table.slice(4)).to_pylist() == expected[4:]
    assert true_rows(predicate, table.slice(0, 0)).to_pylist() == []


#: Rows of two columns with every pair of values and null.
PAIRS = pa.table(
    {
        "n": pa.array([a for a in (None, 0, 1, 2, 3) for _ in range(5)], pa.int64()),
        "m": pa.array([b for _ in range(5) for b in (None, 0, 1, 2, 3)], pa.int64()),
    }
)


def _condition(dice: random.Random, depth: int) -> str:
    """A condition of the grammar that SQL reads alike."""
    if depth and dice.random() < 0.75:
        left, right = _condition(dice, depth - 1), _condition(dice, depth - 1)
        return dice.choice([f"not ({left})", f"({left} or {right})", f"({left} and {right})"])
    column = dice.choice("nm")
    listed = ", ".join(dice.choices(["0", "1", "2", "null"], k=dice.randint(1, 3)))
    return column + dice.choice(
        [f" in ({listed})", f" not in ({listed})", " is null", " is not null", " >= 2", " != 1"]
    )


def test_conditions_with_nulls_find_the_rows_that_sql_finds() -> None:
    duckdb = pytest.importorskip("duckdb")
    dice, compared = random.Random(41), 0
    connection = duckdb.connect()
    connection.register("pairs", PAIRS)
    for _ in range(300):
        text = _condition(dice, 4)
        try:
            predicate = bind(from_text(text), PAIRS.schema)
        except sb.PolicyError:
            # Such a condition is never true, and a mistake.
            assert connection.sql(f"from pairs where {text}").fetchall() == [], text
            continue
        compared += 1
        mine = PAIRS.filter(true_rows(predicate, PAIRS))
        wanted = connection.sql(f"from pairs where {text}").fetchall()
        assert list(zip(*mine.to_pydict().values(), strict=True)) == wanted, text
    assert compared > 200


@pytest.mark.parametrize("text", ["n >= 2 or not (n in (1, null))", "n >= 2 or n not in (1, null)"])
def test_not_in_a_list_with_null_is_unknown_beside_an_or(text: str) -> None:
    predicate = bind(from_text(text), PAIRS.schema)
    found = PAIRS.filter(true_rows(predicate, PAIRS))
    assert set(found["n"].to_pylist()) == {2, 3}


#: What texts may begin with, and what is next to it in the order of UTF-8.
_CHARACTERS = ["", "a", "b", "\x7f", "\x80", "\u07ff", "\ud7ff", "\ue000", "\uffff", "\U0010ffff"]


def test_like_finds_the_texts_that_begin_so() -> None:
    texts = [a + b + c for a in _CHARACTERS for b in _CHARACTERS for c in ("", "a", "\U0010ffff")]
    table = pa.table({"t": [None, *texts]})
    for start in {a + b for a in _CHARACTERS for b in _CHARACTERS}:
        for text, wanted in (
            (f"t like '{start}%'", [t for t in texts if t.startswith(start)]),
            (f"t not like '{start}%'", [t for t in texts if not t.startswith(start)]),
            (f"t like '{start}'", [t for t in texts if t == start]),
        ):
            found = table.filter(true_rows(bind(from_text(text), table.schema), table))
            assert found["t"].to_pylist() == wanted, ascii(text)


@pytest.mark.parametrize(
    "of", [pa.int32(), pa.date32(), pa.binary(), pa.list_(pa.string()), pa.bool_()], ids=str
)
@pytest.mark.parametrize("text", ["t like '2026-01-01%'", "t = 'a' or t like 'b'"])
def test_like_is_asked_of_texts_alone(of: pa.DataType, text: str) -> None:
    with pytest.raises(sb.PolicyError, match="for texts"):
        bind(from_text(text), pa.schema([("t", of)]))


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("t ilike 'ANNA@%'", [0, 1]),
        ("t ilike 'anna@x'", [0, 1]),
        ("t not ilike 'anna%'", [2, 3]),
        ("not t ilike 'anna%'", [2, 3]),
        ("t ilike 'müller%'", [3]),
        ("t ilike '%'", [0, 1, 2, 3]),
    ],
)
def test_ilike_finds_a_beginning_in_any_case_as_duckdb_does(
    tmp_path: Path, where: str, found: list[int]
) -> None:
    path = tmp_path / "x.parquet"
    texts = ["Anna@x", "aNNA@X", "ann", "MÜLLER", None]
    pq.write_table(pa.table({"t": texts, "n": range(5)}), path, row_group_size=1)
    assert sb.read_table(path, where)["n"].to_pylist() == found
    by_duckdb = duckdb.sql(f"select n from '{path}' where {where} order by n").fetchall()
    assert [n for (n,) in by_duckdb] == found


def test_ilike_is_taken_in_a_structure_and_for_texts_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"t": ["Ab", "b"], "n": [1, 2]}), path)
    assert sb.read_table(path, [("t", "ilike", "aB%")])["n"].to_pylist() == [1]
    assert sb.read_table(path, [("t", "not ilike", "aB%")])["n"].to_pylist() == [2]
    with pytest.raises(sb.PolicyError, match="are for texts"):
        sb.read_table(path, "n ilike '1%'")


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ("day like '2026%'", "day >= FIRST and day < NEXT"),
        ("at ilike '2026%'", "at >= FIRST and at < NEXT"),
        ("address like 'a%'", "address.zip"),
        ("address = 3", "address.zip"),
        ("tags like 'a%'", "tags = VALUE"),
        ("n like '1%'", "n = VALUE"),
        ("pairs = 3", "secure-bloom sql"),
    ],
)
def test_a_condition_that_does_not_fit_a_type_names_one_that_does(
    tmp_path: Path, where: str, hint: str
) -> None:
    path, moment = tmp_path / "x.parquet", datetime(2026, 1, 1)
    columns = {"day": [moment.date()], "at": [moment], "address": [{"zip": 1}], "n": [1]}
    lists = {"tags": [["a"]], "pairs": [[[1]]]}
    pq.write_table(pa.table({**columns, **lists}), path)
    with pytest.raises(sb.PolicyError) as caught:
        sb.read_table(path, where)
    assert hint in str(caught.value.hint)


def test_two_elements_of_a_list_may_meet_the_two_bounds_of_between(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3], "n": [[0, 5], [2], [7]]}), path)
    for where in ("n between 1 and 3", "n >= 1 and n <= 3"):
        assert sb.read_table(path, where)["id"].to_pylist() == [1, 2]
