"""Open the indexes of a column, and ask them about a comparison.

A predicate is a tree of :mod:`secure_bloom.predicates.tree`: comparisons of columns, joined by AND
and OR.  The comparisons differ from ours: Paimon compares with NULL and with the start of a text,
and cannot negate ``<``.  :func:`as_predicate` translates.

Every reader has ``passing``, which returns the values that the column may have, and ``keeps``,
which returns whether rows may satisfy a comparison whatever its value is.

``may_match`` asks them whether a file can be skipped for a predicate without losing a row.  A Bloom
filter can rule out ``=`` and IN, a bitmap index also IS NULL, and an EMPTY index every comparison
that needs a value.  Other comparisons, and columns without an index, keep the file.

The ``bitmap`` index, version 1, has the values of a column, and the rows that have each:

    version (1) | rows (4) | values (4) | has null (1) | [place of its bitmap (4)]
    each value: the value | place of its bitmap (4)
    bitmaps

A number is big-endian in the width of its type.  A text comes after its length (4).  A place
counts from the first bitmap; a negative place means the single row ``-1 - place``.  The list alone
shows that a value is nowhere in the file, so the bitmaps are not read.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from typing import TypeAlias

from secure_bloom.calling.arguments import member_of
from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError, located
from secure_bloom.paimon.bloom_filter64 import BloomFilter64
from secure_bloom.paimon.container import BITMAP, BLOOM_FILTER, FileIndex, Index
from secure_bloom.paimon.data_types import Hashed
from secure_bloom.paimon.physical_values import Forms
from secure_bloom.predicates import tree
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.from_tuples import from_structure
from secure_bloom.predicates.tree import is_true, mapped


class PaimonOperator(enum.StrEnum):
    """The comparisons of a column. :data:`Operator` is the public name."""

    EQUAL = tree.Operator.EQUAL
    NOT_EQUAL = tree.Operator.NOT_EQUAL
    LESS = tree.Operator.LESS
    LESS_OR_EQUAL = tree.Operator.LESS_OR_EQUAL
    GREATER = tree.Operator.GREATER
    GREATER_OR_EQUAL = tree.Operator.GREATER_OR_EQUAL
    IN = tree.Operator.IN
    NOT_IN = tree.Operator.NOT_IN
    STARTS_WITH = "starts with"
    IS_NULL = tree.Operator.IS_NULL
    IS_NOT_NULL = tree.Operator.IS_NOT_NULL


Operator = PaimonOperator
#: The comparisons that are true for the values they name, and for all other values.
FOR_VALUES = frozenset({Operator.EQUAL, Operator.IN})
FOR_OTHER_VALUES = frozenset({Operator.NOT_EQUAL, Operator.NOT_IN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One column compared with values: none for IS, any number for IN, one for others."""

    column: str
    operator: Operator
    values: tuple[object, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operator", member_of(Operator, "operator", self.operator))


#: Joins are those of every predicate; these are their public names here.
And, Or = tree.AllOf, tree.AnyOf
Predicate: TypeAlias = tree.Tree[Comparison]


def as_predicate(where: object) -> Predicate:
    """Return the predicate in a text, or in a structure of tuples and lists.

    Raises PolicyError, without values, for anything else.
    """
    if isinstance(where, Comparison | And | Or):
        require_predicate(where)
        return where
    if isinstance(where, str) and not where.strip():
        hint = "write one such as: id = 5 and name in ('anna', 'bo')"
        raise PolicyError("the condition is empty", hint=hint)
    found = from_text(where) if isinstance(where, str) else from_structure(where)
    return tree.mapped(found, _translated)


def require_predicate(predicate: object) -> None:
    """Raise PolicyError unless ``predicate`` is a predicate of at most 100 levels."""
    # Level by level and not by recursion: a predicate that is too deep must not end in Python's own
    # error.
    level = [predicate]
    for _ in range(tree.MAX_DEPTH):
        joins = [part for part in level if isinstance(part, And | Or)]
        known = all(isinstance(part, Comparison | And | Or) for part in level)
        if not known or not all(isinstance(join.parts, tuple | list) for join in joins):
            raise PolicyError("the predicate has a part that is not a predicate")
        level = [part for join in joins for part in join.parts]
        if not level:
            return
    raise PolicyError(f"the predicate nests deeper than {tree.MAX_DEPTH} levels")


#: ``not <`` needs a value as ``<`` does, and no index here knows more about either.
_OPPOSITES = {
    tree.Operator.NOT_LESS: Operator.LESS,
    tree.Operator.NOT_LESS_OR_EQUAL: Operator.LESS_OR_EQUAL,
    tree.Operator.NOT_GREATER: Operator.GREATER,
    tree.Operator.NOT_GREATER_OR_EQUAL: Operator.GREATER_OR_EQUAL,
}


def _translated(condition: tree.Condition) -> Comparison:
    if any(isinstance(value, tree.Beginning) for value in condition.values):
        raise PolicyError(
            "Paimon's indexes are not asked for beginnings of texts", column=condition.column
        )
    operator = _OPPOSITES.get(condition.operator) or Operator(condition.operator)
    return Comparison(column=condition.column, operator=operator, values=condition.values)


_VERSION = 1
_HEAD = struct.Struct(">Biib")
#: The place of a bitmap.
PLACE = struct.Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueList:
    """The list of distinct values in a bitmap index: ``count`` values of a column of ``rows`` rows.

    ``null_place`` is the place of the bitmap of nulls, or None if every row has a value.
    """

    rows: int
    count: int
    null_place: int | None
    content: memoryview

    @property
    def has_null(self) -> bool:
        """Whether some row has no value."""
        return self.null_place is not None

    def listed(self, values: frozenset[Hashed]) -> set[Hashed]:
        """Return which of the values are in the list. The list is read once.

        All values have one type. Raises FormatError if the list is not of this type.
        """
        wanted = {listed_form(value): value for value in values}
        found: set[Hashed] = set()
        for start, end in self.spans(values):
            form = bytes(self.content[start:end])
            if form in wanted:
                found.add(wanted[form])
            if len(found) == len(wanted):
                break
        return found

    def spans(self, examples: frozenset[Hashed]) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each listed value, whose type is known from ``examples``.

        Yields nothing without an example.
        """
        any_one = next(iter(examples), None)
        if any_one is None:
            return iter(())
        if isinstance(any_one.content, bytes):
            return self._texts()
        return self._numbers(any_one.width)

    def _numbers(self, width: int) -> Iterator[tuple[int, int]]:
        step = width + PLACE.size
        if self.count * step > len(self.content):
            raise FormatError(f"a bitmap index is cut short in its list of {self.count} values")
        for start in range(0, self.count * step, step):
            yield start, start + width

    def _texts(self) -> Iterator[tuple[int, int]]:
        at = 0
        for _ in range(self.count):
            start = at + PLACE.size
            # Signed, as Java writes it: a negative length would lead backwards.
            length = int.from_bytes(self.content[at:start], "big", signed=True)
            at = start + length + PLACE.size
            if length < 0 or at > len(self.content):
                raise FormatError(f"a bitmap index is cut short in its list of {self.count} values")
            yield start, start + length


def listed_form(value: Hashed) -> bytes:
    """Return the bytes by which the sorted list of a bitmap index stores a value."""
    if isinstance(value.content, bytes):
        return value.content
    return value.content.to_bytes(value.width, "big", signed=True)


def read_value_list(body: bytes | memoryview) -> ValueList | None:
    """Return the list of a bitmap index, or None for another version of the index."""
    view = memoryview(body)
    # Later versions of Paimon write a version 2, so another number is no damage.
    if len(view) < 1 or view[0] != _VERSION:
        return None
    if len(view) < _HEAD.size:
        raise FormatError(f"a bitmap index has {len(view)} bytes, its head takes {_HEAD.size}")
    _, rows, count, has_null = _HEAD.unpack_from(view)
    # The head has the place of the nulls' bitmap only if there are nulls.
    start = _HEAD.size + (PLACE.size if has_null else 0)
    # The type, and so the width of a value, is not known yet, but each value has a place.
    if count < 0 or count * PLACE.size > len(view) - start:
        raise FormatError(f"a bitmap index lists {count} values in {len(view)} bytes")
    null_place = PLACE.unpack_from(view, _HEAD.size)[0] if has_null else None
    return ValueList(rows=rows, count=count, null_place=null_place, content=view[start:])


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
        """Return whether rows may satisfy the comparison, whatever its value is.

        IS NULL needs a null in the column, and IS NOT NULL a value. Any other comparison keeps the
        file.
        """
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
