"""Decide whether Paimon 0.9 reads a file: join the answers of its indexes as Paimon's code does.

Paimon asks all indexes of a column about a comparison. It treats an IN of up to 20 values as an OR
of ``=``.  It joins the answers one after the other, and ends an AND when no row is left.

Two things lose rows.  Up to Paimon 1.1, an OR of a bitmap's rows with an answer that names no rows
becomes an AND.  And if a column has several indexes, their order is random, and so is which answers
are joined.

Paimon's reader of one index answers a comparison by every row, no row, or some rows. Here, the rows
of a ``bitmap`` index are one number, in which bit ``i`` is row ``i``.  Paimon joins the answers of
several indexes, and of several comparisons, by AND and OR.

    reads(index, predicate, forms)        whether Paimon 0.9 reads the file
    loses_rows(index, predicate, forms)   whether it skips a file that may have such rows

Nothing else needs this module: the safe rules read no rows of a bitmap.  A bitmap of rows is a
Roaring bitmap in its portable format.  Numbers are little-endian:

    cookie 12346 (4) | containers (4)
    or cookie 12347 (2) | containers - 1 (2) | one bit per container: is it of runs
    each container: high half of its rows (2) | rows - 1 (2)
    place of each container (4): always with the first cookie, else from 4 containers on
    containers: up to 4,096 rows an array of low halves (2 each), more a bit set (8,192)
                of runs: runs (2), each: first (2) | rows - 1 (2)
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import islice, product
from typing import Final, TypeAlias

from secure_bloom.errors import FormatError, UnsupportedFeatureError, located
from secure_bloom.paimon import index_readers
from secure_bloom.paimon.comparisons import (
    FOR_OTHER_VALUES,
    FOR_VALUES,
    Comparison,
    Operator,
    Predicate,
)
from secure_bloom.paimon.container import FileIndex
from secure_bloom.paimon.data_types import Hashed
from secure_bloom.paimon.index_readers import (
    PLACE,
    AnyIndex,
    BitmapIndex,
    BloomIndex,
    EmptyIndex,
    ValueList,
    listed_form,
    open_index,
)
from secure_bloom.paimon.physical_values import Forms
from secure_bloom.predicates.tree import AllOf, AnyOf, Tree, leaves


def rows_with(listed: ValueList, values: frozenset[Hashed]) -> int:
    """Return the rows that have one of the values. All values are of one type."""
    require_rows(listed.rows)
    wanted = {listed_form(value) for value in values}
    bitmaps = 0
    # If the list has a value twice, its last place counts, as in Paimon's map.  So at most one
    # bitmap is read for each wanted value, however often a hostile list repeats the value.
    places: dict[bytes, int] = {}
    for start, end in listed.spans(values):
        bitmaps = end + PLACE.size
        form = bytes(listed.content[start:end])
        if form in wanted:
            (places[form],) = PLACE.unpack_from(listed.content, end)
    found = 0
    for place in places.values():
        found |= _rows_at(listed, place, bitmaps)
    return found


def null_rows(listed: ValueList, examples: frozenset[Hashed]) -> int:
    """Return the rows without a value. The width of the ``examples`` shows where the list ends."""
    # The rows become one number of this many bits, and their count is the file's.
    require_rows(listed.rows)
    if listed.null_place is None:
        return 0
    bitmaps = 0
    for _, end in listed.spans(examples):
        bitmaps = end + PLACE.size
    return _rows_at(listed, listed.null_place, bitmaps)


def other_rows(listed: ValueList, rows: int) -> int:
    """Return all rows but ``rows``."""
    require_rows(listed.rows)
    return ((1 << listed.rows) - 1) & ~rows


def _rows_at(listed: ValueList, place: int, bitmaps: int) -> int:
    if place >= 0:
        return read_rows(listed.content[bitmaps + place :], listed.rows)
    # A negative place is the row itself, of a value that a single row has.
    row = -1 - place
    if row >= listed.rows:
        raise FormatError(f"a bitmap index names row {row}, it has {listed.rows}")
    return 1 << row


class Whole(enum.Enum):
    """An answer for the whole file, which names no rows."""

    REMAIN = enum.auto()
    SKIP = enum.auto()


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a bitmap: bit ``i`` is row ``i``."""

    bits: int


Answer: TypeAlias = Whole | Rows


def remains(answer: Answer) -> bool:
    """Return whether a row is left."""
    return answer.bits != 0 if isinstance(answer, Rows) else answer is Whole.REMAIN


def both(first: Answer, second: Answer) -> Answer:
    """Return the AND of two answers."""
    if isinstance(first, Whole):
        return second if first is Whole.REMAIN else first
    if isinstance(second, Whole):
        return first if second is Whole.REMAIN else second
    return Rows(first.bits & second.bits)


def either(first: Answer, second: Answer) -> Answer:
    """Return the OR of two answers."""
    if isinstance(first, Whole):
        return first if first is Whole.REMAIN else second
    if isinstance(second, Whole):
        return second if second is Whole.REMAIN else first
    return Rows(first.bits | second.bits)


def either_in_0_9(first: Answer, second: Answer) -> Answer:
    """Return what Paimon before 1.1 makes of an OR.

    Rows joined with an answer for the whole file become an AND.
    """
    if isinstance(first, Rows) and isinstance(second, Whole):
        return both(first, second)
    return either(first, second)


#: The forms of all values of a comparison; None if an index cannot answer for one of them.
Values: TypeAlias = frozenset[Hashed] | None

_NULL_TESTS = frozenset({Operator.IS_NULL, Operator.IS_NOT_NULL})
#: The comparisons to which a bitmap answers with rows.
_FOR_ROWS = FOR_VALUES | FOR_OTHER_VALUES | _NULL_TESTS
#: The comparisons that are true for all rows but those that the bitmap has for the values.
_FOR_OTHER_ROWS = FOR_OTHER_VALUES | {Operator.IS_NOT_NULL}


def answer(reader: AnyIndex, operator: Operator, values: Values) -> Answer:
    """Return the answer of an index.

    For IS NULL and IS NOT NULL ``values`` is an example of a value.
    """
    if isinstance(reader, EmptyIndex):
        return Whole.REMAIN if reader.keeps(operator) else Whole.SKIP
    if isinstance(reader, BloomIndex) and operator in FOR_VALUES and values is not None:
        return Whole.REMAIN if reader.passing(values) else Whole.SKIP
    if isinstance(reader, BitmapIndex) and operator in _FOR_ROWS and values is not None:
        return _rows(reader, operator, values)
    return Whole.REMAIN


def _rows(reader: BitmapIndex, operator: Operator, values: frozenset[Hashed]) -> Rows:
    listed = reader.values
    rows_of = null_rows if operator in _NULL_TESTS else rows_with
    rows = rows_of(listed, values)
    return Rows(other_rows(listed, rows) if operator in _FOR_OTHER_ROWS else rows)


#: An IN of more values stays one comparison.
MAX_IN_AS_OR: Final = 20

#: The number of orders of indexes that are tried: enough for ten columns that each have a bitmap
#: and another index.
_MAX_ORDERS = 1024

_Join: TypeAlias = Callable[[Answer, Answer], Answer]
#: The kind of answer that comes first among the indexes of a column.
_First: TypeAlias = type[Rows] | type[Whole]


@dataclass(frozen=True, slots=True)
class _ColumnAnswers:
    """The answers of all indexes of a column to one comparison."""

    column: str
    answers: tuple[Answer, ...]


def reads(index: FileIndex, predicate: Predicate, forms: Forms) -> bool:
    """Return whether Paimon 0.9 reads the file, whichever index of a column comes first.

    Two answers are not known here and count as no answer: the answer of an index that is not read
    here, and the answer of any index to a comparison with NULL.
    """
    answers = _answers(index, predicate, forms)
    columns = sorted(set(_columns_by_chance(answers)))
    firsts: Iterator[tuple[_First, ...]] = product((Rows, Whole), repeat=len(columns))
    return all(
        remains(_joined(answers, either_in_0_9, dict(zip(columns, first, strict=True))))
        for first in islice(firsts, _MAX_ORDERS)
    )


def loses_rows(index: FileIndex, predicate: Predicate, forms: Forms) -> bool:
    """Return whether Paimon 0.9 skips a file that may hold rows which satisfy ``predicate``.

    The rows of bitmaps, joined correctly, may rule out a file that the safe rules keep. Then Paimon
    is right to skip it.
    """
    return (
        not reads(index, predicate, forms)
        and index_readers.may_match(index, predicate, forms)
        and remains(_joined(_answers(index, predicate, forms), either, {}))
    )


def _answers(index: FileIndex, predicate: Predicate, forms: Forms) -> Tree[_ColumnAnswers]:
    """Return the answers of all indexes, also of those that could be left out.

    A damaged index is therefore always an error.
    """
    if not isinstance(predicate, Comparison):
        join = AllOf if isinstance(predicate, AllOf) else AnyOf
        return join(tuple(_answers(index, part, forms) for part in predicate.parts))
    column, operator = predicate.column, predicate.operator
    with located(column=column):
        readers = [open_index(each) for each in index.indexes(column)]
        if not readers:
            return _ColumnAnswers(column, ())
        return AnyOf(
            tuple(
                _ColumnAnswers(column, tuple(answer(each, operator, values) for each in readers))
                for values in _values(predicate, forms)
            )
        )


def _values(comparison: Comparison, forms: Forms) -> list[Values]:
    """Return the groups of values that an index is asked for: one for all, or one for each."""
    if comparison.operator in (Operator.IS_NULL, Operator.IS_NOT_NULL):
        example = forms.example(comparison.column)
        return [None if example is None else frozenset({example})]
    if comparison.operator not in FOR_VALUES | FOR_OTHER_VALUES:
        return [None]
    found = [forms(comparison.column, value) for value in comparison.values]
    # Paimon's own bound: beyond it an index sees all values at once.
    if comparison.operator is Operator.IN and len(found) <= MAX_IN_AS_OR:
        return [None if each is None else frozenset(each) for each in found]
    # If an index cannot answer for one value, it cannot answer for the whole list.
    if None in found:
        return [None]
    return [frozenset(form for each in found for form in each or ())]


def _columns_by_chance(answers: Tree[_ColumnAnswers]) -> Iterator[str]:
    """Yield the columns for which the order of the indexes can matter."""
    for found in leaves(answers):
        if len({type(each) for each in found.answers}) > 1:
            yield found.column


def _joined(answers: Tree[_ColumnAnswers], join_or: _Join, first: Mapping[str, _First]) -> Answer:
    """Return all answers joined. ``first`` says which kind of answer comes first in a column."""
    if isinstance(answers, _ColumnAnswers):
        kind = first.get(answers.column, Rows)
        return _until_none(sorted(answers.answers, key=lambda it: not isinstance(it, kind)))
    parts = [_joined(part, join_or, first) for part in answers.parts]
    if isinstance(answers, AllOf):
        return _until_none(parts)
    # In Paimon's code an OR of nothing, such as an IN without values, keeps the file.
    return reduce(join_or, parts) if parts else Whole.REMAIN


def _until_none(answers: Iterable[Answer]) -> Answer:
    """Return the AND of the answers, up to the first that leaves no row."""
    left: Answer = Whole.REMAIN
    for each in answers:
        left = both(left, each)
        if not remains(left):
            break
    return left


#: The most rows of a file.  A bitmap takes a bit for each row here, even if the file stores it in
#: a few bytes.
MAX_ROWS = 1 << 27

_WITHOUT_RUNS = 12346
_WITH_RUNS = 12347
_MAX_ARRAY = 4096
_CONTAINER_ROWS = 1 << 16
_CONTAINER_BYTES = _CONTAINER_ROWS // 8
#: A bitmap with runs and fewer containers than this has no places.
_MIN_PLACES = 4


def read_rows(data: memoryview, rows: int) -> int:
    """Return the rows of the bitmap at the start of ``data`` as one number.

    Raises FormatError for a damaged bitmap, or for a row that is not below ``rows``.
    """
    require_rows(rows)
    reader = _RoaringReader(data)
    last_high = -1
    content = bytearray(-(-rows // _CONTAINER_ROWS) * _CONTAINER_BYTES)
    for high, container in reader.containers():
        start = high * _CONTAINER_BYTES
        if high <= last_high or start >= len(content):
            raise FormatError(f"a bitmap has a container {high} after {last_high}, of {rows} rows")
        content[start : start + _CONTAINER_BYTES] = container.to_bytes(_CONTAINER_BYTES, "little")
        last_high = high
    found = int.from_bytes(content, "little")
    if found >> rows:
        raise FormatError(f"a bitmap has rows that are not among the {rows} of the file")
    return found


def require_rows(rows: int) -> None:
    """Raise an error for a negative number of rows, and for more rows than are read here."""
    if rows < 0:
        raise FormatError(f"a bitmap index is of {rows} rows")
    if rows > MAX_ROWS:
        raise UnsupportedFeatureError(
            f"a bitmap index is of {rows} rows, at most {MAX_ROWS} are read"
        )


class _RoaringReader:
    """Reads a bitmap from its first byte on."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def containers(self) -> Iterator[tuple[int, int]]:
        """Yield, for each container, the high half of its rows and the low halves as bits."""
        count, of_runs = self._cookie()
        heads = self._shorts(2 * count)
        if not of_runs or count >= _MIN_PLACES:
            self._take(4 * count)  # the containers follow each other
        for ordinal in range(count):
            high, rows = heads[2 * ordinal], heads[2 * ordinal + 1] + 1
            yield high, self._runs() if of_runs >> ordinal & 1 else self._container(rows)

    def _cookie(self) -> tuple[int, int]:
        """Return the number of containers, and a number whose bits say which of them have runs."""
        # Four bytes, little-endian.  With runs the upper two count containers, less one; else 0.
        cookie, following = self._shorts(2)
        if cookie == _WITH_RUNS:
            count = following + 1
            return count, int.from_bytes(self._take(-(-count // 8)), "little")
        if (cookie, following) == (_WITHOUT_RUNS, 0):
            return int.from_bytes(self._take(4), "little"), 0
        raise FormatError("a bitmap does not start with a known cookie")

    def _container(self, rows: int) -> int:
        if rows > _MAX_ARRAY:
            return int.from_bytes(self._take(_CONTAINER_BYTES), "little")
        content = bytearray(_CONTAINER_BYTES)
        for row in self._shorts(rows):
            content[row >> 3] |= 1 << (row & 7)
        return int.from_bytes(content, "little")

    def _runs(self) -> int:
        (count,) = self._shorts(1)
        ends = self._shorts(2 * count)
        found = 0
        for first, more in zip(ends[::2], ends[1::2], strict=True):
            if first + more >= _CONTAINER_ROWS:
                raise FormatError("a bitmap has a run that leaves its container")
            # `more` rows follow the first one: more + 1 bits.
            found |= ((2 << more) - 1) << first
        return found

    def _shorts(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}H", self._take(2 * count))

    def _take(self, length: int) -> memoryview:
        end = self._at + length
        if end > len(self._data):
            raise FormatError(f"a bitmap ends after {len(self._data)} bytes, wanted {end}")
        self._at, taken = end, self._data[self._at : end]
        return taken
