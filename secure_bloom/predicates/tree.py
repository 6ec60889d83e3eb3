"""A predicate: a tree of conditions on columns, joined by AND and OR.

The tree has no NOT.  Each operator has an opposite, so a negation is moved down to the conditions.
Nulls allow that: a comparison with null is neither true nor false, and neither is its opposite. The
opposite of ``<`` is not ``>=``: for a NaN both ``<`` and ``>=`` are false, so ``not <`` is an
operator of its own.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar, Union

from secure_bloom.errors import PolicyError

if TYPE_CHECKING:
    import pyarrow as pa


class Operator(enum.StrEnum):
    """The comparisons of a column with values."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "in"
    NOT_IN = "not in"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"
    ILIKE = "ilike"
    NOT_ILIKE = "not ilike"
    NOT_LESS = "not <"
    NOT_LESS_OR_EQUAL = "not <="
    NOT_GREATER = "not >"
    NOT_GREATER_OR_EQUAL = "not >="


#: Operators that look single values up, as a Bloom filter or a dictionary can.
LOOKUPS = frozenset({Operator.EQUAL, Operator.IN})


_OPPOSITES = {
    Operator.EQUAL: Operator.NOT_EQUAL,
    Operator.LESS: Operator.NOT_LESS,
    Operator.LESS_OR_EQUAL: Operator.NOT_LESS_OR_EQUAL,
    Operator.GREATER: Operator.NOT_GREATER,
    Operator.GREATER_OR_EQUAL: Operator.NOT_GREATER_OR_EQUAL,
    Operator.IN: Operator.NOT_IN,
    Operator.IS_NULL: Operator.IS_NOT_NULL,
    Operator.ILIKE: Operator.NOT_ILIKE,
}
_OPPOSITES |= {after: before for before, after in _OPPOSITES.items()}
#: How operators are written; some also as in Python and SQL.
_SPELLINGS: dict[str, Operator] = {it.value: it for it in Operator}
_SPELLINGS |= {"==": Operator.EQUAL, "<>": Operator.NOT_EQUAL}
#: Operators that take no value.
NULL_TESTS = {Operator.IS_NULL, Operator.IS_NOT_NULL}
_LISTS = {Operator.IN, Operator.NOT_IN}
#: Deeper than anyone writes; trees are walked by recursion, so they need a limit.
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One column compared with values: one value for a comparison, any number for a list.

    Values are as the caller gave them, and binding converts them to the column's type.  A repr
    never shows them.  ``is_cast``: they come from a pyarrow array, which pyarrow casts to the
    column's type if it can, even if that rounds.  ``path``: the column and the members below it, if
    the caller gave them one by one, so that a dot is part of a name.  ``has_null``: the list had a
    null, which is left out of ``values``. ``not in`` such lists is false or unknown, and never
    true.
    """

    column: str
    operator: Operator
    values: tuple[object, ...] = field(default=(), repr=False)
    is_cast: bool = False
    path: tuple[str, ...] | None = None
    has_null: bool = False

    def __post_init__(self) -> None:
        if self.operator not in NULL_TESTS and any(map(_is_null, self.values)):
            raise PolicyError(
                f"{self.operator} with null is never true",
                hint="ask for `is null` or `is not null`",
                column=self.column,
            )

    @property
    def never_true(self) -> bool:
        """Whether this is ``not in`` a list with null, which is false or unknown for every row."""
        return self.operator is Operator.NOT_IN and self.has_null

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle pyarrow scalars as arrays of one value.

        Pickling a scalar of nanoseconds itself would need pandas.
        """
        values = tuple(map(_packed, self.values))
        return _unpacked, (
            self.column,
            self.operator,
            values,
            self.is_cast,
            self.path,
            self.has_null,
        )


@dataclass(frozen=True, slots=True)
class _One:
    """A pyarrow scalar in its pickled form."""

    array: pa.Array


def _packed(value: object) -> object:
    import pyarrow as pa

    return _One(pa.repeat(value, 1)) if isinstance(value, pa.Scalar) else value


def _unpacked(
    column: str,
    operator: Operator,
    values: tuple[object, ...],
    is_cast: bool,
    path: tuple[str, ...] | None,
    has_null: bool,
) -> Condition:
    return Condition(
        column=column,
        operator=operator,
        values=tuple(value.array[0] if isinstance(value, _One) else value for value in values),
        is_cast=is_cast,
        path=path,
        has_null=has_null,
    )


def _is_null(value: object) -> bool:
    # pyarrow has no one null object: a null scalar says that it is not valid.  So do pandas' NA and
    # NaT by their types.
    is_na = type(value).__name__ in ("NAType", "NaTType")
    return value is None or is_na or not getattr(value, "is_valid", True)


def is_missing(value: object) -> bool:
    """Return whether a value of a column of pandas is missing: a NaN too, whatever the type is."""
    return _is_null(value) or bool(value != value)


class Numeral(str):
    """A number written without quotes in a text. A column of texts cannot hold it."""

    __slots__ = ()


class Beginning(str):
    """A bound of the texts that begin with a prefix. Only columns of texts accept it as a value."""

    __slots__ = ()


Leaf = TypeVar("Leaf")
Other = TypeVar("Other")


@dataclass(frozen=True, slots=True)
class AllOf(Generic[Leaf]):
    """An AND: every part must be true."""

    parts: tuple[Tree[Leaf], ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Generic[Leaf]):
    """An OR: at least one part must be true."""

    parts: tuple[Tree[Leaf], ...]


#: Conditions of any one kind, joined by AND and OR.
Tree: TypeAlias = Union[Leaf, AllOf[Leaf], AnyOf[Leaf]]  # noqa: UP007  (generic over its leaf)
Predicate: TypeAlias = Tree[Condition]


def leaves(tree: Tree[Leaf]) -> Iterator[Leaf]:
    """Yield all conditions of a tree, from left to right."""
    if isinstance(tree, AllOf | AnyOf):
        for part in tree.parts:
            yield from leaves(part)
    else:
        yield tree


def mapped(tree: Tree[Leaf], change: Callable[[Leaf], Other]) -> Tree[Other]:
    """Return a tree of the same shape, with every condition changed, from left to right."""
    if isinstance(tree, AllOf | AnyOf):
        join = AllOf if isinstance(tree, AllOf) else AnyOf
        return join(parts=tuple(mapped(part, change) for part in tree.parts))
    return change(tree)


def is_true(tree: Tree[Leaf], holds: Callable[[Leaf], bool]) -> bool:
    """Return whether the tree is true if ``holds`` says which conditions are true."""
    if isinstance(tree, AllOf | AnyOf):
        parts = (is_true(part, holds) for part in tree.parts)
        return all(parts) if isinstance(tree, AllOf) else any(parts)
    return holds(tree)


def condition(column: str | tuple[str, ...], operator: str, value: object) -> Condition:
    """Return a condition in the form that people write. ``value`` is a list for ``in``, ``not in``.

    ``column`` is a name, dotted for a member of a structure, or a path.  A null in a list equals
    nothing, as in SQL: ``in`` leaves it out, and ``not in`` is never true with it.
    """
    path = column if isinstance(column, tuple) else None
    column = ".".join(column) if isinstance(column, tuple) else column
    found = operator_of(operator)
    if found is None:
        # Alone, or before an operator, the text was meant as a value: it is not shown.
        is_value = value is None or (isinstance(value, str) and operator_of(value) is not None)
        raise PolicyError(
            "there is no operator after the name"
            if is_value
            else f"{operator!r} is not an operator",
            hint="operators are " + ", ".join(Operator),
            column=column,
        )
    if found in NULL_TESTS:
        if value is not None:
            raise PolicyError(f"{found} takes no value", column=column)
        return Condition(column=column, operator=found, path=path)
    if found not in _LISTS:
        return Condition(column=column, operator=found, values=(value,), path=path)
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        raise PolicyError(f"{found} takes a list of values", column=column)
    given = tuple(value)
    of_pandas = type(value).__module__.partition(".")[0] == "pandas"
    is_left_out = is_missing if of_pandas else _is_null
    values = tuple(one for one in given if not is_left_out(one))
    has_null = len(values) < len(given)
    return Condition(column=column, operator=found, values=values, path=path, has_null=has_null)


def like(column: str | tuple[str, ...], pattern: object) -> Predicate:
    """Return the texts that a pattern of SQL matches, whose only wildcard is ``%`` at its end.

    They are a range between two bounds. Raises PolicyError for any other pattern.
    """
    start = _start_of("like", column, pattern)
    if start == pattern:
        return condition(column, Operator.EQUAL, Beginning(start))
    return beginning(column, start)


def ilike(column: str | tuple[str, ...], pattern: object) -> Predicate:
    """Return the texts that a pattern as for :func:`like` matches in upper or lower case."""
    start = _start_of("ilike", column, pattern)
    end = "" if start == pattern else "%"
    return condition(column, Operator.ILIKE, Beginning(start + end))


#: The words for patterns, and how each is made into a predicate.
PATTERNS: dict[str, Callable[[str | tuple[str, ...], object], Predicate]] = {
    "like": like,
    "ilike": ilike,
}


def _start_of(word: str, column: str | tuple[str, ...], pattern: object) -> str:
    """Return the text before the wildcard at the end of a pattern."""
    if not isinstance(pattern, str):
        raise PolicyError(f"{word} takes a text", hint="such as 'abc%'", column=dotted(column))
    start = pattern.rstrip("%")
    if set(start) & set("%_\\"):
        raise PolicyError(
            f"{word} is answered for a beginning alone, such as 'abc%'",
            hint=_OTHERS,
            column=dotted(column),
        )
    return start


_OTHERS = (
    "_ means any character; other patterns are answered by SQL: "
    "secure-bloom sql \"select * from 'TABLE' where CONDITION\", in Python sb.sql(...)"
)


def beginning(column: str | tuple[str, ...], start: str) -> Predicate:
    """Return the condition for texts with the beginning ``start``, as a range of texts."""
    least = condition(column, Operator.GREATER_OR_EQUAL, Beginning(start))
    after = _next_beginning(start)
    if after is None:
        return least
    return AllOf(parts=(least, condition(column, Operator.LESS, Beginning(after))))


def _next_beginning(start: str) -> str | None:
    """Return the least text above all that begin with ``start``, or None if there is none."""
    kept = start.rstrip(_LAST_CHARACTER)
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    # UTF-8 has no surrogates; else its bytes are in the order of the characters.
    return kept[:-1] + chr(0xE000 if following == 0xD800 else following)


_LAST_CHARACTER = chr(0x10FFFF)


def dotted(column: str | tuple[str, ...]) -> str:
    """Return the dotted name of a column that is given by its name or its path."""
    return column if isinstance(column, str) else ".".join(column)


def refuse_never_true(predicate: Predicate) -> None:
    """Raise PolicyError if `not in` a list with null makes the predicate true for no row.

    In an OR other parts may be true, so only the conditions of an AND are checked.
    """
    if isinstance(predicate, AllOf):
        for part in predicate.parts:
            refuse_never_true(part)
    elif isinstance(predicate, Condition) and predicate.never_true:
        raise PolicyError(
            "not in a list with null is never true",
            hint="remove null from the list: `not in` finds no rows with null anyway; "
            "`is not null` finds all rows that have a value",
            column=predicate.column,
        )


def operator_of(text: str) -> Operator | None:
    """Return the operator in a text, in upper or lower case, with any spaces.

    Return None if there is no such operator.
    """
    return _SPELLINGS.get(text) or _SPELLINGS.get(" ".join(text.lower().split()))


def negated(predicate: Predicate) -> Predicate:
    """Return the predicate that is true where the given one is false, and null where it is null."""
    if isinstance(predicate, Condition):
        return replace(predicate, operator=_OPPOSITES[predicate.operator])
    # De Morgan: the negation of an AND is the OR of the negations, and the other way round.
    join = AnyOf if isinstance(predicate, AllOf) else AllOf
    return join(parts=tuple(map(negated, predicate.parts)))
