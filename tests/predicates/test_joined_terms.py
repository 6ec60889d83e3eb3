"""Terms of one column become one list, and the rows stay the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.joined_terms import joined
from secure_bloom.predicates.tree import AllOf, AnyOf, Condition, leaves
from testing.steps import steps_of

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
