"""A table that takes new files by commits: what a run asks of its format.

    table = format.open_to_write(place, TableChoice(where="day = 1"))
    table.check_columns(["email"])
    target = table.target(TableChange(verb="add", filters={"email": 0.01}))

A format knows no key: which columns are secret is a function of their paths.  All errors of a
request come before anything is written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from secure_bloom.errors import PolicyError
from secure_bloom.runs.target import TableTarget
from secure_bloom.storage.column_mapping import ColumnMapping, OlderColumn, Path, is_dropped

#: Whether a column is secret, by its path in a schema of the table and by the one that files show.
IsSecret: TypeAlias = Callable[[Path, Path], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChoice:
    """The options of a call that choose files of a table, and options that no table has.

    ``written`` is a time in milliseconds after 1970. Files that were written before it are left
    out. ``in_place`` and ``output`` (whether a folder for new files was given) are for files
    without a table.
    """

    where: str | None = None
    since: int | None = None
    branch: str | None = None
    commit_every: int | None = None
    written: int | None = None
    in_place: bool = False
    output: bool = False

    def refuse(self) -> None:
        """Raise PolicyError for an option that only tables have, because the paths name files."""
        for name in ("since", "commit_every", "branch"):
            if getattr(self, name) is not None:
                raise PolicyError(
                    f"{name} is for the folder of a Delta table, or for a table of an Iceberg "
                    "catalog, given alone",
                    hint="name the files or folders that are wanted instead, such as "
                    "TABLE/day=2026-11-20, or choose partitions with where (--where)",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """What a run does to the files of a table, as far as the table's log must record it.

    ``verb`` is the verb of the command line. ``filters`` maps columns to false positive
    probabilities. Three functions select columns: bounds of ``is_secret`` columns are removed from
    the latest metadata, a table whose metadata must show values of ``is_sensitive`` columns is
    refused, and notes show no values of ``is_hidden`` columns. With ``moves_pages``, the pages of a
    new file are at other offsets than those of the old one.
    """

    verb: str
    filters: Mapping[str, float] = field(default_factory=dict)
    replace_filters: bool = False
    is_secret: IsSecret | None = None
    is_sensitive: IsSecret | None = None
    is_hidden: IsSecret | None = None
    moves_pages: bool = False


class WritableTable(ABC):
    """A table at its latest version, with the files that a call has chosen."""

    #: The names of all columns.
    names: ColumnMapping
    #: The folders of a table of a catalog, each with the table's address.
    places: Mapping[str, str] = MappingProxyType({})

    @property
    @abstractmethod
    def opened_names(self) -> ColumnMapping | None:
        """The names with which files are opened, or None if files have the table's names."""

    @abstractmethod
    def older_columns(self) -> Sequence[OlderColumn]:
        """Return the columns whose name in older schemas differs from their present name."""

    @abstractmethod
    def check_columns(self, names: Iterable[str]) -> None:
        """Raise PolicyError for a column that no file of the table can have."""

    @abstractmethod
    def require(self, columns: Iterable[str]) -> None:
        """Raise PolicyError for a column of a policy that the table must have and lacks."""

    @abstractmethod
    def target(self, change: TableChange) -> TableTarget:
        """Return where a run's new files go.

        Raises PolicyError for an option that the table does not have, and UnsupportedFeatureError
        for metadata that would have to show values of sensitive columns.
        """


def without_dropped(columns: Iterable[str], table: WritableTable) -> list[str]:
    """Return ``columns`` without the columns that the table has dropped."""
    dropped = {".".join(it.path) for it in table.older_columns() if is_dropped(it.shown)}
    return [it for it in columns if table.names.stored(it) is not None or it not in dropped]
