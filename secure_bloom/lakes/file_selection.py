"""Select files: those of folders by their partition and by the time at which they were written.

The files of a table with a log are chosen by the partition values in the log.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from secure_bloom.errors import PolicyError
from secure_bloom.lakes.hive_partitions import Values, folder_type, folder_values, partition_values
from secure_bloom.parquet.texts import SECOND, timestamp_nanos
from secure_bloom.predicates.binding import bind
from secure_bloom.predicates.evaluation import true_rows
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.tree import Condition, Operator, Predicate, is_true, leaves
from secure_bloom.storage.folder_trees import Tree

#: Kept answers on partition values: a table has many folders for one value.
_ANSWERS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSelection:
    """The files under ``roots`` whose partition fits ``predicate``, written at ``since`` or later.

    ``since`` is in nanoseconds after 1970.
    """

    roots: tuple[str, ...]
    predicate: Predicate | None = None
    since: int | None = None

    @property
    def is_everything(self) -> bool:
        """Whether no file is left out."""
        return self.predicate is None and self.since is None

    def folder(self, path: str, /) -> bool:
        """Return whether any file below the folder may be wanted.

        Partition values in the names of its subfolders are not known yet.
        """
        if self.predicate is None:
            return True
        values = partition_values(f"{path}/", self.roots)
        return is_true(
            self.predicate,
            lambda condition: condition.column not in values or _holds(condition, values),
        )

    def file(self, tree: Tree, path: str, /) -> bool:
        """Return whether the file is wanted.

        Raises PolicyError if its path lacks a column of the predicate. The time is checked last,
        because it may cost a request in an object store.
        """
        if self.predicate is not None:
            values = partition_values(path, self.roots)
            for condition in leaves(self.predicate):
                if condition.column not in values:
                    raise _no_partition(condition.column, values, path)
            if not is_true(self.predicate, lambda condition: _holds(condition, values)):
                return False
        return self.since is None or tree.written_ns(path) >= self.since


def file_selection(
    roots: Sequence[str], where: str | None, since: datetime | str | None = None
) -> FileSelection:
    """Return the selection that a caller described. Times without a zone are UTC."""
    return FileSelection(
        roots=tuple(roots),
        predicate=None if where is None else from_text(where),
        since=None if since is None else since_nanos(since),
    )


def since_nanos(since: datetime | str) -> int:
    """Return a time in nanoseconds after 1970. Raises PolicyError for a text that is not a time."""
    if isinstance(since, str):
        try:
            return timestamp_nanos(since, is_utc=True)
        except ValueError:
            raise PolicyError(
                f"since: {since!r} is not a timestamp",
                hint="wanted for example 2026-11-20T13:00:00Z, or a datetime",
            ) from None
    aware = since if since.tzinfo is not None else since.replace(tzinfo=UTC)
    return int(aware.timestamp()) * SECOND + aware.microsecond * 1000


def _holds(condition: Condition, values: Values) -> bool:
    return _is_met(condition, values[condition.column])


@functools.lru_cache(maxsize=_ANSWERS)
def _is_met(condition: Condition, text: str | None) -> bool:
    """Return whether the value of a folder meets the condition.

    The value is compared as a number or a date if it reads as one and the condition allows that.
    Otherwise it is compared as a text: beside the folder ``code=123`` there may be ``code=abc``.
    """
    if text is None:
        return condition.operator is Operator.IS_NULL
    forms = [folder_values(condition.column, [text], folder_type([text])), pa.array([text])]
    if text.endswith("NaN"):
        # As a number it equals nothing, so nobody could ask for the folder.
        forms.reverse()
    try:
        return _compare(condition, forms[0])
    except PolicyError:
        return _compare(condition, forms[1])


def _compare(condition: Condition, column: pa.Array) -> bool:
    table = pa.table({condition.column: column})
    return bool(true_rows(bind(condition, table.schema), table)[0].as_py())


def _no_partition(column: str, values: Values, path: str) -> PolicyError:
    known = f"they are {', '.join(values)}" if values else "the table has none"
    return PolicyError(
        f"where: {column!r} is not a partition column of this file",
        hint="where (--where) chooses files by partition columns alone, as in "
        f"day = '2026-11-20'; {known}",
        path=path,
    )


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
