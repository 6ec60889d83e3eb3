"""Whether Paimon 0.9 reads a file: the answers of its indexes, joined as its own code does.

A comparison is asked of all indexes of its column, an IN of up to 20 values as an OR of ``=``.
Answers are joined one after the other, an AND until no row is left.  Two things lose rows: an OR of
a bitmap's rows with an answer that has none is taken for an AND (until Paimon 1.1), and which of
several indexes of a column comes first, hence what is joined with what, is left to chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import islice, product
from typing import Final, TypeAlias

from secure_bloom.errors import located
from secure_bloom.paimon.comparisons import And, Comparison, Operator, Or, Predicate
from secure_bloom.paimon.container import FileIndex
from secure_bloom.paimon.index_readers import FOR_VALUES, NOT_FOR_VALUES, Forms, Sought, open_index
from secure_bloom.paimon.version_0_9.answers import (
    Answer,
    Rows,
    Whole,
    both,
    either,
    either_in_0_9,
    remains,
)

#: An IN of more values stays one comparison.
MAX_IN_AS_OR: Final = 20

#: Orders of indexes that are tried: all of ten columns, each with a bitmap and another index.
_MAX_ORDERS = 1024

_Join: TypeAlias = Callable[[Answer, Answer], Answer]
#: Which answers come first of the indexes of a column.
_First: TypeAlias = type[Rows] | type[Whole]


@dataclass(frozen=True, slots=True)
class _IndexAnswers:
    """What each index of a column answered to one comparison."""

    column: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class _Joined:
    """The same of comparisons that are joined."""

    join: type[And | Or]
    parts: tuple[_IndexAnswers | _Joined, ...]


def reads(index: FileIndex, predicate: Predicate, forms: Forms) -> bool:
    """Whether Paimon 0.9 reads the file, whichever index of a column comes first.

    Not known, and taken for no answer: what indexes say that are not read here, and what any says
    to a comparison with NULL.
    """
    asked = _ask(index, predicate, forms)
    columns = sorted(set(_columns_by_chance(asked)))
    firsts: Iterator[tuple[_First, ...]] = product((Rows, Whole), repeat=len(columns))
    return all(
        remains(_joined(asked, either_in_0_9, dict(zip(columns, first, strict=True))))
        for first in islice(firsts, _MAX_ORDERS)
    )


def rightly_skipped(index: FileIndex, predicate: Predicate, forms: Forms) -> bool:
    """Whether the same answers, joined rightly, leave no row."""
    return not remains(_joined(_ask(index, predicate, forms), either, {}))


def _ask(index: FileIndex, predicate: Predicate, forms: Forms) -> _IndexAnswers | _Joined:
    """All answers, so that a damaged index is told whatever another one says."""
    if not isinstance(predicate, Comparison):
        parts = tuple(_ask(index, part, forms) for part in predicate.parts)
        return _Joined(type(predicate), parts)
    with located(column=predicate.column):
        readers = [open_index(each) for each in index.indexes(predicate.column)]
        if not readers:
            return _IndexAnswers(predicate.column, ())
        asked = tuple(
            _IndexAnswers(
                predicate.column,
                tuple(reader.answer(predicate.operator, sought) for reader in readers),
            )
            for sought in _sought(predicate, forms)
        )
    return _Joined(Or, asked)


def _sought(comparison: Comparison, forms: Forms) -> list[Sought]:
    """The values that are asked for, together or one after the other."""
    if comparison.operator in (Operator.IS_NULL, Operator.IS_NOT_NULL):
        example = forms.example(comparison.column)
        return [None if example is None else frozenset({example})]
    if comparison.operator not in FOR_VALUES | NOT_FOR_VALUES:
        return [None]
    found = [forms(comparison.column, value) for value in comparison.values]
    if comparison.operator is Operator.IN and len(found) <= MAX_IN_AS_OR:
        return [None if each is None else frozenset(each) for each in found]
    if None in found:
        return [None]
    return [frozenset(form for each in found for form in each or ())]


def _columns_by_chance(asked: _IndexAnswers | _Joined) -> Iterator[str]:
    """The columns where the order of the indexes can matter."""
    if isinstance(asked, _Joined):
        for part in asked.parts:
            yield from _columns_by_chance(part)
    elif len({type(answer) for answer in asked.answers}) > 1:
        yield asked.column


def _joined(asked: _IndexAnswers | _Joined, join_or: _Join, first: Mapping[str, _First]) -> Answer:
    """One answer of all; of the indexes of a column, those come first that answer so."""
    if isinstance(asked, _IndexAnswers):
        kind = first.get(asked.column, Rows)
        return _until_none(sorted(asked.answers, key=lambda it: not isinstance(it, kind)))
    answers = [_joined(part, join_or, first) for part in asked.parts]
    if asked.join is And:
        return _until_none(answers)
    return reduce(join_or, answers) if answers else Whole.REMAIN


def _until_none(answers: Iterable[Answer]) -> Answer:
    """AND, up to the answer that leaves no row."""
    left: Answer = Whole.REMAIN
    for answer in answers:
        left = both(left, answer)
        if not remains(left):
            break
    return left
