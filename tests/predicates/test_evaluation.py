"""Which rows a predicate is true for, null being neither true nor false."""

from __future__ import annotations

import pyarrow as pa
import pytest

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
