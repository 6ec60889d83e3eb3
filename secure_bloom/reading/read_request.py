"""A caller's requests: for a table, a question to it, and both at once.

This module loads no pyarrow, because a probe needs none.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, cast

from secure_bloom.calling.arguments import check_fields, member_of
from secure_bloom.calling.options import MissingKeys, Names, as_names
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.table_format import TableVersion
from secure_bloom.predicates.tree import AllOf, AnyOf, Condition, Predicate
from secure_bloom.running.memory_budget import size_of_text
from secure_bloom.storage.paths import Paths, as_paths
from secure_bloom.storage.table_objects import version_of

if TYPE_CHECKING:
    import polars as pl
    import pyarrow.compute as pc

    from secure_bloom.storage.store_grants import StoreGrant

#: A condition in one of its forms, as :func:`read_table` describes them.
Where: TypeAlias = "str | pc.Expression | pl.Expr | Mapping[str, object] | Sequence[object]"


# No repr of any request: it holds keys or cell values, and they must not reach a log.
@dataclass(frozen=True, eq=False, repr=False)
class TableRequest:
    """Where a table is, which version of it is wanted, and the keys of its files."""

    paths: Paths
    _: KW_ONLY
    keys: GivenKeys = None
    policy: GivenPolicy = None
    allow_unverified: bool = False
    allow_unprotected: bool = False
    version: int | None = None
    timestamp: str | datetime | None = None
    snapshot: int | None = None
    storage_options: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def grant(self) -> StoreGrant | None:
        """Return the right to the table's objects by ``storage_options``, or None."""
        if self.storage_options is None and isinstance(self.paths, str | list):
            return None
        from secure_bloom.storage.storage_options import storage_grant

        return storage_grant(self.paths, self.storage_options)

    def access(self) -> Access:
        """Return whose keys are used, and which files are accepted."""
        return Access.of(
            self.keys,
            self.policy,
            allow_unverified=self.allow_unverified,
            allow_unprotected=self.allow_unprotected,
            # Paths that come one by one can be asked for only once.
            paths=() if isinstance(self.paths, Iterator) else as_paths(self.paths, to_commit=True),
        )

    def at(self) -> TableVersion:
        """Return the version of the table that is asked for."""
        version = self.version
        if (version, self.timestamp, self.snapshot) == (None, None, None):
            # A table of deltalake is one version.
            version = version_of(self.paths)
        return TableVersion(version=version, timestamp=self.timestamp, snapshot=self.snapshot)


@dataclass(frozen=True, eq=False, repr=False)
class OpenRequest(TableRequest):
    """The arguments of :func:`secure_bloom.open_table`."""

    _: KW_ONLY
    memory: int | str = "256MiB"
    stale_after: float = 0
    missing_keys: str = MissingKeys.ERROR.value

    def __post_init__(self) -> None:
        super().__post_init__()
        member_of(MissingKeys, "missing_keys", self.missing_keys)
        if not 0 <= self.stale_after < math.inf:
            raise PolicyError(
                f"stale_after is {self.stale_after!r}, wanted a number of seconds, 0 or more"
            )

    def most_bytes(self) -> int:
        """Return the bytes that the table may keep. Raises PolicyError for an invalid size."""
        given = self.memory
        size = size_of_text(given) if isinstance(given, str) else operator.index(given)
        if size is None or size < 0:
            raise PolicyError(
                f"memory is {given!r}, wanted a size", hint='write memory="256MiB" or a number'
            )
        return size


@dataclass(frozen=True, eq=False, repr=False)
class Question:
    """The rows and columns that a read asks for."""

    where: Where | Predicate | None = None
    _: KW_ONLY
    columns: Names | None = None
    limit: int | None = None
    parameters: Mapping[str, object] | None = None
    without_filter_keys: bool = False
    missing_keys: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.missing_keys is not None:
            member_of(MissingKeys, "missing_keys", self.missing_keys)

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

    def predicate(self) -> Predicate | None:
        """Return the predicate that ``where`` describes in one of its forms, or None."""
        where = self.where
        if self.parameters is not None and not isinstance(where, str):
            raise PolicyError(
                "parameters need a condition given as a text with :name placeholders",
                hint='where="email = :email", parameters={"email": value}',
            )
        if where is None or isinstance(where, Condition | AllOf | AnyOf):
            return where
        if isinstance(where, str):
            from secure_bloom.predicates.from_text import from_text

            return from_text(where, self.parameters)
        import pyarrow.compute as pc

        if isinstance(where, pc.Expression):
            from secure_bloom.predicates.from_pyarrow import from_expression

            return from_expression(where)
        from secure_bloom.predicates.from_polars import from_polars, is_polars

        if is_polars(where):
            return from_polars(cast("pl.Expr", where))
        from secure_bloom.predicates.from_tuples import from_structure

        return from_structure(where)


@dataclass(frozen=True, eq=False, repr=False)
class ReadRequest(Question, TableRequest):
    """The arguments of the functions of one read, as :func:`read_table` describes them."""

    _: KW_ONLY
    missing_keys: str | None = MissingKeys.ERROR.value
