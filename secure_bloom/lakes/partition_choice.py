"""Choose the files of a table by a condition on its partition columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.binding import bind
from secure_bloom.predicates.evaluation import true_rows
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.tree import leaves

#: Values of a partition column that a note lists.
_MOST_LISTED = 5


def unmatched_note(text: str, partitions: Mapping[str, Iterable[str | None]]) -> str:
    """Return the note on a condition for which no file was chosen.

    ``partitions`` maps each partition column to its values in the table. A condition on any other
    column is not quoted: it may hold a value of a column with a key.
    """
    asked = list(dict.fromkeys(it.column for it in leaves(from_text(text))))
    shown = [name for name in asked if name in partitions]
    what = f"has {text}" if shown == asked else f"matches the condition on {', '.join(asked)}"
    there = "; ".join(f"{name} is {_some(partitions[name])}" for name in shown)
    return f"no live file {what}" + (f": {there}" if there else "")


def _some(values: Iterable[str | None]) -> str:
    """Return the first values in order, and how many more there are."""
    found = {None if value is None else f"'{value}'" for value in values}
    texts = [*sorted(it for it in found if it is not None), *(["null"] if None in found else [])]
    more = f" and {len(texts) - _MOST_LISTED:,} more" if len(texts) > _MOST_LISTED else ""
    return ", ".join(texts[:_MOST_LISTED]) + more


def chosen_by_partition(
    text: str, folder: str, columns: Sequence[str], values: Callable[[str], pa.Array]
) -> list[bool]:
    """Return for each file whether the condition is true of its partition.

    ``values`` returns the values of a partition column, one for each file.  Raises PolicyError for
    a condition on any other column.
    """
    predicate = from_text(text)
    for condition in leaves(predicate):
        if condition.column not in columns:
            known = f"they are {', '.join(columns)}" if columns else "the table has none"
            raise PolicyError(
                f"where: {condition.column!r} is not a partition column of the table",
                hint="files are chosen by partition columns alone, as in day = '2026-11-20'; "
                + known,
                path=folder,
            )
    table = pa.table({name: values(name) for name in columns})
    # Null where the condition is neither true nor false.
    return [bool(it) for it in true_rows(bind(predicate, table.schema), table).to_pylist()]
