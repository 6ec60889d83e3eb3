"""The answers of single indexes to comparisons, as Paimon 0.9 gives them."""

from __future__ import annotations

import pytest

from secure_bloom.paimon import DataType, Operator
from secure_bloom.paimon.data_types import hashed_form
from secure_bloom.paimon.index_readers import EmptyIndex, UnreadIndex
from secure_bloom.paimon.version_0_9 import (
    Answer,
    Rows,
    Whole,
    answer,
    both,
    either,
    either_in_0_9,
    remains,
)

VALUES = frozenset({hashed_form(DataType.parse("INT"), 7)})


@pytest.mark.parametrize("operator", list(Operator))
def test_an_index_that_cannot_tell_leaves_every_row(operator: Operator) -> None:
    assert answer(UnreadIndex(), operator, VALUES) is Whole.REMAIN


@pytest.mark.parametrize(
    ("operator", "remains"),
    [
        (Operator.EQUAL, Whole.SKIP),
        (Operator.IN, Whole.SKIP),
        (Operator.IS_NOT_NULL, Whole.SKIP),
        (Operator.IS_NULL, Whole.REMAIN),
    ],
)
def test_a_column_without_values_has_rows_for_nulls_alone(
    operator: Operator, remains: Whole
) -> None:
    assert answer(EmptyIndex(), operator, VALUES) is remains


REMAIN, SKIP = Whole.REMAIN, Whole.SKIP
SOME, OTHER = Rows(0b0011), Rows(0b0110)


@pytest.mark.parametrize(
    ("first", "second", "and_", "or_"),
    [
        (REMAIN, REMAIN, REMAIN, REMAIN),
        (REMAIN, SKIP, SKIP, REMAIN),
        (SKIP, SKIP, SKIP, SKIP),
        (SOME, REMAIN, SOME, REMAIN),
        (SOME, SKIP, SKIP, SOME),
        (SOME, OTHER, Rows(0b0010), Rows(0b0111)),
    ],
)
def test_the_order_of_two_answers_does_not_matter(
    first: Answer, second: Answer, and_: Answer, or_: Answer
) -> None:
    assert both(first, second) == both(second, first) == and_
    assert either(first, second) == either(second, first) == or_


def test_before_1_1_rows_or_a_whole_answer_become_an_and() -> None:
    assert either_in_0_9(SOME, SKIP) == SKIP
    assert either_in_0_9(SOME, REMAIN) == SOME
    assert either_in_0_9(SKIP, SOME) == SOME
    assert either_in_0_9(SOME, OTHER) == Rows(0b0111)


@pytest.mark.parametrize(
    ("answer", "left"), [(REMAIN, True), (SKIP, False), (SOME, True), (Rows(0), False)]
)
def test_a_file_remains_if_a_row_does(answer: Answer, left: bool) -> None:
    assert remains(answer) is left
