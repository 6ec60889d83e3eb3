"""Find the columns that gain by a filter: tried on a part of the table, before any write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names

if TYPE_CHECKING:
    from secure_bloom.advising.advisor import advise
    from secure_bloom.advising.table_advice import ColumnAdvice, TableAdvice

_HOMES = {"advisor": ["advise"], "table_advice": ["ColumnAdvice", "TableAdvice"]}

__all__ = ["ColumnAdvice", "TableAdvice", "advise"]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
