"""The columns whose values are looked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.errors import PolicyError
from secure_bloom.tracing.forms import moments, other_notations, plain_texts

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
Where = list[tuple[str, str, list[str]]] | None


class Texts(NamedTuple):
    """Texts of values: the dates and times among them, and whether each is a value of its own."""

    texts: pa.Array
    moments: pa.Array
    is_value: bool


@dataclass(frozen=True, kw_only=True)
class SearchedColumn:
    """A column. ``values`` reads its values and can be called again; ``parts`` count as values.

    ``lookup`` asks the filters of the row groups for some texts, as they are written, and reads the
    row groups that may have one.  It returns None where they have most of the rows, and for columns
    of other types.  No repr shows a value, because none is kept here.
    """

    name: str
    values: Callable[[], Iterator[pa.Array]] = field(repr=False)
    parts: tuple[str, ...] = ()
    lookup: Callable[[Sequence[bytes]], Iterator[pa.Array] | None] | None = field(
        default=None, repr=False
    )

    def __post_init__(self) -> None:
        unknown = [part for part in self.parts if part not in PARTS]
        if unknown:
            raise PolicyError(
                f"{unknown[0]!r} is no part of a value, wanted one of {', '.join(PARTS)}"
            )

    def texts(self) -> Iterator[Texts]:
        """Yield the texts of the values in all notations, and their parts."""
        for array in self.values():
            times = pa.concat_arrays([*moments(array), pa.array([], pa.int64())])
            for texts in plain_texts(array):
                yield Texts(texts, times, is_value=True)
                for part in self.parts:
                    yield Texts(PARTS[part](texts), times, is_value=False)
            for texts in other_notations(array):
                yield Texts(texts, times, is_value=False)


def table_subject(table: Table, column: str, parts: tuple[str, ...] = ()) -> SearchedColumn:
    """Return the subject of a column of an open table, which may be a member of a structure."""
    path = column.split(".")
    names = table.schema.names
    # The name of a top-level column may have dots.
    depth = next((n for n in range(len(path), 0, -1) if ".".join(path[:n]) in names), 1)
    top, members = ".".join(path[:depth]), path[depth:]

    def values(where: Where = None) -> Iterator[pa.Array]:
        for batch in table.read_batches(columns=[top], where=where):
            array = batch.column(0)
            yield pc.struct_field(array, members) if members else array

    def lookup(texts: Sequence[bytes]) -> Iterator[pa.Array] | None:
        kind = table.schema.field(top).type
        for member in members:
            kind = kind.field(member).type if pa.types.is_struct(kind) else pa.null()
        wanted = _typed(texts, kind)
        where = [(column, "in", wanted)]
        if not wanted or _rows(table, where) > WORTH * _rows(table):
            return None
        return values(where)

    return SearchedColumn(name=column, values=values, parts=parts, lookup=lookup)


def _typed(texts: Sequence[bytes], kind: pa.DataType) -> list[str]:
    """Return texts as values of a column of texts; nothing for another column."""
    if kind not in (pa.string(), pa.large_string(), pa.string_view()):
        return []
    return [text.decode("utf-8", "replace") for text in texts]


def _rows(table: Table, where: Where = None) -> int:
    """Return how many rows are in the row groups that bounds and filters leave."""
    files = table.plan(where=where).files
    return sum(group.rows for file in files for group in file.row_groups)
