"""Whether the indexes of a file let it be skipped for a predicate.

A Bloom filter answers ``=`` and IN, a bitmap index also IS NULL, an EMPTY index whatever needs a
value.  All else, and every column without an index, keeps the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from secure_bloom.errors import UnsupportedFeatureError, located
from secure_bloom.paimon.bitmap import ValueList, read_value_list
from secure_bloom.paimon.bloom import BloomFilter64
from secure_bloom.paimon.container import BITMAP, BLOOM_FILTER, FileIndex, Index
from secure_bloom.paimon.predicates import (
    And,
    Comparison,
    Operator,
    Predicate,
    require_predicate,
)
from secure_bloom.paimon.types import DataType, Hashed, hashed_form

#: (column, value) -> the forms in which the value may be in an index; None: no index can say.
Forms = Callable[[str, object], Sequence[Hashed] | None]

#: What no row of a column without any value satisfies.
_NEEDS_A_VALUE = frozenset(Operator) - {Operator.NOT_EQUAL, Operator.NOT_IN, Operator.IS_NULL}


def typed_forms(types: Mapping[str, DataType]) -> Forms:
    """The forms of values that are written as :func:`hash_value` takes them."""

    def forms(column: str, value: object) -> Sequence[Hashed] | None:
        return None if value is None else (hashed_form(types[column], value),)

    return forms


def must_read(index: FileIndex, predicate: Predicate, forms: Forms) -> bool:
    """Whether the file may hold rows that satisfy ``predicate``; False is certain.

    Raises FormatError for a damaged index, UnsupportedFeatureError where a column that is asked for
    has an index of a type that Paimon does not have, and PolicyError for what is no predicate.
    """
    require_predicate(predicate)
    return _evaluate(index, predicate, forms)


def _evaluate(index: FileIndex, predicate: Predicate, forms: Forms) -> bool:
    if isinstance(predicate, Comparison):
        with located(column=predicate.column):
            return _must_read(index, predicate, forms)
    # All are looked at, so that a damaged index is told whatever another one says.
    verdicts = [_evaluate(index, part, forms) for part in predicate.parts]
    return all(verdicts) if isinstance(predicate, And) else any(verdicts)


def _must_read(index: FileIndex, comparison: Comparison, forms: Forms) -> bool:
    readers = [_open(each) for each in index.indexes(comparison.column)]
    if not all(reader.keeps(comparison.operator) for reader in readers):
        return False
    if not readers or comparison.operator not in (Operator.EQUAL, Operator.IN):
        return True
    # All are looked at, so that a value which makes no sense is told whatever another one says.
    values = [forms(comparison.column, value) for value in comparison.values]
    every = frozenset(form for value in values for form in value or ())
    passing = [reader.passing(every) for reader in readers]
    # One value after the other, as Paimon takes an IN for an OR: of two indexes each may have
    # another one of the values.
    return any(
        value is None or all(not found.isdisjoint(value) for found in passing) for value in values
    )


class _Reader(Protocol):
    """What one index says."""

    def passing(self, sought: frozenset[Hashed]) -> Set[Hashed]:
        """Those of the values that the column may have."""
        ...

    def keeps(self, operator: Operator) -> bool:
        """Whether rows may satisfy such a comparison, whatever the value."""
        ...


class _Empty:
    """The column has no value."""

    def passing(self, sought: frozenset[Hashed]) -> Set[Hashed]:  # noqa: ARG002
        return frozenset()

    def keeps(self, operator: Operator) -> bool:
        return operator not in _NEEDS_A_VALUE


class _Unread:
    """An index of Paimon's that is not read here."""

    def passing(self, sought: frozenset[Hashed]) -> Set[Hashed]:
        return sought

    def keeps(self, operator: Operator) -> bool:  # noqa: ARG002
        return True


@dataclass(frozen=True, slots=True)
class _Bloom:
    bloom_filter: BloomFilter64

    def passing(self, sought: frozenset[Hashed]) -> Set[Hashed]:
        return {value for value in sought if self.bloom_filter.check_hash(value.hash())}

    def keeps(self, operator: Operator) -> bool:  # noqa: ARG002
        return True


@dataclass(frozen=True, slots=True)
class _Bitmap:
    values: ValueList

    def passing(self, sought: frozenset[Hashed]) -> Set[Hashed]:
        return self.values.listed(sought)

    def keeps(self, operator: Operator) -> bool:
        if operator is Operator.IS_NULL:
            return self.values.has_null
        return operator is not Operator.IS_NOT_NULL or self.values.count > 0


def _bitmap(body: bytes | memoryview) -> _Reader:
    values = read_value_list(body)
    return _Unread() if values is None else _Bitmap(values)


_READERS: dict[str, Callable[[bytes | memoryview], _Reader]] = {
    BLOOM_FILTER: lambda body: _Bloom(BloomFilter64.from_bytes(body)),
    BITMAP: _bitmap,
    "bsi": lambda _: _Unread(),
    "range-bitmap": lambda _: _Unread(),
}


def _open(index: Index) -> _Reader:
    if index.body is None:
        return _Empty()
    read = _READERS.get(index.type)
    if read is None:
        raise UnsupportedFeatureError(f"the index type {index.type!r} is not known")
    return read(index.body)
