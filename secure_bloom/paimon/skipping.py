"""Whether the indexes of a file let it be skipped for a predicate.

A Bloom filter answers ``=`` and IN, a bitmap index also IS NULL, an EMPTY index whatever needs a
value.  All else, and every column without an index, keeps the file.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from secure_bloom.errors import located
from secure_bloom.paimon.comparisons import (
    And,
    Comparison,
    Predicate,
    require_predicate,
)
from secure_bloom.paimon.container import FileIndex
from secure_bloom.paimon.data_types import DataType, Hashed, example_form, hashed_form
from secure_bloom.paimon.index_readers import FOR_VALUES, Forms, open_index
from secure_bloom.paimon.version_0_9 import joining


class Rules(enum.StrEnum):
    """By which rules the answers of several indexes become one."""

    #: A file is skipped only where no row of it can satisfy the predicate.
    SAFE = "safe"
    #: As Paimon 0.9 does, where it loses rows too.
    PAIMON_0_9 = "paimon-0.9"


def typed_forms(types: Mapping[str, DataType]) -> Forms:
    """The forms of values that are written as :func:`hash_value` takes them."""
    return _TypedForms(types)


@dataclass(frozen=True, slots=True)
class _TypedForms:
    types: Mapping[str, DataType]

    def __call__(self, column: str, value: object) -> Sequence[Hashed] | None:
        return None if value is None else (hashed_form(self.types[column], value),)

    def example(self, column: str) -> Hashed | None:
        return example_form(self.types[column]) if column in self.types else None


def must_read(
    index: FileIndex, predicate: Predicate, forms: Forms, *, rules: Rules = Rules.SAFE
) -> bool:
    """Whether the file may hold rows that satisfy ``predicate``; False is certain.

    By the rules of Paimon 0.9 it is whether Paimon reads the file, and nothing is certain.  Raises
    FormatError for a damaged index, UnsupportedFeatureError where a column that is asked for has an
    index of a type that Paimon does not have, and PolicyError for what is no predicate.
    """
    require_predicate(predicate)
    return _EVALUATIONS[rules](index, predicate, forms)


def paimon_loses_rows(index: FileIndex, predicate: Predicate, forms: Forms) -> bool:
    """Whether Paimon 0.9 skips a file that may hold rows which satisfy ``predicate``.

    Raises as :func:`must_read`.
    """
    return (
        not must_read(index, predicate, forms, rules=Rules.PAIMON_0_9)
        and must_read(index, predicate, forms)
        and not joining.rightly_skipped(index, predicate, forms)
    )


def _evaluate(index: FileIndex, predicate: Predicate, forms: Forms) -> bool:
    if isinstance(predicate, Comparison):
        with located(column=predicate.column):
            return _must_read(index, predicate, forms)
    # All are looked at, so that a damaged index is told whatever another one says.
    verdicts = [_evaluate(index, part, forms) for part in predicate.parts]
    return all(verdicts) if isinstance(predicate, And) else any(verdicts)


def _must_read(index: FileIndex, comparison: Comparison, forms: Forms) -> bool:
    readers = [open_index(each) for each in index.indexes(comparison.column)]
    if not all(reader.keeps(comparison.operator) for reader in readers):
        return False
    if not readers or comparison.operator not in FOR_VALUES:
        return True
    # All are looked at, so that a value which makes no sense is told whatever another one says.
    values = [forms(comparison.column, value) for value in comparison.values]
    every = frozenset(form for value in values for form in value or ())
    passing = [reader.passing(every) for reader in readers]
    # One value after the other, as Paimon takes a short IN for an OR: of two indexes each may have
    # another one of the values.
    return any(
        value is None or all(not found.isdisjoint(value) for found in passing) for value in values
    )


_EVALUATIONS: dict[Rules, Callable[[FileIndex, Predicate, Forms], bool]] = {
    Rules.SAFE: _evaluate,
    Rules.PAIMON_0_9: joining.reads,
}
