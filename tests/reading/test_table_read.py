"""What a read takes, and what of it cannot be, told before a row is read."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.reading import TableRead

PUBLIC = [sb.read_table, sb.read_batches, sb.explain, sb.plan_read]


@pytest.mark.parametrize("function", PUBLIC, ids=lambda it: it.__name__)
def test_the_public_functions_take_what_a_read_takes(function: Any) -> None:
    wanted = dict(inspect.signature(TableRead).parameters)
    del wanted["explain"]
    found = inspect.signature(function).parameters
    assert list(found) == list(wanted)
    for name, parameter in found.items():
        assert (parameter.kind, parameter.default) == (wanted[name].kind, wanted[name].default)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"s": [{"a": 1}] * 3, "n": [1, 2, 3]}), tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


@pytest.mark.parametrize("function", PUBLIC, ids=lambda it: it.__name__)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"limit": -1}, "limit is -1, it must not be negative"),
        ({"limit": 1.5}, "limit is of type float, wanted a whole number"),
        ({"columns": "s.a"}, "s.a is a part of column s, and columns come whole"),
        ({"columns": 7}, "columns"),
        ({"where": "m = 1"}, "m"),
        ({"policy": 7}, "policy is of type int"),
    ],
)
def test_what_cannot_be_is_refused_by_each_function(
    path: Path, function: Any, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(sb.PolicyError) as caught:
        function(path, **given)
    assert message in str(caught.value)


def test_a_read_is_told_of_when_rows_were_taken(path: Path) -> None:
    read = TableRead(path, where="n > 1", columns=["n"], limit=1)
    assert [batch.to_pydict() for batch in read.batches()] == [{"n": [2]}]
    assert read.report().rows == 1
    assert read.paths == [str(path)]
    assert read.schema.names == ["n"]
