"""The indexes of a column, opened: what each of them can say about a comparison.

Every reader has ``passing``, the values that the column may have, and ``keeps``, whether rows may
satisfy a comparison whatever its value is.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import TypeAlias

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.paimon.bitmap import ValueList, read_value_list
from secure_bloom.paimon.bloom_filter64 import BloomFilter64
from secure_bloom.paimon.comparisons import FOR_OTHER_VALUES, Operator
from secure_bloom.paimon.container import BITMAP, BLOOM_FILTER, Index
from secure_bloom.paimon.data_types import Hashed

#: The operators that no row satisfies in a column without any value.  By SQL no row satisfies != or
#: NOT IN there either, but Paimon keeps the file.
_NEEDS_A_VALUE = frozenset(Operator) - FOR_OTHER_VALUES - {Operator.IS_NULL}


class EmptyIndex:
    """The index of a column that has no value in this file."""

    def passing(self, values: frozenset[Hashed]) -> Set[Hashed]:  # noqa: ARG002
        """Return no value."""
        return frozenset()

    def keeps(self, operator: Operator) -> bool:
        """Return whether rows without a value can satisfy the comparison."""
        return operator not in _NEEDS_A_VALUE


class UnreadIndex:
    """An index of a type that Paimon has and that is not read here: it rules nothing out."""

    def passing(self, values: frozenset[Hashed]) -> Set[Hashed]:
        """Return all values."""
        return values

    def keeps(self, operator: Operator) -> bool:  # noqa: ARG002
        """Always."""
        return True


@dataclass(frozen=True, slots=True)
class BloomIndex:
    """A Bloom filter."""

    bloom_filter: BloomFilter64

    def passing(self, values: frozenset[Hashed]) -> Set[Hashed]:
        """Return the values that the filter lets pass."""
        return {value for value in values if self.bloom_filter.check_hash(value.hash())}

    def keeps(self, operator: Operator) -> bool:  # noqa: ARG002
        """Always: a filter knows single values only."""
        return True


@dataclass(frozen=True, slots=True)
class BitmapIndex:
    """A list of all values, with the rows that have each."""

    values: ValueList

    def passing(self, values: frozenset[Hashed]) -> Set[Hashed]:
        """Return the values that are listed."""
        return self.values.listed(values)

    def keeps(self, operator: Operator) -> bool:
        """Return whether there are nulls, or values, where the comparison needs them."""
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

    UnsupportedFeatureError for a type that Paimon does not have.
    """
    # EMPTY comes before the type, because it says the same for every type.
    if index.body is None:
        return EmptyIndex()
    read = _READERS.get(index.type)
    if read is None:
        raise UnsupportedFeatureError(f"the index type {index.type!r} is not known")
    return read(index.body)
