"""The forms in which values are in the indexes of columns, found by the columns' types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.paimon import data_types, physical_values
from secure_bloom.paimon.data_types import DataType, Hashed
from secure_bloom.parquet.schema import Leaf


class Forms(Protocol):
    """The forms of values, by column."""

    def __call__(self, column: str, value: object) -> Sequence[Hashed] | None:
        """Return the forms in which the value may be in an index; None if no index can answer."""
        ...

    def example(self, column: str) -> Hashed | None:
        """Return the form of some value of the column; None for a column that has no form.

        A bitmap index stores the rows of its nulls after the list of values, and only the width of
        a value says where that list ends.
        """
        ...


@checked_arguments
def typed_forms(types: Mapping[str, DataType]) -> Forms:
    """Return the forms of values that are written as :func:`hash_value` takes them."""
    return _TypedForms(types)


@dataclass(frozen=True, slots=True)
class _TypedForms:
    """Forms by Paimon's types."""

    types: Mapping[str, DataType]

    def __call__(self, column: str, value: object) -> Sequence[Hashed] | None:
        return None if value is None else (data_types.hashed_form(self.types[column], value),)

    def example(self, column: str) -> Hashed | None:
        return data_types.example_form(self.types[column]) if column in self.types else None


@dataclass(frozen=True, slots=True)
class StoredForms:
    """Forms by the leaves of a Parquet schema; a column without a leaf has no form."""

    leaves: Mapping[str, Leaf]

    def __call__(self, column: str, value: object) -> tuple[Hashed, ...] | None:
        """Return the forms of a value; None for a column without a leaf."""
        leaf = self.leaves.get(column)
        return None if leaf is None else physical_values.value_forms(leaf, value)

    def example(self, column: str) -> Hashed | None:
        """Return the form of some value of the column; None for a column that has no form."""
        leaf = self.leaves.get(column)
        return None if leaf is None else physical_values.example_form(leaf)
