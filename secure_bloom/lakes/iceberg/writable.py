"""A table of an Iceberg catalog that a run writes to: what it refuses, and its summaries."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from secure_bloom.errors import PolicyError
from secure_bloom.lakes.iceberg.commit_table import open_table
from secure_bloom.lakes.iceberg.live_files import IcebergSelection
from secure_bloom.lakes.iceberg.replacing_snapshot import Rewrite
from secure_bloom.lakes.iceberg.schema_fields import TableColumns, names_of_structure
from secure_bloom.lakes.iceberg.snapshot_run import IcebergRun, open_run
from secure_bloom.lakes.writable_table import IsSecret, TableChange, TableChoice, WritableTable
from secure_bloom.parquet.schema import unknown_column
from secure_bloom.storage.column_mapping import ColumnMapping, OlderColumn, older_columns


class WritableIceberg(WritableTable):
    """A branch of a table of a catalog."""

    def __init__(self, path: str, choice: TableChoice) -> None:
        _refuse_options(path, choice)
        self._choice = choice
        self._table = open_table(path, choice.branch)
        self._columns = TableColumns.of(self._table.metadata)
        self.names: ColumnMapping = self._table.names
        self.places = dict.fromkeys(self._table.folders(), path)

    @property
    def opened_names(self) -> ColumnMapping:
        """The names with which files are opened, by the ids of columns."""
        return self.names

    def older_columns(self) -> list[OlderColumn]:
        """Return the columns that have another name in other schemas of the metadata."""
        schemas = sorted(self._table.metadata.schemas, key=lambda it: it.schema_id)
        return older_columns(self.names, (names_of_structure(it.as_struct()) for it in schemas))

    def check_columns(self, names: Iterable[str]) -> None:
        """Raise PolicyError for a column that no schema of the table has."""
        for name in names:
            if not self._columns.has(name) and not self.names.has_field(name):
                known = map(".".join, self._columns.current.values())
                raise unknown_column(name, known, (self._table.path,))

    def require(self, columns: Iterable[str]) -> None:
        """Do nothing: a policy may have columns of other tables."""

    def target(self, change: TableChange) -> IcebergRun:
        """Return where new files go: into the table's location, and into a snapshot."""
        choice, filters = self._choice, change.filters
        columns = {"columns": json.dumps(filters, ensure_ascii=False)} if filters else {}
        rewrite = replace(
            Rewrite.of(change.verb, **columns),
            secret=self._secret(change.is_secret),
            known=None if change.is_secret is None else self._columns.ids,
            moves_pages=change.moves_pages,
        )
        run = open_run(
            self._table,
            rewrite,
            IcebergSelection(where=choice.where, since=choice.since),
            commit_every=choice.commit_every,
            # A file that keeps its old keys would be a hole; one without a filter is none.
            needs_all=change.verb != "add",
            sensitive=self._secret(change.is_sensitive),
            hidden=self._secret(change.is_hidden),
        )
        run.notes = (*run.notes, *self._notes_on_partitions(filters))
        return run

    def _notes_on_partitions(self, filters: Collection[str]) -> Iterator[str]:
        """Yield a note for each filter of a partition column: metadata already rules files out."""
        for field in self._table.table.spec().fields:
            path = self._columns.current.get(field.source_id, ())
            if ".".join(path) in filters and str(field.transform) == "identity":
                yield (
                    f"column {'.'.join(path)} partitions the table: readers leave files out by the "
                    "table's metadata, and a filter of it adds nothing"
                )

    def _secret(self, is_secret: IsSecret | None) -> frozenset[int]:
        # A column is found by its id, so a file shows no other name that could count.
        if is_secret is None:
            return frozenset()
        return self._columns.secret(lambda path: is_secret(path, path))


def _refuse_options(path: str, choice: TableChoice) -> None:
    for option in ("in_place", "output"):
        if getattr(choice, option):
            raise PolicyError(
                f"{option} is for files: an Iceberg table gets new files and a snapshot",
                hint=f"leave out --{option.replace('_', '-')}",
                path=path,
            )
    if choice.written is not None:
        raise PolicyError(
            "since: an Iceberg table takes the id of a snapshot",
            hint="the commits of a report have it as their `version`",
            path=path,
        )
