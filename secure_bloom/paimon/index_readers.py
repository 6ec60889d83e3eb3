"""Open the indexes of a column, and ask them about a comparison.

Every reader has ``passing``, which returns the values that the column may have, and ``keeps``,
which returns whether rows may satisfy a comparison whatever its value is.

``may_match`` asks them whether a file can be skipped for a predicate without losing a row.  A Bloom
filter can rule out ``=`` and IN, a bitmap index also IS NULL, and an EMPTY index every comparison
that needs a value.  Other comparisons, and columns without an index, keep the file.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import TypeAlias

from secure_bloom.errors import UnsupportedFeatureError, located
from secure_bloom.paimon.bitmap import ValueList, read_value_list
from secure_bloom.paimon.bloom_filter64 import BloomFilter64
from secure_bloom.paimon.comparisons import (
    FOR_OTHER_VALUES,
    FOR_VALUES,
    Comparison,
    Operator,
    Predicate,
)
from secure_bloom.paimon.container import BITMAP, BLOOM_FILTER, FileIndex, Index
from secure_bloom.paimon.data_types import Hashed
from secure_bloom.paimon.physical_values import Forms
from secure_bloom.predicates.tree import is_true, mapped

#: The operators that no row satisfies in a column without any value.  By SQL no row satisfies != or
#: NOT IN there either, but Paimon keeps the file.
_NEEDS_A_VALUE = frozenset(Operator) - FOR_OTHER_VALUES - {Operator.IS_NULL}


class EmptyIndex:
    """The index of a column that has no value in this file."""

    def passing(self, values: frozenset[Hashed]) -> Set[Hashed]:  # noqa: ARG002
        """Return an empty set."""
        return frozenset()

    def keeps(self, operator: Operator) -> bool:
        """Return whether rows without a value can satisfy the comparison."""
        return operator not in _NEEDS_A_VALUE


class UnreadIndex:
    """An index of a type that Paimon has but this package does not read: it rules nothing out."""

    def passing(self, values: frozenset[Hashed]) -> Set[Hashed]:
        """Return all values."""
        return values

    def keeps(self, operator: Operator) -> bool:  # noqa: ARG002
        """Return True."""
        return True


@dataclass(frozen=True, slots=True)
class BloomIndex:
    """A Bloom filter."""

    bloom_filter: BloomFilter64

    def passing(self, values: frozenset[Hashed]) -> Set[Hashed]:
        """Return the values that pass the filter."""
        return {value for value in values if self.bloom_filter.check_hash(value.hash())}

    def keeps(self, operator: Operator) -> bool:  # noqa: ARG002
        """Return True: a filter knows single values only."""
        return True


@dataclass(frozen=True, slots=True)
class BitmapIndex:
    """A list of all values, with the rows that have each."""

    values: ValueList

    def passing(self, values: frozenset[Hashed]) -> Set[Hashed]:
        """Return the values that are listed."""
        return self.values.listed(values)

    def keeps(self, operator: Operator) -> bool:
        """Return whether the column has nulls, or values, as the comparison needs."""
        if operator is Operator.IS_NULL:
            return self.values.has_null
        return operator is not Operator.IS_NOT_NULL or self.values.count > 0


AnyIndex: TypeAlias = EmptyIndex | UnreadIndex | BloomIndex | BitmapIndex


def _bitmap(body: bytes | memoryview) -> AnyIndex:
    values = read_value_list(body)
    return UnreadIndex() if values is None else BitmapIndex(values)


_READERS: dict[str, Callable[[bytes | memoryview], AnyIndex]] = {
    BLOOM_FILTER: lambda body: BloomIndex(BloomFilter64.from_bytes(body)),
    BITMAP: _bitmap,
    # Known by name and not read: without its answer the file is kept.
    "bsi": lambda _: UnreadIndex(),
    "range-bitmap": lambda _: UnreadIndex(),
}


def open_index(index: Index) -> AnyIndex:
    """Return the reader of an index.

    Raises UnsupportedFeatureError for a type that Paimon does not have.
    """
    # EMPTY comes before the type, because it says the same for every type.
    if index.body is None:
        return EmptyIndex()
    read = _READERS.get(index.type)
    if read is None:
        raise UnsupportedFeatureError(f"the index type {index.type!r} is not known")
    return read(index.body)


def may_match(index: FileIndex, predicate: Predicate, forms: Forms) -> bool:
    """Return whether rows of the file may satisfy the predicate. False is certain."""

    def may_match_one(comparison: Comparison) -> bool:
        with located(column=comparison.column):
            return _may_match(index, comparison, forms)

    # All comparisons first: a damaged index is an error, whatever another index says.
    return is_true(mapped(predicate, may_match_one), bool)


def _may_match(index: FileIndex, comparison: Comparison, forms: Forms) -> bool:
    readers = [open_index(each) for each in index.indexes(comparison.column)]
    if not all(reader.keeps(comparison.operator) for reader in readers):
        return False
    if not readers or comparison.operator not in FOR_VALUES:
        return True
    # No short cut: a value that does not fit the column is an error, whatever another value says.
    values = [forms(comparison.column, value) for value in comparison.values]
    every = frozenset(form for value in values for form in value or ())
    passing = [reader.passing(every) for reader in readers]
    # Value by value, because Paimon reads a short IN as an OR: each of two indexes may let another
    # value pass, and then no single value passes both.
    return any(
        value is None or all(not found.isdisjoint(value) for found in passing) for value in values
    )
