"""An open table as a Polars LazyFrame, through Polars' public plugin for sources of rows.

Columns, the number of rows and the parts of a predicate that have the same meaning here are pushed
down.  Polars' own predicate is applied to the rows once more, so the answer is always Polars' own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from secure_bloom.calling.options import MissingKeys
from secure_bloom.errors import (
    MissingExtraError,
    PolicyError,
    SecureBloomError,
    install_hint,
)
from secure_bloom.predicates.bound_request import HiddenColumns, without
from secure_bloom.predicates.from_polars import from_polars
from secure_bloom.predicates.tree import (
    NULL_TESTS,
    AllOf,
    Condition,
    Operator,
    Predicate,
    leaves,
)
from secure_bloom.reading.lent_types import Lent
from secure_bloom.reading.read_request import Question

if TYPE_CHECKING:
    import polars as pl

    from secure_bloom.parquet.members import Member
    from secure_bloom.reading.table_read import AskedTable


def scan(
    table: AskedTable,
    missing_keys: MissingKeys = MissingKeys.ERROR,
    failed: Callable[[SecureBloomError], object] | None = None,
    *,
    computed: Collection[Member] = (),
    unused: frozenset[Member] = frozenset(),
    lend: Callable[[pa.Schema], Lent] = Lent.to_polars,
) -> pl.LazyFrame:
    """Return the rows of a table as a LazyFrame. Raises MissingExtraError without Polars.

    ``failed`` is called with an error of a read, before Polars wraps it in one of its own.
    ``computed`` are hidden members whose columns may not be asked for, and ``unused`` are members
    that no read needs.  ``lend`` says in which types the columns are handed over.
    """
    try:
        import polars as pl
        from polars.io.plugins import register_io_source
    except ImportError as exc:
        raise MissingExtraError("scan_polars() needs Polars", hint=install_hint("polars")) from exc
    hidden = without(unused) if unused else table.hidden(missing_keys)
    arrow = table.shown_schema(hidden)
    lent = lend(arrow)
    is_checked = missing_keys is MissingKeys.NULL and bool(hidden.members)

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        if predicate is not None:
            # A predicate that is an error of Polars is one even if no row is left to it.
            nulls.filter(predicate)
        try:
            if is_checked and predicate is not None:
                _refuse_hidden(predicate, nulls.schema, arrow, hidden)
            asked_for = arrow.names if columns is None else columns
            for member in sorted(computed) if is_checked else ():
                if member[0] in asked_for:
                    raise hidden.unusable(".".join(member))
            question = _question(table, nulls.schema, columns, predicate, rows, missing_keys)
            lent.check(question.columns)
            for batch in table.ask(question, unused=unused).batches():
                frame = pl.DataFrame(lent.rows(batch))
                frame = frame if predicate is None else frame.filter(predicate)
                yield frame if columns is None else frame.select(columns)
        except SecureBloomError as error:
            if failed is not None:
                failed(error)
            raise

    nulls = pl.DataFrame(pa.Table.from_batches([], lent.schema)).clear(1)
    return register_io_source(source, schema=nulls.schema)


def _refuse_hidden(
    predicate: pl.Expr, schema: pl.Schema, arrow: pa.Schema, hidden: HiddenColumns
) -> None:
    """Raise KeyUnavailableError for a predicate on a hidden column, or on a hidden member."""
    try:
        conditions = list(leaves(from_polars(predicate, schema)))
    except PolicyError:
        for name in hidden.columns.intersection(predicate.meta.root_names()):
            raise hidden.unusable(name) from None
        return
    for condition in conditions:
        path = condition.path or (condition.column,)
        hidden.check(path, arrow.field(path[0]))


def _question(
    table: AskedTable,
    schema: pl.Schema,
    columns: list[str] | None,
    predicate: pl.Expr | None,
    rows: int | None,
    missing_keys: MissingKeys,
) -> Question:
    import polars as pl

    names = columns
    if columns is not None and predicate is not None:
        names = list(dict.fromkeys([*columns, *predicate.meta.root_names()]))
    if names is not None and not names:
        # Polars only counts rows: any column that can be read has their number.
        known = [name for name, kind in schema.items() if kind != pl.Null]
        names = [table.countable(known or schema.names())]
    # Polars counts rows before it applies the predicate, so no row may be left out then.
    found = None if predicate is None or rows is not None else _pushed(predicate, schema)
    return Question(found, columns=names, limit=rows, missing_keys=missing_keys.value)


def _pushed(predicate: pl.Expr, schema: pl.Schema) -> Predicate | None:
    """Return the part of a predicate that means the same here as in Polars, or None.

    Rows for which the predicate is true are among those for which the result is true.
    """
    parts = []
    for part in _joined_by_and(predicate):
        with suppress(PolicyError):
            found = from_polars(part, schema)
            if all(_means_the_same(it, schema) for it in leaves(found)):
                parts.append(found)
    return parts[0] if len(parts) == 1 else AllOf(parts=tuple(parts)) if parts else None


def _joined_by_and(predicate: pl.Expr) -> list[pl.Expr]:
    """Return the parts that AND joins, in their order; none of an expression that nests too deep.

    The expression is serialized once, because a chain of a thousand parts nests a thousand deep.
    """
    try:
        left = [(json.loads(predicate.meta.serialize(format="json")), predicate)]
    except RecursionError:
        return []
    parts = []
    while left:
        content, part = left.pop()
        joined = content.get("BinaryExpr", {}) if isinstance(content, dict) else {}
        if joined.get("op") == "And":
            contents = joined["left"], joined["right"]
            left += reversed(list(zip(contents, reversed(part.meta.pop()), strict=True)))
        else:
            parts.append(part)
    return parts


def _means_the_same(condition: Condition, schema: pl.Schema) -> bool:
    """Return whether Polars compares the values of the column as they are, in their usual order."""
    import polars as pl

    found = _member(condition.path or (condition.column,), schema)
    if found is None:
        return False
    if condition.operator in NULL_TESTS:
        return True
    kinds = {_kind(value) for value in condition.values}
    if isinstance(found, pl.Enum | pl.Categorical):
        # An Enum is ordered by its categories, and a Categorical may be.
        return condition.operator in _EQUALITIES and kinds <= {pl.String}
    # A value of another type is cast, or the column is, and either may round.
    kind = _kind_of(found)
    return kind is not None and kinds <= {kind}


def _member(path: tuple[str, ...], schema: pl.Schema) -> pl.DataType | None:
    """Return the type of a column, or of a member of a structure, or None if there is none."""
    import polars as pl

    found: pl.DataType | None = pl.Struct(schema)
    for name in path:
        found = found.to_schema().get(name) if isinstance(found, pl.Struct) else None
    return found


def _kind(value: object) -> object:
    """Return the kind of a literal. The prefix that starts_with looks for is a text."""
    import polars as pl

    if not isinstance(value, pa.Scalar):
        return pl.String
    return _kind_of(pl.Series(pa.nulls(0, value.type)).dtype)


def _kind_of(dtype: pl.DataType) -> object:
    """Return a key that is equal for types that Polars compares with each other exactly.

    Return None for floating-point types: Polars rounds numbers to them.  Polars compares two
    timestamps of different units in the coarser unit.
    """
    import polars as pl

    if dtype.is_float() or dtype.is_nested():
        return None
    if dtype.is_integer():
        return "integer"
    return pl.Decimal if isinstance(dtype, pl.Decimal) else dtype


_EQUALITIES = {Operator.EQUAL, Operator.NOT_EQUAL, Operator.IN, Operator.NOT_IN}
