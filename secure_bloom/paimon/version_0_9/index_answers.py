"""What Paimon's reader of one index answers to a comparison."""

from __future__ import annotations

from typing import TypeAlias

from secure_bloom.paimon.comparisons import FOR_OTHER_VALUES, FOR_VALUES, Operator
from secure_bloom.paimon.data_types import Hashed
from secure_bloom.paimon.index_readers import AnyIndex, BitmapIndex, BloomIndex, EmptyIndex
from secure_bloom.paimon.version_0_9 import bitmap_rows
from secure_bloom.paimon.version_0_9.answers import Answer, Rows, Whole

#: The forms of all values of a comparison; None where an index cannot tell for one of them.
Values: TypeAlias = frozenset[Hashed] | None

_NULL_TESTS = frozenset({Operator.IS_NULL, Operator.IS_NOT_NULL})
#: The comparisons to which a bitmap answers with rows.
_FOR_ROWS = FOR_VALUES | FOR_OTHER_VALUES | _NULL_TESTS
#: The comparisons that are true for all rows but those that the bitmap has for the values.
_FOR_OTHER_ROWS = FOR_OTHER_VALUES | {Operator.IS_NOT_NULL}


def answer(reader: AnyIndex, operator: Operator, values: Values) -> Answer:
    """The answer of an index; for IS NULL and IS NOT NULL ``values`` is an example of a value."""
    if isinstance(reader, EmptyIndex):
        return Whole.REMAIN if reader.keeps(operator) else Whole.SKIP
    if isinstance(reader, BloomIndex) and operator in FOR_VALUES and values is not None:
        return Whole.REMAIN if reader.passing(values) else Whole.SKIP
    if isinstance(reader, BitmapIndex) and operator in _FOR_ROWS and values is not None:
        return _rows(reader, operator, values)
    return Whole.REMAIN


def _rows(reader: BitmapIndex, operator: Operator, values: frozenset[Hashed]) -> Rows:
    listed = reader.values
    rows_of = bitmap_rows.null_rows if operator in _NULL_TESTS else bitmap_rows.rows_with
    rows = rows_of(listed, values)
    return Rows(bitmap_rows.other_rows(listed, rows) if operator in _FOR_OTHER_ROWS else rows)
