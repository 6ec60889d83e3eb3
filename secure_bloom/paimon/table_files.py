"""Choose the data files of a Paimon table that get indexes, and the columns of each.

An index rules a file out by the values of its rows alone.  So it may serve only a file whose rows
are the table's rows: in a table with a primary key a newer file may replace a row, and a reader
that left the newer file out would show the old row.  There, every file may have indexes of key
columns, because all versions of a row have the same key.  Other columns are indexed in files that
are not merged with others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Final

import pyarrow as pa

from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError, located
from secure_bloom.lakes.file_selection import chosen_by_partition, unmatched_note
from secure_bloom.lakes.paimon.arrow_types import arrow_type, partition_scalar
from secure_bloom.lakes.paimon.schema import AtomicType, PaimonSchema
from secure_bloom.lakes.paimon.snapshot import read_snapshot
from secure_bloom.lakes.paimon.table import PaimonFile, PaimonTable
from secure_bloom.paimon.column_filter import IndexOptions
from secure_bloom.parquet.schema import unknown_column

_OPTION: Final = "file-index.bloom-filter."
_THRESHOLD: Final = "file-index.in-manifest-threshold"
_DEFAULT_THRESHOLD = 500
_SIZE = re.compile(
    r"\s*(\d{1,15})\s*(|b|bytes|k|kb|kibibytes|m|mb|mebibytes|g|gb)\s*", re.IGNORECASE
)
_UNITS = {"k": 10, "m": 20, "g": 30}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexableFile:
    """A data file that gets an index: the options of its columns, by the table's names.

    ``stored`` maps the name of each column in the table to its name in the file.  ``left_out`` says
    why other columns of the request get none.
    """

    file: PaimonFile
    options: Mapping[str, IndexOptions]
    stored: Mapping[str, str]
    left_out: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexableFiles:
    """The files that get an index, and the reason of each file that gets none."""

    wanted: tuple[IndexableFile, ...]
    skipped: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSelection:
    """The caller's choice of files: those that ``where`` matches, and that are new ``since``.

    ``where`` is a condition on partition columns, ``since`` the number of a snapshot.
    """

    where: str | None = None
    since: int | None = None

    def files(self, table: PaimonTable) -> list[PaimonFile]:
        """Return the selected live files of the table."""
        files = list(table.files.values())
        if self.since is not None:
            before = read_snapshot(table.folder, self.since).live.values()
            known = {entry.place for entry in before}
            files = [file for file in files if file.entry.place not in known]
        return files if self.where is None else _where(table, files, self.where)


def choose(
    table: PaimonTable, selection: IndexSelection, columns: Mapping[str, IndexOptions]
) -> IndexableFiles:
    """Return the files that get an index of some of the ``columns``."""
    refuse_unservable(table)
    wanted: list[IndexableFile] = []
    skipped: dict[str, str] = {}
    for file in selection.files(table):
        if not file.is_parquet:
            skipped[file.path] = "not a Parquet file"
            continue
        usable, reasons = _usable(table, file, columns, is_merged=table.is_merged(file))
        reason = "; ".join(reasons)
        if usable:
            options = {name: columns[name] for name in usable}
            wanted.append(
                IndexableFile(file=file, options=options, stored=usable, left_out=reason or None)
            )
        else:
            skipped[file.path] = reason
    return IndexableFiles(wanted=tuple(wanted), skipped=skipped)


def refuse_unservable(table: PaimonTable) -> None:
    """Raise UnsupportedFeatureError for a table whose rows are assembled from several files."""
    if table.schema.is_on("data-evolution.enabled"):
        raise UnsupportedFeatureError(
            "a table with data-evolution.enabled: the columns of a row may be in several files, "
            "and an index of one file says nothing about the others",
            path=table.folder,
        )
    kind = table.schema.options.get("type", "table")
    if kind not in ("table", "materialized-table"):
        raise UnsupportedFeatureError(
            f"a Paimon table of type {kind}: its files are not in snapshots", path=table.folder
        )


def _usable(
    table: PaimonTable, file: PaimonFile, columns: Iterable[str], *, is_merged: bool
) -> tuple[dict[str, str], list[str]]:
    """Return the columns that an index of the file may have, each with its name in the file.

    Also return the reasons why other columns get no index.
    """
    usable: dict[str, str] = {}
    reasons: list[str] = []
    for name in columns:
        top, bracket, key = name.partition("[")
        reason, stored = _stored(table.schema, file.schema, top)
        if reason is None and is_merged and top not in table.schema.primary_keys:
            reason = (
                f"column {name} is not part of the primary key, and the file's rows are merged "
                "with those of other files until it is compacted"
            )
        if reason is None:
            usable[name] = stored + bracket + key
        else:
            reasons.append(reason)
    return usable, reasons


def _stored(current: PaimonSchema, schema: PaimonSchema, name: str) -> tuple[str | None, str]:
    """Return why a column gets no index, or None, and its name in files of ``schema``."""
    column = current.named(name)
    found = None if column is None else schema.with_id(column.id)
    if column is None or found is None:
        return f"column {name} was added after the file was written", ""
    if found.type != column.type and not _hash_alike(found.atomic, column.atomic):
        return (
            f"column {name} had a type with other hashes when the file was written",
            "",
        )
    return None, found.name


#: Types of which equal values have one hash.
_ALIKE: Final = (
    frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"}),
    frozenset({"CHAR", "VARCHAR", "STRING"}),
    frozenset({"BINARY", "VARBINARY", "BYTES"}),
)


def _hash_alike(one: AtomicType | None, other: AtomicType | None) -> bool:
    if one is None or other is None:
        return False
    if any(one.root in alike and other.root in alike for alike in _ALIKE):
        return True
    # NOT NULL alone may differ, and the length of a decimal, which has no filter.
    return (one.root, one.length) == (other.root, other.length)


def options_of_table(table: PaimonTable) -> dict[str, IndexOptions]:
    """Return the columns of the table's own options, with their sizes.

    Raises PolicyError if the table has no such option, or if the option names a column that the
    table does not have: Paimon keeps the old name when a column is renamed.
    """
    options = table.schema.options
    names = [each.strip() for each in options.get(f"{_OPTION}columns", "").split(",")]
    found = {name: _index_options(table, name) for name in names if name}
    if not found:
        raise PolicyError(
            f"no column is named, and the table has no option {_OPTION}columns",
            hint="name columns: --column id",
            path=table.folder,
        )
    for name in _not_in(table, found):
        raise PolicyError(
            f"the table's option {_OPTION}columns names {name}, a column that the table does not "
            "have",
            hint="name columns: --column id; or correct the option of the table in Paimon",
            path=table.folder,
            column=name,
        )
    return found


def _index_options(table: PaimonTable, name: str) -> IndexOptions:
    options = table.schema.options
    items, fpp = (options.get(f"{_OPTION}{name}.{part}") for part in ("items", "fpp"))
    with located(path=table.folder, column=name):
        try:
            sized = {} if items is None else {"items": int(items)}
            return IndexOptions(**sized, **({} if fpp is None else {"fpp": float(fpp)}))  # type: ignore[arg-type]
        except ValueError:
            raise PolicyError(f"the table's options {_OPTION}{name} are not numbers") from None


def threshold_of(table: PaimonTable) -> int:
    """Return the size in bytes up to which an index goes into the manifest."""
    text = table.schema.options.get(_THRESHOLD)
    if text is None:
        return _DEFAULT_THRESHOLD
    found = _SIZE.fullmatch(text)
    if found is None:
        raise PolicyError(f"the table's option {_THRESHOLD} is not a size", path=table.folder)
    return int(found[1]) << _UNITS.get(found[2][:1].lower(), 0)


def require_columns(table: PaimonTable, columns: Iterable[str]) -> None:
    """Raise PolicyError for a column that the table does not have."""
    for name in _not_in(table, columns):
        raise unknown_column(name, sorted(table.column_names()), (table.folder,))


def _not_in(table: PaimonTable, columns: Iterable[str]) -> list[str]:
    """Return the columns, and keys of maps, whose column the table does not have."""
    known = table.column_names()
    return [name for name in columns if not {name, name.partition("[")[0]} & known]


def refuse_partitions(table: PaimonTable, columns: Iterable[str]) -> None:
    """Raise PolicyError for a column that partitions the table: its index rules out nothing."""
    for name in columns:
        if name in table.schema.partition_keys:
            raise PolicyError(
                f"column {name} partitions the table: there is one value of it in each file, and "
                "Paimon leaves files out by their partitions",
                hint="name other columns; a condition on this one needs no index",
                path=table.folder,
                column=name,
            )


def _where(table: PaimonTable, files: Sequence[PaimonFile], text: str) -> list[PaimonFile]:
    keys = table.schema.partition_keys
    values = partial(_partition_values, table, files)
    return list(compress(files, chosen_by_partition(text, table.folder, keys, values)))


def _partition_values(table: PaimonTable, files: Sequence[PaimonFile], name: str) -> pa.Array:
    """Return the value of a partition column for each file."""
    column, at = table.schema.named(name), table.schema.partition_keys.index(name)
    if column is None:
        raise FormatError(f"the schema has no partition column {name}", path=table.folder)
    # Many files are of few partitions.
    found = {file.partition[at]: None for file in files}
    scalars = {value: partition_scalar(value, column) for value in found}
    return pa.array([scalars[file.partition[at]] for file in files], arrow_type(column))


def unmatched_notes(table: PaimonTable, where: str, *, shows_values: bool) -> Iterator[str]:
    """Yield the note on a condition that no live file matches."""
    files = list(table.files.values())
    keys = table.schema.partition_keys if shows_values else ()
    if files:
        found = {name: _partition_values(table, files, name).unique() for name in keys}
        texts = {name: [it.as_py() for it in values] for name, values in found.items()}
        yield unmatched_note(
            where,
            {
                name: [None if it is None else str(it) for it in values]
                for name, values in texts.items()
            },
        )
