"""Whether the indexes of a file let it be skipped for a predicate, without losing a row.

A Bloom filter can rule out ``=`` and IN, a bitmap index also IS NULL, and an EMPTY index every
comparison that needs a value.  Other comparisons, and columns without an index, keep the file.
"""

from __future__ import annotations

from secure_bloom.errors import located
from secure_bloom.paimon.comparisons import FOR_VALUES, Comparison, Predicate
from secure_bloom.paimon.container import FileIndex
from secure_bloom.paimon.index_readers import open_index
from secure_bloom.paimon.value_forms import Forms
from secure_bloom.predicates.tree import is_true, mapped


def may_match(index: FileIndex, predicate: Predicate, forms: Forms) -> bool:
    """Return whether rows of the file may satisfy the predicate; False is certain."""

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
