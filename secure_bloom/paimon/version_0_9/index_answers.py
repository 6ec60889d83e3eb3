"""The answer of Paimon's reader of one index to a comparison: every row, no row, or some rows.

Paimon joins the answers of several indexes, and of several comparisons, by AND and OR.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from secure_bloom.paimon.comparisons import FOR_OTHER_VALUES, FOR_VALUES, Operator
from secure_bloom.paimon.data_types import Hashed
from secure_bloom.paimon.index_readers import AnyIndex, BitmapIndex, BloomIndex, EmptyIndex
from secure_bloom.paimon.version_0_9 import bitmap_rows


class Whole(enum.Enum):
    """An answer for the whole file, which names no rows."""

    REMAIN = enum.auto()
    SKIP = enum.auto()


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a bitmap: bit ``i`` is row ``i``."""

    bits: int


Answer: TypeAlias = Whole | Rows


def remains(answer: Answer) -> bool:
    """Return whether a row is left."""
    return answer.bits != 0 if isinstance(answer, Rows) else answer is Whole.REMAIN


def both(first: Answer, second: Answer) -> Answer:
    """AND."""
    if isinstance(first, Whole):
        return second if first is Whole.REMAIN else first
    if isinstance(second, Whole):
        return first if second is Whole.REMAIN else second
    return Rows(first.bits & second.bits)


def either(first: Answer, second: Answer) -> Answer:
    """OR."""
    if isinstance(first, Whole):
        return first if first is Whole.REMAIN else second
    if isinstance(second, Whole):
        return second if second is Whole.REMAIN else first
    return Rows(first.bits | second.bits)


def either_in_0_9(first: Answer, second: Answer) -> Answer:
    """OR before Paimon 1.1: rows joined with an answer for the whole file become an AND."""
    if isinstance(first, Rows) and isinstance(second, Whole):
        return both(first, second)
    return either(first, second)


#: The forms of all values of a comparison; None where an index cannot tell for one of them.
Values: TypeAlias = frozenset[Hashed] | None

_NULL_TESTS = frozenset({Operator.IS_NULL, Operator.IS_NOT_NULL})
#: The comparisons to which a bitmap answers with rows.
_FOR_ROWS = FOR_VALUES | FOR_OTHER_VALUES | _NULL_TESTS
#: The comparisons that are true for all rows but those that the bitmap has for the values.
_FOR_OTHER_ROWS = FOR_OTHER_VALUES | {Operator.IS_NOT_NULL}


def answer(reader: AnyIndex, operator: Operator, values: Values) -> Answer:
    """Return the answer of an index.

    For IS NULL and IS NOT NULL ``values`` is an example of a value.
    """
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
