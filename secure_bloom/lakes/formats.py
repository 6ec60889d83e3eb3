"""The formats of tables whose live files are listed here, one entry for each.

    format = named_format("iceberg://lake/db.t")  # or format_of(TableLog.DELTA), by the log found
    table = format.list_files(path, TableVersion())
    table.files  # the live files, each with what the format says of it
    table.column_mapping  # what the files call the columns; None if nothing else
    log, place = table_to_write(paths)  # of a table that takes new files by a commit

A new format is one more entry of :data:`FORMATS`.  Its reader is imported when a table of the
format is found, because most runs find no table.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError, located
from secure_bloom.lakes.iceberg.catalog import METADATA_SUFFIX, is_in_catalog
from secure_bloom.lakes.live_file import TableVersion
from secure_bloom.lakes.paimon.names import is_named, table_folder
from secure_bloom.storage import TableLog, below, is_object_uri, join, local_path, name_of
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.managed_tables import refuse_above

if TYPE_CHECKING:
    from secure_bloom.lakes.iceberg.table import IcebergFile
    from secure_bloom.lakes.live_file import LiveFile
    from secure_bloom.lakes.paimon.table import PaimonFile
    from secure_bloom.storage.column_mapping import ColumnMapping

    ListedFile: TypeAlias = LiveFile | IcebergFile | PaimonFile | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTable:
    """One table at one version.

    ``place`` is the folder or the metadata file, as errors name it.  ``files`` are the live files
    by their paths.  ``location`` is the folder of a table that was found by another path, and
    ``named`` the path that a table was named by.
    ``schema`` has the dotted names of columns that files may lack, ``partition_columns`` those
    whose values are in the log alone.  ``state`` is the format's own record, None for a log that
    lists files and no more.
    """

    log: TableLog
    place: str
    files: Mapping[str, ListedFile]
    column_mapping: ColumnMapping | None = None
    #: The names in files that differ from file to file, by the paths of the files.
    mappings: Mapping[str, ColumnMapping] = field(default_factory=dict)
    location: str | None = None
    named: str | None = None
    schema: Callable[[], frozenset[str]] = frozenset
    partition_columns: tuple[str, ...] = ()
    state: Any = field(default=None, repr=False)

    def names_of(self, path: str) -> ColumnMapping | None:
        """Return what a file calls the columns, or None if it has the table's names."""
        return self.mappings.get(path, self.column_mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """How tables of one format are found, listed and written.

    ``recognize`` says whether a path names a table by itself; others are found by their ``log``.
    ``may_write`` returns the table that paths name if a run may commit to it, or None.
    """

    log: TableLog
    list_files: Callable[[str, TableVersion], ListedTable]
    recognize: Callable[[str], bool] = lambda _: False
    may_write: Callable[[Sequence[str]], str | None] = lambda _: None


def named_format(path: str) -> TableFormat | None:
    """Return the format of a table that a path names by itself, or None."""
    return next((it for it in FORMATS if it.recognize(path)), None)


def format_of(log: TableLog) -> TableFormat:
    """Return the format of a table with this log, which is one of :data:`READ_LOGS`."""
    return next(it for it in FORMATS if it.log is log)


def table_to_write(paths: Sequence[str], *logs: TableLog) -> tuple[TableLog, str] | None:
    """Return the log and the place of the table that paths name, or None if they name files.

    The table takes new files by a commit.  With ``logs``, only tables with one of them count.
    """
    for each in FORMATS:
        place = each.may_write(paths) if not logs or each.log in logs else None
        if place is not None:
            return each.log, place
    return None


def delta_table(paths: Sequence[str]) -> str | None:
    """Return the folder of the Delta table that the paths name, or None if they name files."""
    found = table_to_write(paths, TableLog.DELTA)
    return None if found is None else found[1]


def refuse_options_of_tables(**given: object) -> None:
    """Raise PolicyError for options that only make sense for a table with a log."""
    for name, value in given.items():
        if value is not None:
            raise PolicyError(
                f"{name} is for the folder of a Delta table, given alone",
                hint="name the files or folders that are wanted instead",
            )


def _delta(folder: str, at: TableVersion) -> ListedTable:
    from secure_bloom.lakes.delta.names import column_names
    from secure_bloom.lakes.delta.snapshot import snapshot

    if at.snapshot is not None:
        raise PolicyError(
            "a Delta table has versions, not snapshots",
            hint="--version N names one",
            path=folder,
        )
    found = snapshot(folder, version=at.version, timestamp=at.timestamp)
    if found is None:
        raise FormatError("the table's log is gone", path=folder)
    with located(path=folder):
        names = column_names(found.metadata)
    return ListedTable(
        log=TableLog.DELTA,
        place=folder,
        files={file.path: file for file in found.files},
        column_mapping=names,
        partition_columns=found.metadata.partition_columns,
        state=found,
    )


def _delta_to_write(paths: Sequence[str]) -> str | None:
    """Return the folder of a Delta table, given alone."""
    from secure_bloom.lakes.delta.log_files import LOG_FOLDER

    if len(paths) != 1:
        return None
    path = local_path(paths[0])
    folder = path if is_object_uri(path) else path.rstrip("/") or "/"
    if not tree_of(folder).is_folder(join(folder, LOG_FOLDER)):
        return None
    # A table inside another one: the outer log would not know of a commit.
    refuse_above([folder])
    return folder


def _iceberg(path: str, at: TableVersion) -> ListedTable:
    from secure_bloom.lakes.iceberg.table import iceberg_table

    found = iceberg_table(path, at)
    return ListedTable(
        log=TableLog.ICEBERG,
        place=found.path,
        files=found.live,
        column_mapping=found.names,
        location=found.location,
        schema=lambda: frozenset(found.column_names()),
        state=found,
    )


def _names_iceberg(path: str) -> bool:
    """Return whether a path is a table of a catalog, or a metadata file by its name."""
    return is_in_catalog(path) or name_of(local_path(path)).endswith(METADATA_SUFFIX)


def _iceberg_to_write(paths: Sequence[str]) -> str | None:
    """Return the table of a catalog, given alone."""
    named = next(filter(is_in_catalog, paths), None)
    if named is not None and len(paths) > 1:
        raise PolicyError("a table of a catalog is given alone", path=named)
    return named


def _paimon(path: str, at: TableVersion) -> ListedTable:
    from secure_bloom.lakes.paimon.table import paimon_table, require_parquet

    found = paimon_table(table_folder(path), at)
    require_parquet(found)
    return ListedTable(
        log=TableLog.PAIMON,
        place=found.folder,
        files=found.files,
        mappings={
            path: names for path, file in found.files.items() if (names := found.mapping(file))
        },
        location=found.folder if is_named(path) else None,
        schema=found.column_names,
        state=found,
    )


def _streaming(folder: str, at: TableVersion) -> ListedTable:
    from secure_bloom.lakes.streaming_sink import committed_files

    if not at.is_latest:
        raise PolicyError(NO_VERSIONS, path=folder)
    files = committed_files(folder)
    tree = tree_of(folder)
    top = tree.key(folder)
    if any(below_key(tree.key(file), top) is None for file in files):
        raise UnsupportedFeatureError(
            "the log of the streaming query names files elsewhere",
            hint="its log has absolute paths: read the table at the path where the query wrote it",
            path=folder,
        )
    return ListedTable(log=TableLog.STREAMING, place=folder, files=dict.fromkeys(files))


def below_key(file: Hashable, top: Hashable) -> str | None:
    """Return the path of a file below another, by their keys, or "" for the file itself."""
    if file == top:
        return ""
    if isinstance(file, str) and isinstance(top, str):
        return below(file, top)
    if isinstance(file, tuple) and isinstance(top, tuple) and file[0] == top[0]:
        return below(f"/{file[1]}", f"/{top[1]}")
    return None


NO_VERSIONS: Final = "only Delta, Iceberg and Paimon tables have versions that can be read"
FORMATS: Final = (
    TableFormat(log=TableLog.PAIMON, list_files=_paimon, recognize=is_named),
    TableFormat(
        log=TableLog.ICEBERG,
        list_files=_iceberg,
        recognize=_names_iceberg,
        may_write=_iceberg_to_write,
    ),
    TableFormat(log=TableLog.DELTA, list_files=_delta, may_write=_delta_to_write),
    TableFormat(log=TableLog.STREAMING, list_files=_streaming),
)
#: The logs by which tables are found in folders.  That of an Iceberg table is not enough: the
#: catalog knows which of its metadata files counts.
READ_LOGS: Final = frozenset({TableLog.DELTA, TableLog.PAIMON, TableLog.STREAMING})
