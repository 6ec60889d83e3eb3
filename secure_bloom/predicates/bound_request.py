"""A request to a table: its schema, the wanted columns, and the bound predicate.

A column is hidden if its key is missing in some file, and so is a member of a structure.  By
default a read of a hidden column is an error.  Otherwise it is null in every row, or left out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from secure_bloom.calling.options import MissingKeys
from secure_bloom.errors import KeyUnavailableError, PolicyError
from secure_bloom.parquet.footer.columns import FileColumns
from secure_bloom.parquet.members import (
    Member,
    below,
    members_of,
    named,
    names_beside,
    nullable,
    restricted,
)
from secure_bloom.parquet.schema import in_any_case, unknown_column
from secure_bloom.predicates.binding import BoundPredicate, bind, bound_conditions
from secure_bloom.predicates.tree import Predicate

#: The metadata of a field with hidden members: their names.
HIDDEN = b"secure_bloom.hidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenColumns:
    """The members of columns whose key is missing, as far as they were looked for."""

    mode: MissingKeys = MissingKeys.ERROR
    members: frozenset[Member] = frozenset()

    @property
    def columns(self) -> frozenset[str]:
        """The top-level columns with hidden members."""
        return frozenset(member[0] for member in self.members)

    @property
    def names(self) -> tuple[str, ...]:
        """The dotted names of the hidden members."""
        return tuple(sorted(".".join(member) for member in self.members))

    def largest(self, schema: pa.Schema) -> frozenset[Member]:
        """Return the hidden members, with a structure in place of its members if all are hidden."""
        found = set()
        for member in self.members:
            every = members_of(schema.field(member[0]))
            prefixes = (member[:length] for length in range(1, len(member) + 1))
            found.add(
                next(
                    prefix
                    for prefix in prefixes
                    if all(it in self.members for it in every if below(it, [prefix]))
                )
            )
        return frozenset(found)

    def shown(self, column: pa.Field) -> pa.Field | None:
        """Return a column as a read shows it, or None if it is left out."""
        if column.name not in self.columns:
            return column
        if self.mode is MissingKeys.DROP:
            return restricted(column, lambda member: member not in self.members)
        return marked(nullable(column, self.members.__contains__), self.members)

    def check(self, path: Member, column: pa.Field) -> None:
        """Raise KeyUnavailableError for a condition on ``path`` in a column, if it is hidden.

        Whether a structure is null is known as long as one of its members is not hidden.
        """
        inside = [member for member in members_of(column) if below(member, [path])]
        if below(path, self.members) or (inside and self.members.issuperset(inside)):
            raise KeyUnavailableError(
                "its key is missing, so no condition on it can be answered",
                hint="give its key, or ask without this condition",
                column=".".join(path),
            )

    def unusable(self, name: str) -> KeyUnavailableError:
        """Return the error for a query that uses hidden values for anything but output."""
        return KeyUnavailableError(
            "its key is missing, so it can be shown as null, but the query computes with it",
            hint="give its key, or leave it out; missing_keys='drop' (--missing-keys drop) reads "
            "the table without it",
            column=name,
        )


def left_out(name: str) -> KeyUnavailableError:
    """Return the error for a column that is asked for, and that a read leaves out."""
    return KeyUnavailableError(
        "its key is missing, so the read leaves it out, but the request names it",
        hint="give its key, or ask for other columns; missing_keys='null' (--missing-keys "
        "null) shows it as null",
        column=name,
    )


def without(unused: frozenset[Member]) -> HiddenColumns:
    """Return how members that no read needs are left out."""
    return HiddenColumns(mode=MissingKeys.DROP, members=unused)


def marked(column: pa.Field, hidden: Iterable[Member]) -> pa.Field:
    """Return the column with the names of its hidden members in its metadata."""
    names = sorted(".".join(member) for member in hidden if member[0] == column.name)
    return column.with_metadata({HIDDEN: ", ".join(names).encode()}) if names else column


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """The schema of the whole table, the output columns, and the predicate.

    ``output_schema`` has the columns of the result, which may lack members of structures.
    """

    schema: pa.Schema
    partitions: tuple[str, ...]
    output_schema: pa.Schema
    predicate: BoundPredicate | None
    hidden: HiddenColumns = field(default_factory=HiddenColumns)

    @functools.cached_property
    def output(self) -> tuple[str, ...]:
        """The top-level columns of the result."""
        return tuple(self.output_schema.names)

    @functools.cached_property
    def filtered(self) -> tuple[str, ...]:
        """The top-level columns of the predicate."""
        found = (condition.path[0] for condition in bound_conditions(self.predicate))
        return tuple(dict.fromkeys(found))

    @functools.cached_property
    def needed(self) -> tuple[str, ...]:
        """The top-level columns that must be read from files."""
        names = dict.fromkeys((*self.filtered, *self.output))
        return tuple(name for name in names if name not in self.partitions)

    def reads(self, columns: FileColumns, whole: Iterable[str] = ()) -> FileColumns:
        """Return the columns of a file without the members that are not read.

        The columns ``whole`` are read with all members.
        """
        left_out: set[int] = set()
        for name in self._partly_read:
            if name not in whole:
                members = columns.members(name)
                read = self._read_of([member for member, _ in members])
                left_out.update(ordinal for member, ordinal in members if member not in read)
        return columns.without(frozenset(left_out))

    def _read_of(self, members: Sequence[Member]) -> set[Member]:
        """Return the members that are read, among a file's members of one column.

        Where a structure is null, only its members say.  So if a hidden member is shown, another of
        the same structure is read, or of the innermost structure around it that has one.
        """
        read = set(filter(self._reads, members))
        readable = [member for member in members if member not in self.hidden.members]
        for hidden in self.hidden.members.intersection(members) & self._shown:
            around = (hidden[:length] for length in range(len(hidden) - 1, 0, -1))
            beside = (list(filter(_is_below([path]), readable)) for path in around)
            if (found := next(filter(None, beside), [])) and read.isdisjoint(found):
                read.add(min(found, key=len))
        return read

    @functools.cached_property
    def _partly_read(self) -> Sequence[str]:
        """The columns that are read without some of their members."""
        return [
            name
            for name in self.needed
            if (pa.types.is_nested(self.schema.field(name).type) or name in self.hidden.columns)
            and not all(map(self._reads, members_of(self.schema.field(name))))
        ]

    def _reads(self, member: Member) -> bool:
        if member in self.hidden.members:
            return False
        return member in self._shown or below(member, self._conditioned)

    @functools.cached_property
    def _shown(self) -> frozenset[Member]:
        return frozenset(member for column in self.output_schema for member in members_of(column))

    @functools.cached_property
    def _conditioned(self) -> Sequence[Member]:
        return [condition.path for condition in bound_conditions(self.predicate)]

    @functools.cached_property
    def compared_schema(self) -> pa.Schema:
        """The columns of the predicate, with the members that are read."""
        found = [
            self.schema.field(name)
            if name in self.partitions
            else restricted(self.schema.field(name), self._reads)
            for name in self.filtered
        ]
        return pa.schema([column for column in found if column is not None])

    @functools.cached_property
    def no_rows(self) -> pa.Table:
        """A result without rows.

        It is made once, because most row groups that are read have no match.
        """
        # pyarrow makes no empty array where an extension type is inside another type.
        return pa.Table.from_batches([], self.output_schema)


def whole_schema(
    schema: pa.Schema, partitions: Sequence[pa.Field], order: Sequence[str] = ()
) -> pa.Schema:
    """Return all columns of a table: partition columns last, unless ``order`` names all."""
    names = {field.name for field in partitions}
    whole = pa.schema([*(field for field in schema if field.name not in names), *partitions])
    return pa.schema([whole.field(name) for name in order]) if order else whole


def request(
    whole: pa.Schema,
    partitions: Sequence[pa.Field],
    columns: Sequence[str] | None,
    predicate: Predicate | None,
    paths: Sequence[str],
) -> Request:
    """Return the request to a table. Raises PolicyError for a column that the table lacks.

    A name in ``columns`` may be the dotted one of a member: the result has the structure with the
    members that are asked for.
    """
    output = whole.remove_metadata()
    if columns is not None:
        output = pa.schema(list(_asked_for(whole, columns)))
    if not len(output):
        raise PolicyError("no column is asked for")
    return Request(
        schema=whole,
        partitions=tuple(column.name for column in partitions),
        output_schema=output,
        predicate=None if predicate is None else bind(predicate, whole, paths),
    )


def _asked_for(whole: pa.Schema, columns: Sequence[str]) -> Iterable[pa.Field]:
    """Yield the columns in their order, each once."""
    # Once: a schema makes its list of names anew each time.
    names = whole.names
    known = frozenset(names)
    members: dict[str, list[Member]] = {}
    for name in dict.fromkeys(columns):
        paths = [(name,)] if name in known else _members_named(whole, name)
        if not paths and (spelled := in_any_case(name, names)) is not None:
            paths = [(spelled,)]
        if not paths:
            raise unknown_column(name, names_beside(name, whole))
        for path in paths:
            members.setdefault(path[0], []).append(path)
    for top, wanted in members.items():
        found = restricted(whole.field(top), _is_below(wanted))
        if found is not None:
            yield found


def _members_named(whole: pa.Schema, name: str) -> list[Member]:
    return [
        path
        for column in whole
        if name.startswith(f"{column.name}.")
        for path in named(column, name)
    ]


def _is_below(wanted: Sequence[Member]) -> Callable[[Member], bool]:
    return lambda member: below(member, wanted)


def with_hidden(asked: Request, hidden: HiddenColumns, *, by_name: bool) -> Request:
    """Return the request without what is hidden, or with null in its place.

    Raises KeyUnavailableError for a condition on a hidden column, for a hidden column that is
    asked for ``by_name`` and would be left out, and if no column is left.
    """
    for condition in bound_conditions(asked.predicate):
        if condition.path[0] not in asked.partitions:
            hidden.check(condition.path, asked.schema.field(condition.path[0]))
    shown = [(column.name, hidden.shown(column)) for column in asked.output_schema]
    gone = [name for name, column in shown if column is None]
    if gone and (by_name or len(gone) == len(shown)):
        column = asked.output_schema.field(gone[0])
        # Other members of the column may be readable: the error names the one that is not.
        is_whole = column.type == asked.schema.field(gone[0]).type
        raise left_out(gone[0] if is_whole else ".".join(members_of(column)[0]))
    left = pa.schema([column for _, column in shown if column is not None])
    return replace(asked, output_schema=left, hidden=hidden)
