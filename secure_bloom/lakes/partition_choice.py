"""Choose the files of a table by a condition on its partition columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.binding import bind
from secure_bloom.predicates.evaluation import true_rows
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.tree import leaves


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
