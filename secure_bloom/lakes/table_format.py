"""The interface of a format of tables, and the records that its methods return.

    format.recognizes("iceberg://lake/db.t")      # a path names a table by itself
    table = format.list_table(path, TableVersion())
    table.files                                   # live files, with what the format says of each
    table.column_mapping, table.schema()          # names of columns
    format.rows_of(table.state, files)            # columns, partition values and deleted rows
    format.table_to_write(paths)                  # the table that takes new files by a commit
    format.open_to_write(place, TableChoice())    # that table, and the target of a run
    format.refusal, format.rewritten_by           # why files may not be written, and by what else

What a run writes into a table goes through a target of ``runs``: ``publishing`` yields the tasks of
new files, and commits their sizes.  A format knows no filter and no key.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.storage import below

if TYPE_CHECKING:
    import pyarrow as pa

    from secure_bloom.lakes.deletion_vectors import DeletedRows, PaimonDeletedRows
    from secure_bloom.lakes.delta.live_file import LiveFile
    from secure_bloom.lakes.iceberg.deletes import DeletedPositions, EqualityFile
    from secure_bloom.lakes.iceberg.table import IcebergFile
    from secure_bloom.lakes.paimon.table import PaimonFile
    from secure_bloom.lakes.writable_table import TableChoice, WritableTable
    from secure_bloom.storage.column_mapping import ColumnMapping

    ListedFile: TypeAlias = LiveFile | IcebergFile | PaimonFile | None
    Deleted: TypeAlias = DeletedRows | PaimonDeletedRows | DeletedPositions

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """The wanted version of a table: a number, the last one at or before a time, or the latest.

    ``version`` is for a Delta table, ``snapshot`` is the id of a snapshot of other tables.
    """

    version: int | None = None
    timestamp: str | datetime | None = None
    snapshot: int | None = None

    def __post_init__(self) -> None:
        if [self.version, self.timestamp, self.snapshot].count(None) < 2:
            raise PolicyError("several versions of a table are asked for: one is enough")

    @property
    def is_latest(self) -> bool:
        """Whether the latest version is wanted."""
        return self == TableVersion()


def milliseconds(timestamp: str | datetime) -> int:
    """Return a time as milliseconds after 1970, rounded down. Without a zone it is UTC."""
    try:
        at = timestamp if isinstance(timestamp, datetime) else datetime.fromisoformat(timestamp)
    except (TypeError, ValueError) as exc:
        raise PolicyError(
            "the timestamp is not a time in ISO 8601", hint="for example 2026-01-31T12:00:00Z"
        ) from exc
    return (at.replace(tzinfo=at.tzinfo or UTC) - _EPOCH) // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTable:
    """One table at one version.

    ``place`` is the folder or the metadata file, as errors name it. ``files`` are the live files by
    their paths. ``locations`` are folders of the table besides ``place``, such as those of a table
    that was named by its catalog. ``named`` is the path by which the caller named the table itself.
    ``schema`` returns the dotted names of columns, some of which files may lack.
    ``partition_columns`` are the columns whose values are only in the log. ``state`` is the
    format's own record, or None for a log that only lists files.
    """

    format: TableFormat
    place: str
    files: Mapping[str, ListedFile]
    column_mapping: ColumnMapping | None = None
    #: The names in files that differ from file to file, by the paths of the files.
    mappings: Mapping[str, ColumnMapping] = field(default_factory=dict)
    locations: tuple[str, ...] = ()
    named: str | None = None
    schema: Callable[[], frozenset[str]] = frozenset
    partition_columns: tuple[str, ...] = ()
    state: Any = field(default=None, repr=False)

    def names_of(self, path: str) -> ColumnMapping | None:
        """Return a file's names of the columns, or None if the file has the table's names."""
        return self.mappings.get(path, self.column_mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """Everything that turns the rows of files into rows of the table.

    ``columns`` are the table's columns in their order, ``names`` the column mapping that holds for
    all files. Each sequence has one item for each file, or is empty. ``partitions`` has the values
    of the ``partition_columns``. ``fills`` has the values of other columns that the file lacks,
    except nulls.
    """

    columns: pa.Schema
    names: ColumnMapping | None
    partition_columns: Collection[str] = ()
    partitions: Sequence[Mapping[str, str | None]]
    deleted: Sequence[Deleted | None]
    equality_deletes: Sequence[tuple[EqualityFile, ...]] = ()
    fills: Sequence[Mapping[str, pa.Scalar]] = ()


class TableFormat(ABC):
    """How tables of one format are found, listed, read and written. It has no state.

    ``title`` is how errors call a table.  ``log_folder`` is where its log is.  With ``log_mark``,
    a folder of that name counts only if it holds a file whose name matches.  ``is_found_by_log``
    is whether a folder with this log is listed as a table; other tables are named by a path.
    """

    title: ClassVar[str]
    log_folder: ClassVar[str]
    log_mark: ClassVar[re.Pattern[str] | None] = None
    is_found_by_log: ClassVar[bool] = False
    #: The hint of an error for a verb that does not honour the log.
    refusal: ClassVar[str] = (
        "read the table with its own engine, or write its rows to plain Parquet files"
    )
    #: Why ``{verb}`` does not write new files, and what does.
    rewritten_by: ClassVar[str]

    def __str__(self) -> str:
        return self.title

    def recognizes(self, path: str) -> bool:  # noqa: ARG002 - none by default
        """Return whether a path names a table by itself."""
        return False

    @abstractmethod
    def list_table(self, path: str, at: TableVersion) -> ListedTable:
        """Return the table at a path, with its live files at a version."""

    def table_to_write(self, paths: Sequence[str]) -> str | None:  # noqa: ARG002 - none by default
        """Return the table that paths name if it takes new data files by a commit, or None."""
        return None

    def takes_verb(self, verb: str, path: str) -> bool:  # noqa: ARG002 - none by default
        """Return whether the verb can commit to the table that a path names."""
        return False

    def open_to_write(self, place: str, choice: TableChoice) -> WritableTable:  # noqa: ARG002
        """Return the table of :meth:`table_to_write` at its latest version, with chosen files.

        Raises an error for an option that its format does not have.
        """
        raise UnsupportedFeatureError(
            f"{self.title} takes no new files by a commit", hint=self.refusal, path=place
        )

    def rows_of(self, state: Any, files: Sequence[Any]) -> TableRows:  # noqa: ARG002
        """Return the columns, names, partition values and deletes of some of the table's files.

        Raises UnsupportedFeatureError if its rows cannot be read.
        """
        raise UnsupportedFeatureError(
            f"the log of {self.title} does not say how to read its files", hint=self.refusal
        )

    def older_names(self, state: Any) -> list[ColumnMapping]:  # noqa: ARG002 - none by default
        """Return the names of columns in all schemas that the table's metadata has."""
        return []

    def files_of_branches(self, state: Any) -> Mapping[str, str]:  # noqa: ARG002 - none by default
        """Return the live files of other branches, each with the name of a branch."""
        return {}

    def lacks_a_column(self, state: Any, names: Collection[str]) -> bool | None:  # noqa: ARG002
        """Return whether the table lacks one of the columns, or None if only files show it."""
        return None


def below_key(file: Hashable, top: Hashable) -> str | None:
    """Return the path of a file relative to ``top``, "" for ``top`` itself, or None outside it.

    Both are given by their keys.
    """
    if file == top:
        return ""
    if isinstance(file, str) and isinstance(top, str):
        return below(file, top)
    if isinstance(file, tuple) and isinstance(top, tuple) and file[0] == top[0]:
        return below(f"/{file[1]}", f"/{top[1]}")
    return None
