"""The indexes of a column, opened to be asked: what each says of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.paimon.bitmap import ValueList, read_value_list
from secure_bloom.paimon.bloom_filter64 import BloomFilter64
from secure_bloom.paimon.comparisons import Operator
from secure_bloom.paimon.container import BITMAP, BLOOM_FILTER, Index
from secure_bloom.paimon.data_types import Hashed
from secure_bloom.paimon.version_0_9.answers import Answer, Rows, Whole

#: The forms of the values of a comparison, together; None where an index can not say for one.
Sought: TypeAlias = frozenset[Hashed] | None

#: The operators whose values an index is asked for, and their opposites.
FOR_VALUES = frozenset({Operator.EQUAL, Operator.IN})
NOT_FOR_VALUES = frozenset({Operator.NOT_EQUAL, Operator.NOT_IN})
#: What a bitmap tells the rows of, and what is true of all rows but those that it tells of.
_FOR_ROWS = FOR_VALUES | NOT_FOR_VALUES | {Operator.IS_NULL, Operator.IS_NOT_NULL}
_OF_OTHER_ROWS = NOT_FOR_VALUES | {Operator.IS_NOT_NULL}
#: What no row of a column without any value satisfies.
_NEEDS_A_VALUE = frozenset(Operator) - NOT_FOR_VALUES - {Operator.IS_NULL}


class Forms(Protocol):
    """How values stand in the indexes of columns."""

    def __call__(self, column: str, value: object) -> Sequence[Hashed] | None:
        """The forms in which the value may be in an index; None: no index can say."""
        ...

    def example(self, column: str) -> Hashed | None:
        """The form of some value; None for a column without one.

        A bitmap index has its rows of NULL behind a list that only the type tells the end of.
        """
        ...


class IndexReader(Protocol):
    """What one index says."""

    def passing(self, sought: frozenset[Hashed]) -> Set[Hashed]:
        """Those of the values that the column may have."""
        ...

    def keeps(self, operator: Operator) -> bool:
        """Whether rows may satisfy such a comparison, whatever the value."""
        ...

    def answer(self, operator: Operator, sought: Sought) -> Answer:
        """What Paimon's reader of this index answers to a comparison with these values.

        For the two IS it is an example of the column's values.
        """
        ...


class _Empty:
    """The column has no value."""

    def passing(self, sought: frozenset[Hashed]) -> Set[Hashed]:  # noqa: ARG002
        return frozenset()

    def keeps(self, operator: Operator) -> bool:
        return operator not in _NEEDS_A_VALUE

    def answer(self, operator: Operator, sought: Sought) -> Answer:  # noqa: ARG002
        return Whole.REMAIN if self.keeps(operator) else Whole.SKIP


class _Unread:
    """An index of Paimon's that is not read here."""

    def passing(self, sought: frozenset[Hashed]) -> Set[Hashed]:
        return sought

    def keeps(self, operator: Operator) -> bool:  # noqa: ARG002
        return True

    def answer(self, operator: Operator, sought: Sought) -> Answer:  # noqa: ARG002
        return Whole.REMAIN


@dataclass(frozen=True, slots=True)
class _Bloom:
    bloom_filter: BloomFilter64

    def passing(self, sought: frozenset[Hashed]) -> Set[Hashed]:
        return {value for value in sought if self.bloom_filter.check_hash(value.hash())}

    def keeps(self, operator: Operator) -> bool:  # noqa: ARG002
        return True

    def answer(self, operator: Operator, sought: Sought) -> Answer:
        if operator not in FOR_VALUES or sought is None or self.passing(sought):
            return Whole.REMAIN
        return Whole.SKIP


@dataclass(frozen=True, slots=True)
class _Bitmap:
    values: ValueList

    def passing(self, sought: frozenset[Hashed]) -> Set[Hashed]:
        return self.values.listed(sought)

    def keeps(self, operator: Operator) -> bool:
        if operator is Operator.IS_NULL:
            return self.values.has_null
        return operator is not Operator.IS_NOT_NULL or self.values.count > 0

    def answer(self, operator: Operator, sought: Sought) -> Answer:
        if operator not in _FOR_ROWS or sought is None:
            return Whole.REMAIN
        if operator in (Operator.IS_NULL, Operator.IS_NOT_NULL):
            rows = self.values.null_rows(sought)
        else:
            rows = self.values.rows_with(sought)
        return Rows(self.values.other_rows(rows) if operator in _OF_OTHER_ROWS else rows)


def _bitmap(body: bytes | memoryview) -> IndexReader:
    values = read_value_list(body)
    return _Unread() if values is None else _Bitmap(values)


_READERS: dict[str, Callable[[bytes | memoryview], IndexReader]] = {
    BLOOM_FILTER: lambda body: _Bloom(BloomFilter64.from_bytes(body)),
    BITMAP: _bitmap,
    "bsi": lambda _: _Unread(),
    "range-bitmap": lambda _: _Unread(),
}


def open_index(index: Index) -> IndexReader:
    """The reader of an index; UnsupportedFeatureError for a type that Paimon does not have."""
    if index.body is None:
        return _Empty()
    read = _READERS.get(index.type)
    if read is None:
        raise UnsupportedFeatureError(f"the index type {index.type!r} is not known")
    return read(index.body)
