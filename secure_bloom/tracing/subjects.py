"""The columns whose values are looked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.errors import PolicyError
from secure_bloom.parquet.schema import in_any_case
from secure_bloom.tracing.forms import (
    are_days,
    backwards,
    day_numbers,
    moments,
    other_notations,
    plain_texts,
    written_bytes,
)

if TYPE_CHECKING:
    from secure_bloom.reading.kept_table import Table

#: The parts of a value that a policy may name: name -> its function on texts.
PARTS: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {
    "local": lambda texts: _matches(texts, r"^(?P<part>[^@]+)@"),
    "domain": lambda texts: _matches(texts, r"@(?P<part>.+)$"),
}


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    strings = texts.filter(
        pc.string_is_ascii(texts.cast(pa.large_binary()).cast(pa.large_string()))
    )
    found = pc.extract_regex(strings.cast(pa.large_string()), pattern)
    return found.field(0).drop_null().cast(pa.large_binary()) if len(found) else strings


#: The share of the rows up to which words are looked up; above it all values are read.
WORTH: Final = 0.5
Where = list[tuple[str, str, list[object]]] | None


class Texts(NamedTuple):
    """A batch of texts of one column's values.

    ``moments`` are the dates and times among the values. With ``are_days`` all of them are dates.
    ``is_value`` says that each text is a whole value. For texts in another notation, ``of`` has the
    usual text of each one's value. With ``are_serial`` they are days of the epoch, with
    ``are_reversed`` numbers read backwards.
    """

    texts: pa.Array
    moments: pa.Array
    is_value: bool
    are_days: bool = False
    of: pa.Array | None = None
    are_serial: bool = False
    are_reversed: bool = False


@dataclass(frozen=True, kw_only=True)
class SearchedColumn:
    """A column to search for. ``values`` reads its values and can be called again.

    ``parts`` names parts of values that count as values. ``lookup`` looks texts up, exactly as
    written, in the filters of the row groups, and reads the row groups that may have one. It
    returns None if these row groups have most of the rows, and for columns of types other than
    text. This object keeps no values, so its repr shows none.
    """

    name: str
    values: Callable[[], Iterator[pa.Array]] = field(repr=False)
    parts: tuple[str, ...] = ()
    lookup: Callable[[Sequence[bytes]], Iterator[pa.Array] | None] | None = field(
        default=None, repr=False
    )
    rows: int = 0

    def __post_init__(self) -> None:
        unknown = [part for part in self.parts if part not in PARTS]
        if unknown:
            raise PolicyError(
                f"{unknown[0]!r} is not a part of a value, wanted one of {', '.join(PARTS)}"
            )

    def texts(self) -> Iterator[Texts]:
        """Yield the texts of the values in all notations, and their parts."""
        for array in self.values():
            times = pa.concat_arrays([*moments(array), pa.array([], pa.int64())])
            for texts in plain_texts(array):
                yield Texts(texts, times, is_value=True, are_days=are_days(array))
                for part in self.parts:
                    yield Texts(PARTS[part](texts), times, is_value=False)
            for texts in written_bytes(array):
                yield Texts(texts, times, is_value=False)
            for plain, texts in other_notations(array):
                yield Texts(texts, times, is_value=False, of=plain)
            for plain, texts in day_numbers(array):
                yield Texts(texts, times, is_value=False, of=plain, are_serial=True)
            for plain, texts in backwards(array):
                yield Texts(texts, times, is_value=False, of=plain, are_reversed=True)


def table_subject(table: Table, column: str, parts: tuple[str, ...] = ()) -> SearchedColumn:
    """Return a column of an open table as a subject. The column may be a member of a structure."""
    opened = _TableColumn.of(table, column)

    def lookup(texts: Sequence[bytes]) -> Iterator[pa.Array] | None:
        where = opened.where(texts) if opened.is_text else None
        if where is None or _rows(table, where) > WORTH * _rows(table):
            return None
        return opened.values(where)

    return SearchedColumn(name=column, values=opened.values, parts=parts, lookup=lookup)


def written_subject(table: Table, column: str, texts: Sequence[bytes]) -> SearchedColumn | None:
    """Return a subject with only the column's values that are written exactly as some text.

    Only row groups whose filters may have one of the texts are read. Returns None for a column of a
    type whose values cannot be read from texts.
    """
    opened = _TableColumn.of(table, column)
    where = opened.where(texts)
    if where is None:
        return None

    def values() -> Iterator[pa.Array]:
        # The first values show how far apart numbers and dates are.
        yield from islice(opened.values(), 1)
        yield from opened.values(where)

    return SearchedColumn(name=column, values=values, rows=_rows(table))


@dataclass(frozen=True, kw_only=True)
class _TableColumn:
    """A column of an open table: the name of its top-level column, and the path inside it."""

    table: Table
    name: str
    top: str
    members: list[str]

    @classmethod
    def of(cls, table: Table, column: str) -> _TableColumn:
        names = table.schema.names
        column = column if column in names else in_any_case(column, names) or column
        path = column.split(".")
        # The name of a top-level column may have dots.
        depth = next((n for n in range(len(path), 0, -1) if ".".join(path[:n]) in names), 1)
        return cls(table=table, name=column, top=".".join(path[:depth]), members=path[depth:])

    def values(self, where: Where = None) -> Iterator[pa.Array]:
        for batch in self.table.read_batches(columns=[self.top], where=where):
            yield _inside(batch.column(0), self.members)

    @property
    def is_text(self) -> bool:
        return self._read is _as_text

    def where(self, texts: Sequence[bytes]) -> Where:
        """Return the condition that a value is one of ``texts``. None if no text can be a value."""
        if self._read is None:
            return None
        wanted = dict.fromkeys(value for text in texts for value in self._read(text))
        return [(self.name, "in", list(wanted))]

    @property
    def _read(self) -> _Read | None:
        schema = self.table.schema
        kind = schema.field(self.top).type if self.top in schema.names else pa.null()
        for member in self.members:
            kind = kind.field(member).type if pa.types.is_struct(kind) else pa.null()
        return next((read for is_of, read in _READ if is_of(kind)), None)


def _inside(array: pa.Array, members: Sequence[str]) -> pa.Array:
    """Return the values at a path inside a column. For lists and maps, these are the elements."""
    levels = 0
    for member in members:
        while not isinstance(array, pa.StructArray) and hasattr(array, "flatten"):
            if pa.types.is_map(array.type):
                entry = pa.struct([array.type.key_field, array.type.item_field])
                array = array.cast(pa.list_(entry))
            # Files name up to two levels between a list and its elements.
            array, levels = array.flatten(), 2
        if pa.types.is_struct(array.type) and array.type.get_field_index(member) >= 0:
            array = pc.struct_field(array, member)
        elif levels == 0:
            raise PolicyError(f"the column has no member {member}")
        levels -= levels > 0
    return array


def _as_text(text: bytes) -> Iterable[object]:
    return [text.decode("utf-8", "replace")]


def _as_number(text: bytes) -> Iterable[object]:
    digits = text.removeprefix(b"-")
    return [int(text)] if digits.isdigit() and len(digits) < _MOST_DIGITS else []


#: Numbers of a column have fewer digits.
_MOST_DIGITS: Final = 19
_Read = Callable[[bytes], Iterable[object]]
#: Types of columns whose values can be read from texts.
_READ: Final[tuple[tuple[Callable[[pa.DataType], bool], _Read], ...]] = (
    (lambda kind: kind in (pa.string(), pa.large_string(), pa.string_view()), _as_text),
    (pa.types.is_integer, _as_number),
)


def _rows(table: Table, where: Where = None) -> int:
    """Return how many rows remain in the row groups that bounds and filters do not rule out."""
    files = table.plan(where=where).files
    return sum(group.rows for file in files for group in file.row_groups)
