"""A caller's request to read: the files, the rows and columns, and the keys."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, cast

import pyarrow.compute as pc

from secure_bloom.calling.arguments import check_fields
from secure_bloom.calling.options import Names, as_names
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.errors import PolicyError
from secure_bloom.predicates.from_polars import from_polars, is_polars
from secure_bloom.predicates.from_pyarrow import from_expression
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.from_tuples import from_structure
from secure_bloom.predicates.tree import AllOf, AnyOf, Condition, Predicate
from secure_bloom.storage.paths import Paths

if TYPE_CHECKING:
    import polars as pl

#: A condition in one of its forms, as :func:`read_table` describes them.
Where: TypeAlias = "str | pc.Expression | pl.Expr | Mapping[str, object] | Sequence[object]"


# No repr: the condition holds cell values, and they must not reach a log.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReadRequest:
    """The arguments of the functions that read, as :func:`read_table` describes them."""

    paths: Paths
    _: KW_ONLY
    where: Where | Predicate | None = None
    columns: Names | None = None
    limit: int | None = None
    keys: GivenKeys = None
    policy: GivenPolicy = None
    without_filter_keys: bool = False
    allow_unverified: bool = False
    allow_unprotected: bool = False
    version: int | None = None
    timestamp: str | datetime | None = None
    snapshot: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def wanted_columns(self) -> list[str] | None:
        """Return the columns as a list, or None for all."""
        return None if self.columns is None else as_names("columns", self.columns)

    def whole_limit(self) -> int | None:
        """Return the limit as a number.

        Raises PolicyError unless it is a whole number that is not negative.
        """
        if self.limit is None:
            return None
        rows = operator.index(self.limit)
        if rows < 0:
            raise PolicyError(f"limit is {rows}, it must not be negative")
        return rows

    def access(self) -> Access:
        """Return whose keys the read uses, and which files it accepts."""
        return Access.of(
            self.keys,
            self.policy,
            allow_unverified=self.allow_unverified,
            allow_unprotected=self.allow_unprotected,
        )

    def predicate(self) -> Predicate | None:
        """Return the predicate that ``where`` describes in one of its forms, or None."""
        where = self.where
        if where is None or isinstance(where, Condition | AllOf | AnyOf):
            return where
        if isinstance(where, str):
            return from_text(where)
        if isinstance(where, pc.Expression):
            return from_expression(where)
        if is_polars(where):
            return from_polars(cast("pl.Expr", where))
        return from_structure(where)
