"""What a read takes, and what of it cannot be, told before a row is read."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.reading import ReadRequest

PUBLIC = [sb.read_table, sb.read_batches, sb.explain, sb.plan_read]


@pytest.mark.parametrize("function", PUBLIC, ids=lambda it: it.__name__)
def test_the_public_functions_show_what_they_take(function: Any) -> None:
    shown = inspect.signature(function)
    assert shown.parameters == inspect.signature(ReadRequest).parameters
    assert str(shown).startswith("(paths: 'Paths', where: ")
    assert [it.name for it in shown.parameters.values() if it.kind is it.POSITIONAL_OR_KEYWORD] == [
        "paths",
        "where",
    ]
    assert shown.return_annotation in {
        "pa.Table",
        "pa.RecordBatchReader",
        "ReadReport",
        "ReadPlan",
    }


@pytest.mark.parametrize("function", PUBLIC, ids=lambda it: it.__name__)
def test_an_argument_that_is_none_is_a_type_error(function: Any) -> None:
    with pytest.raises(TypeError, match="'wher'"):
        function("x.parquet", wher="n = 1")


def test_a_request_does_not_show_its_condition() -> None:
    assert "secret" not in repr(ReadRequest("x.parquet", where="email = 'secret'"))


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
        ({"columns": "s.z"}, "there is no column s.z"),
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
