"""The columns whose values are looked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


class Texts(NamedTuple):
    """Texts of values: the dates and times among them, and whether each is a value of its own."""

    texts: pa.Array
    moments: pa.Array
    is_value: bool


@dataclass(frozen=True, kw_only=True)
class SearchedColumn:
    """A column. ``values`` reads its values and can be called again; ``parts`` count as values.

    No repr shows a value, because none is kept here.
    """

    name: str
    values: Callable[[], Iterator[pa.Array]] = field(repr=False)
    parts: tuple[str, ...] = ()

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

    def values() -> Iterator[pa.Array]:
        for batch in table.read_batches(columns=[top]):
            array = batch.column(0)
            yield pc.struct_field(array, members) if members else array

    return SearchedColumn(name=column, values=values, parts=parts)
