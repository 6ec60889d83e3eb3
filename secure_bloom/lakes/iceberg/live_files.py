"""Read the data files of a snapshot from its manifests, and pick the files of a run."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNull,
    Or,
)
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    expression_evaluator,
    inclusive_projection,
)
from pyiceberg.manifest import (
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform

from secure_bloom.errors import FormatError, PolicyError, SecureBloomError
from secure_bloom.lakes.file_selection import unmatched_note
from secure_bloom.lakes.iceberg.commit_table import CommitTable
from secure_bloom.lakes.iceberg.deletes import (
    FILE_PATH_FIELD,
    REFERENCE_BYTES,
    only_path,
    partition_of,
)
from secure_bloom.lakes.iceberg.kept_entries import EntryKeeper, KeptEntry
from secure_bloom.lakes.iceberg.metadata_files import (
    counted_by_block,
    counted_together,
    listed_manifests,
    manifest_entries,
)
from secure_bloom.lakes.iceberg.table import add_once
from secure_bloom.parquet.metadata_rows import metadata_rows
from secure_bloom.predicates.binding import BoundCondition, BoundPredicate, bind
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.tree import AllOf, AnyOf, Operator
from secure_bloom.running.memory_budget import DecodedBytes, refuse_beyond

_FILE_PATH_COLUMN: Final = "file_path"
_DELETED: Final = ManifestEntryStatus.DELETED

_Entry = TypeVar("_Entry", ManifestEntry, KeptEntry)
_Build = Callable[[str, list[Any]], BooleanExpression]
#: Operators that metrics of files can decide.  A negated comparison of floats is left out: it is
#: true for a NaN, which bounds do not show.
_EXPRESSIONS: Final[dict[Operator, _Build]] = {
    Operator.EQUAL: lambda name, values: EqualTo(name, values[0]),
    Operator.NOT_EQUAL: lambda name, values: NotEqualTo(name, values[0]),
    Operator.LESS: lambda name, values: LessThan(name, values[0]),
    Operator.LESS_OR_EQUAL: lambda name, values: LessThanOrEqual(name, values[0]),
    Operator.GREATER: lambda name, values: GreaterThan(name, values[0]),
    Operator.GREATER_OR_EQUAL: lambda name, values: GreaterThanOrEqual(name, values[0]),
    Operator.IN: lambda name, values: In(name, values),
    Operator.NOT_IN: lambda name, values: NotIn(name, values),
    Operator.IS_NULL: lambda name, _: IsNull(name),
    Operator.IS_NOT_NULL: lambda name, _: NotNull(name),
}


class DataPaths:
    """Paths of data files, in the order in which the bounds of delete files are compared.

    A table may have as many delete files as data files. So no delete file is compared with every
    path.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = sorted(set(paths), key=str.encode)
        self._encoded = [it.encode() for it in self._paths]
        self._known = frozenset(self._paths)

    def __contains__(self, path: object) -> bool:
        """Return whether the path is among the paths."""
        return path in self._known

    def between(self, low: bytes | None, high: bytes | None) -> Sequence[str]:
        """Return the paths between two bounds; all, if one is missing."""
        if low is None or high is None:
            return self._paths
        start = bisect_left(self._encoded, low)
        # The upper bound is above all texts that begin with `high`.
        return self._paths[start : bisect_right(self._encoded, high + b"\xff" * 8, start)]


@dataclass(slots=True)
class Manifests:
    """The manifests of snapshots, and their entries. Each file is read once: none ever changes.

    One memory budget covers everything that is kept of them.
    """

    io: Any
    _kept: DecodedBytes = field(default_factory=lambda: DecodedBytes("the table's metadata"))
    _lists: dict[str, list[ManifestFile]] = field(default_factory=dict)
    _entries: dict[str, list[KeptEntry]] = field(default_factory=dict)
    #: The data files that position delete files name, as far as these were read.
    _named: dict[str, frozenset[str]] = field(default_factory=dict)

    def of(self, snapshot: Any, content: ManifestContent) -> list[ManifestFile]:
        """Return a snapshot's manifests of data files or of delete files."""
        name = snapshot.manifest_list
        if name not in self._lists:
            with damaged_metadata():
                files = counted_together(self.io, self._kept)
                self._lists[name] = listed_manifests(snapshot, files)
        return [it for it in self._lists[name] if it.content == content]

    def entries(self, manifest: ManifestFile) -> list[KeptEntry]:
        """Return the entries of a manifest that are not deleted."""
        return [it for it in self.all_entries(manifest) if it.status != _DELETED]

    def all_entries(self, manifest: ManifestFile) -> list[KeptEntry]:
        """Return the entries of a manifest, including files that a snapshot has deleted."""
        path = manifest.manifest_path
        if path not in self._entries:
            files, keeper = counted_by_block(self.io), EntryKeeper(self._kept)
            with damaged_metadata():
                found = manifest_entries(manifest, files, with_deleted=True)
                self._entries[path] = list(map(keeper.kept, found))
        return self._entries[path]

    def live(self, snapshot: Any) -> dict[str, KeptEntry]:
        """Return the live data files of a snapshot, by their paths in the manifests.

        Raises FormatError if two entries name one data file. Readers then count its rows twice,
        but would count the rows of its replacement once.
        """
        found: dict[str, KeptEntry] = {}
        for entry in self._data(snapshot):
            add_once(found, entry.data_file.file_path, entry)
        return found

    def live_paths(self, snapshot: Any) -> frozenset[str]:
        """Return the paths of the live data files of a snapshot."""
        return frozenset(entry.data_file.file_path for entry in self._data(snapshot))

    def _data(self, snapshot: Any) -> Iterator[KeptEntry]:
        for manifest in () if snapshot is None else self.of(snapshot, ManifestContent.DATA):
            yield from self.entries(manifest)

    def deletes(self, snapshot: Any) -> list[KeptEntry]:
        """Return the live delete files of a snapshot."""
        if snapshot is None:
            return []
        return [
            entry
            for manifest in self.of(snapshot, ManifestContent.DELETES)
            for entry in self.entries(manifest)
        ]

    def named_paths(self, deletes: KeptEntry, among: DataPaths) -> Collection[str]:
        """Return the data files in ``among`` that a position delete file names.

        If the file's content is not read, because it is no Parquet file, all data files between
        its bounds are returned.
        """
        file = deletes.data_file
        only = only_path(file)
        if only is not None:
            return [only] if only in among else []
        low, high = (
            (bounds or {}).get(FILE_PATH_FIELD) for bounds in (file.lower_bounds, file.upper_bounds)
        )
        found = among.between(low, high)
        if found and file.file_format == FileFormat.PARQUET:
            if file.file_path not in self._named:
                self._named[file.file_path] = _read_paths(file, self.io)
            found = [it for it in self._named[file.file_path] if it in among]
        self._kept.add(REFERENCE_BYTES * len(found))
        return found


class damaged_metadata:  # noqa: N801  (used as a context manager)
    """Turn any foreign exception of the block into FormatError, without its text.

    The text may quote bounds of columns.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, SecureBloomError):
            raise FormatError("pyiceberg cannot read the table's manifests") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The data files of a run, by their paths in the manifests, and the reasons of skipped ones.

    ``deletes`` are the position delete files that apply to a wanted data file and name it.
    """

    wanted: Mapping[str, KeptEntry]
    skipped: Mapping[str, str]
    deletes: Mapping[str, tuple[KeptEntry, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergSelection:
    """The caller's choice of files: those that ``where`` matches, and that are new ``since``.

    ``where`` is a condition on columns and partitions, ``since`` the id of a snapshot.
    """

    where: str | None = None
    since: int | None = None

    def files(self, table: CommitTable, manifests: Manifests) -> Chosen:
        """Return the selected live data files of the branch."""
        live = manifests.live(table.head)
        if self.since is not None:
            known = manifests.live_paths(_known_snapshot(table, self.since))
            live = {path: entry for path, entry in live.items() if path not in known}
        if self.where is not None and live:
            live = _may_match(table, live, self.where)
        deletes = _position_deletes(manifests.deletes(table.head), live, manifests)
        skipped = {
            path: reason
            for path, entry in live.items()
            if (reason := _skip(entry, deletes.get(path, ())))
        }
        wanted = {path: entry for path, entry in live.items() if path not in skipped}
        return Chosen(
            wanted=wanted,
            skipped=skipped,
            deletes={path: tuple(it) for path, it in deletes.items() if path in wanted},
        )


def unmatched_notes(
    table: CommitTable, manifests: Manifests, where: str, hidden: Collection[int]
) -> Iterator[str]:
    """Yield the note on a condition that no live data file matches.

    The note lists values of partitions, except those of the ``hidden`` columns.
    """
    live = manifests.live(table.head).values()
    schema, found = table.metadata.schema(), dict[str, dict[str | None, None]]()
    with damaged_metadata():
        for spec_id, entries in group_by_spec(live).items():
            for position, field_ in enumerate(table.metadata.specs()[spec_id].fields):
                source = schema.find_column_name(field_.source_id)
                if source is None or not isinstance(field_.transform, IdentityTransform):
                    continue
                kind, column = schema.find_type(field_.source_id), found.setdefault(source, {})
                for entry in entries if field_.source_id not in hidden else ():
                    value = entry.data_file.partition[position]
                    shown = field_.transform.to_human_string(kind, value)
                    column[None if value is None else shown] = None
    if live:
        yield unmatched_note(where, {name: values for name, values in found.items() if values})


def _known_snapshot(table: CommitTable, snapshot_id: int) -> Any:
    found = table.metadata.snapshot_by_id(snapshot_id)
    if found is None:
        raise PolicyError(
            f"since: the table has no snapshot {snapshot_id}",
            hint="it may have expired; without --since all files are looked at",
            path=table.path,
        )
    return found


def _may_match(
    table: CommitTable, live: Mapping[str, KeptEntry], where: str
) -> dict[str, KeptEntry]:
    """Return the live data files that may hold a row matching ``where``, by partition and metrics.

    pyiceberg's scan planning is not used: it would read the manifests again, outside the run's
    memory budget.
    """
    schema, specs = table.metadata.schema(), table.metadata.specs()
    chosen = row_filter(where, schema)

    @cache
    def partitions(spec_id: int) -> Callable[[Any], bool]:
        spec = specs[spec_id]
        fields = Schema(*spec.partition_type(schema).fields)
        projected = inclusive_projection(schema, spec)(chosen)
        evaluate: Callable[[Any], bool] = expression_evaluator(
            fields, projected, case_sensitive=True
        )
        return evaluate

    with damaged_metadata():
        metrics = _InclusiveMetricsEvaluator(schema, chosen)
        return {
            path: entry
            for path, entry in live.items()
            if partitions(entry.data_file.spec_id)(entry.data_file.partition)
            and metrics.eval(entry.data_file)
        }


def _position_deletes(
    deletes: Iterable[KeptEntry], live: Mapping[str, KeptEntry], manifests: Manifests
) -> dict[str, list[KeptEntry]]:
    """Return the position delete files that apply to each live data file and name it."""
    found: dict[str, list[KeptEntry]] = {}
    among = DataPaths(live)
    for entry in deletes:
        if entry.data_file.content != DataFileContent.POSITION_DELETES:
            continue
        for path in manifests.named_paths(entry, among):
            if _applies(entry, live[path]):
                found.setdefault(path, []).append(entry)
    return found


def _applies(deletes: KeptEntry, data: KeptEntry) -> bool:
    """Return whether a position delete file applies to a data file (spec, "Scan Planning")."""
    if (deletes.sequence_number or 0) < (data.sequence_number or 0):
        return False
    file = deletes.data_file
    return only_path(file) is not None or partition_of(file) == partition_of(data.data_file)


def _skip(entry: KeptEntry, deletes: Sequence[KeptEntry]) -> str | None:
    """Return why a data file gets no new file, or None if it may get one."""
    if any(it.data_file.file_format != FileFormat.PARQUET for it in deletes):
        return "a delete file that is not Parquet names it, so a copy would bring deleted rows back"
    if entry.data_file.key_metadata is not None:
        return "it is encrypted by Iceberg's own keys"
    if entry.data_file.file_format != FileFormat.PARQUET:
        return f"it is {entry.data_file.file_format.value}, not Parquet"
    return None


def paths_with_deleted_rows(
    deletes: Iterable[KeptEntry], wanted: Iterable[str], manifests: Manifests
) -> frozenset[str]:
    """Return the ``wanted`` data files that a position delete or deletion vector names."""
    among, found = DataPaths(wanted), set[str]()
    for entry in deletes:
        if entry.data_file.content == DataFileContent.POSITION_DELETES:
            found.update(manifests.named_paths(entry, among))
    return frozenset(found)


def _read_paths(file: Any, io: Any) -> frozenset[str]:
    found: set[str] = set()
    with damaged_metadata():
        given = io.new_input(file.file_path)
        refuse_beyond(2 * len(given), "the delete file")
        with given.open() as stream:
            content = stream.read()
        for batch in metadata_rows(
            file.file_path,
            content,
            DecodedBytes("the delete file"),
            lambda _: [_FILE_PATH_COLUMN],
            dictionaries=[_FILE_PATH_COLUMN],
        ):
            found.update(batch.column(0).unique().to_pylist())
    return frozenset(found)


def group_by_spec(entries: Iterable[_Entry]) -> dict[int, list[_Entry]]:
    """Return the entries by the id of their partition spec. A manifest has entries of one spec."""
    found: dict[int, list[_Entry]] = {}
    for entry in entries:
        found.setdefault(entry.data_file.spec_id, []).append(entry)
    return found


def row_filter(where: str, schema: Schema) -> BooleanExpression:
    """Return an expression that is true for every file that has a matching row.

    Raises PolicyError for a column that the table lacks, or a value that a column cannot hold.
    """
    return _translated(bind(from_text(where), schema.as_arrow().remove_metadata()))


def _translated(tree: BoundPredicate) -> BooleanExpression:
    if not isinstance(tree, AllOf | AnyOf):
        return _condition(tree)
    found, *rest = map(_translated, tree.parts)
    for part in rest:
        found = And(found, part) if isinstance(tree, AllOf) else Or(found, part)
    return found


def _condition(condition: BoundCondition) -> BooleanExpression:
    values = [_literal(value) for value in condition.values]
    build = _EXPRESSIONS.get(condition.operator)
    # What pyiceberg cannot compare chooses all files: a filter too many is no wrong answer.
    if build is None or condition.of_elements or any(value is None for value in values):
        return AlwaysTrue()
    return build(".".join(condition.path), values)


def _literal(value: pa.Scalar) -> Any:
    """Return a value as pyiceberg takes it, or None for a type that it does not compare."""
    if pa.types.is_timestamp(value.type) and value.type.unit == "ns":
        return None
    found = value.as_py()
    if isinstance(found, dt.date | dt.time):
        return found.isoformat()
    return found if isinstance(found, bool | int | float | str | bytes) else str(found)
