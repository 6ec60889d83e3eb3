"""The answers of single indexes to comparisons, as Paimon 0.9 gives them."""

from __future__ import annotations

import pytest

from secure_bloom.paimon import DataType, Operator
from secure_bloom.paimon.data_types import hashed_form
from secure_bloom.paimon.index_readers import EmptyIndex, UnreadIndex
from secure_bloom.paimon.version_0_9.answers import Whole
from secure_bloom.paimon.version_0_9.index_answers import answer

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
