"""Which files can be skipped: the verdicts of Paimon's Java code."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from secure_bloom.errors import FormatError, SecureBloomError, UnsupportedFeatureError
from secure_bloom.paimon import (
    And,
    Comparison,
    DataType,
    FileIndex,
    Index,
    Operator,
    Or,
    must_read,
    typed_forms,
)
from secure_bloom.paimon.index_readers import Predicate
from tests.paimon.vectors import load, predicate_of, types_of

VECTORS = load("container")
TYPES = types_of(VECTORS["schema"])
#: Paimon 0.9 loses rows here: both indexes of ``k`` have the value 3, and it skips the file.
WRONG_IN_JAVA = ("bloom and bitmap on one column", ["in", "k", [3, 8]])
QUESTIONS = [
    pytest.param(case, predicate, answer, id=f"{case['name']} {predicate}")
    for case in VECTORS["cases"]
    if "error" not in case
    for predicate, answer in zip(case["predicates"], case["answers"], strict=True)
]


def verdict(content: str | FileIndex, predicate: Predicate) -> bool:
    index = FileIndex.from_bytes(base64.b64decode(content)) if isinstance(content, str) else content
    return must_read(index, predicate, typed_forms(TYPES))


@pytest.mark.parametrize(("case", "written", "answer"), QUESTIONS)
def test_verdicts_are_those_of_java(case: dict[str, Any], written: list[Any], answer: Any) -> None:
    """All but the one by which Paimon 0.9 loses rows."""
    predicate = predicate_of(written, TYPES)
    if isinstance(answer, str):
        with pytest.raises(SecureBloomError):
            verdict(case["file"], predicate)
        return
    lost = (case["name"], written) == WRONG_IN_JAVA
    assert verdict(case["file"], predicate) is (True if lost else bool(answer))


def _equal(column: str, value: object) -> Comparison:
    return Comparison(column=column, operator=Operator.EQUAL, values=(value,))


def test_the_error_for_an_unknown_index_names_type_and_column() -> None:
    index = FileIndex().with_indexes([("id", Index(type="future", body=b"x"))])
    with pytest.raises(UnsupportedFeatureError, match="column id: the index type 'future'"):
        verdict(index, _equal("id", 1))


def test_a_damaged_filter_is_an_error_even_where_another_column_decides() -> None:
    index = FileIndex().with_indexes(
        [
            ("e", Index(type="bloom-filter", body=None)),
            ("id", Index(type="bloom-filter", body=b"\0\0")),
        ]
    )
    for join in (And, Or):
        with pytest.raises(FormatError, match="column id"):
            verdict(index, join((_equal("e", 1), _equal("id", 1))))


@pytest.mark.parametrize("kind", ["bsi", "range-bitmap", "bitmap"])
def test_an_index_of_paimon_that_is_not_read_keeps_the_file(kind: str) -> None:
    index = FileIndex().with_indexes([("id", Index(type=kind, body=b"\2rest"))])
    for operator in Operator:
        assert verdict(index, Comparison(column="id", operator=operator, values=(1,)))


def test_a_timestamp_that_differs_only_below_the_precision_is_the_same() -> None:
    data_type = DataType.parse("TIMESTAMP(3)")
    forms = typed_forms({"ts": data_type})
    assert forms("ts", (5, 0)) == forms("ts", (5, 999_999))
