"""Read an Iceberg table from its metadata file: the live data files that pyiceberg plans.

pyiceberg is imported with the first Iceberg path.  Data files have field ids, by which a column
keeps its data whatever its name is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from secure_bloom.errors import (
    FormatError,
    MissingPathError,
    PolicyError,
    SecureBloomError,
    UnsupportedFeatureError,
    imported_for,
    located,
)
from secure_bloom.lakes.iceberg.catalog import (
    PURPOSE,
    is_in_catalog,
    load_table,
    store_grant,
)
from secure_bloom.lakes.iceberg.locations import PLACES, opened_location, opener
from secure_bloom.lakes.iceberg.schema_fields import (
    default_values,
    dotted_names,
    key_columns,
    names_of_structure,
    nested_default,
    partition_values,
)
from secure_bloom.lakes.table_format import TableVersion, milliseconds
from secure_bloom.running.memory_budget import DecodedBytes
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import below, files_at_once, local_path, name_of
from secure_bloom.storage.column_mapping import ColumnMapping
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.listing import missing_path
from secure_bloom.storage.store_grants import StoreGrant

if TYPE_CHECKING:
    import pyarrow as pa

    from secure_bloom.lakes.iceberg.deletes import DeleteIndex, FileDeletes

_T = TypeVar("_T")

#: The property by which a table asks for Iceberg's own encryption.
KEY_PROPERTY = "encryption.key-id"
#: The folder of metadata files in that of their table.
METADATA_FOLDER = "metadata"
#: Manifests of a store that are read before their turn.
_AHEAD = 1_000
#: What a live data file takes beside its path, and a value of a column that it lacks.
_FILE_BYTES, _VALUE_BYTES = 640, 256
#: Transforms of a partition's column that give no value: a hash, and nothing at all.
_TELL_NO_VALUE = ("bucket", "void")


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergFile:
    """A live data file, the deletes that apply to it, and the values of columns that it lacks.

    ``grant`` is the right to open it in a store.
    """

    deletes: FileDeletes
    grant: StoreGrant | None = field(repr=False)
    fills: Mapping[str, pa.Scalar] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergTable:
    """A snapshot of a table: its columns, and its data files in the order of their paths.

    ``files_with_bounds`` maps each column with bounds in the manifests to its number of files.
    ``partition_columns`` are the columns by whose values the files are partitioned. ``locations``
    are the folders of the table. ``refused`` says why rows cannot be read, or is None. ``grant`` is
    the right to open its files in a store, as long as the table is referenced. ``key_id`` is the id
    of the encryption key in the table's properties.
    """

    path: str
    grant: StoreGrant | None = field(repr=False)
    locations: tuple[str, ...]
    columns: pa.Schema = field(repr=False)
    names: ColumnMapping = field(repr=False)
    live: Mapping[str, IcebergFile] = field(repr=False)
    files_with_bounds: Mapping[str, int]
    partition_columns: tuple[str, ...]
    refused: str | None = None
    key_id: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the live data files."""
        return tuple(self.live)

    def column_names(self) -> Iterator[str]:
        """Yield the dotted names of all columns, and of the members of structures."""
        return dotted_names(self.columns)


def iceberg_table(path: str, at: TableVersion | None = None) -> IcebergTable:
    """Return the table of a catalog or of a metadata file, at its current snapshot or at ``at``.

    Raises UnsupportedFeatureError for files that are not read here, PolicyError for a table that
    the catalog does not have or a snapshot that the table does not have, and FormatError for
    unreadable metadata.
    """
    grant, location = None, local_path(path)
    if is_in_catalog(path):
        known = load_table(path)
        grant, location = store_grant(known, path), opened_location(known.metadata_location)
    with located(path=location):
        try:
            return _planned(location, at or TableVersion(), grant)
        except MissingPathError as exc:
            if exc.path not in (None, local_path(path)):
                raise
            # The caller named the file: no log did.
            raise missing_path(tree_of(location), location) from exc
        except SecureBloomError:
            raise
        except Exception as exc:
            # Without the text, which may quote bounds of columns.
            raise FormatError("pyiceberg cannot read the table's metadata") from exc


def _planned(path: str, at: TableVersion, grant: StoreGrant | None) -> IcebergTable:
    from secure_bloom.lakes.iceberg.deletes import DATA, DeleteIndex

    table = opened_metadata(path)
    # After the metadata: without pyiceberg, opening them says so.
    from secure_bloom.lakes.iceberg.metadata_files import (
        counted_by_block,
        listed_manifests,
        manifest_entries,
    )

    snapshot = _snapshot(table, at)
    schema = _schema(table, None if at.is_latest else snapshot)
    lists = [] if snapshot is None else listed_manifests(snapshot, table.io)
    files, opened = counted_by_block(table.io), opener(path)
    index = DeleteIndex(table.specs(), opened, key_columns(table))
    data = []
    for manifest in lists:
        if manifest.content == DATA:
            data.append(manifest)
            continue
        for entry in manifest_entries(manifest, files):
            index.add(entry)
    reader = _LiveFiles(table, schema, index, opened, grant)
    read = in_order(
        lambda it: reader.of(manifest_entries(it, files)), data, files_at_once([path]), room=_AHEAD
    )
    live = _united(read)
    return IcebergTable(
        path=path,
        grant=grant,
        locations=tuple(dict.fromkeys(_locations(path, table, live.files))),
        columns=schema.as_arrow().remove_metadata(),
        names=names_of_structure(schema.as_struct()),
        live=dict(sorted(live.files.items())),
        files_with_bounds=_by_name(table, live.bounds),
        partition_columns=tuple(_names(table, partition_fields(table, live.specs))),
        refused=index.refused or nested_default(schema),
        key_id=table.properties.get(KEY_PROPERTY),
    )


def _snapshot(table: Any, at: TableVersion) -> Any:
    """Return the snapshot that ``at`` asks for, or None for a table without one."""
    if at.version is not None:
        raise PolicyError(
            "an Iceberg table has snapshots, not versions", hint="--snapshot ID names one"
        )
    if at.snapshot is not None:
        found = table.snapshot_by_id(at.snapshot)
        if found is None:
            raise PolicyError(
                f"the table has no snapshot {at.snapshot}", hint="it may have expired"
            )
        return found
    if at.timestamp is None:
        return table.current_snapshot()
    found = table.snapshot_as_of_timestamp(milliseconds(at.timestamp))
    if found is None:
        raise PolicyError(
            "the table has no snapshot until that time", hint="its snapshots may have expired"
        )
    return found


def _schema(table: Any, asked: Any) -> Any:
    """Return the schema of the snapshot that was asked for, else the table's current schema.

    They differ also for the current snapshot, if the schema was changed after it.
    """
    return (asked and table.schemas().get(asked.schema_id)) or table.schema()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Live:
    """The live data files of some manifests, with everything that is kept of their entries.

    ``bounds`` has the number of files with a bound, by the field's id. ``specs`` are the ids of
    partition specs.
    """

    files: dict[str, IcebergFile]
    bounds: Counter[int]
    specs: set[int]


class _LiveFiles:
    """Turns entries of manifests into live data files."""

    def __init__(
        self,
        table: Any,
        schema: Any,
        index: DeleteIndex,
        opened: Callable[[str], str],
        grant: StoreGrant | None,
    ) -> None:
        self._table, self._schema, self._index = table, schema, index
        self._opened, self._grant = opened, grant
        self._defaults = default_values(schema)
        #: The values that files of one partition may lack, and their size.
        self._fills: dict[tuple[int, str], tuple[dict[str, pa.Scalar], int]] = {}
        self._kept = DecodedBytes("the data files of the table")

    def of(self, entries: Iterable[Any]) -> _Live:
        """Return the files of one manifest. Threads may read several at once."""
        from secure_bloom.lakes.iceberg.deletes import DATA

        found = _Live(files={}, bounds=Counter(), specs=set())
        for entry in entries:
            file = entry.data_file
            if file.content != DATA:
                raise FormatError("a manifest of data files names a delete file")
            path, live = self._file(entry)
            add_once(found.files, path, live)
            found.bounds.update(bounded_fields(file))
            found.specs.add(file.spec_id)
        return found

    def _file(self, entry: Any) -> tuple[str, IcebergFile]:
        file = entry.data_file
        if str(file.file_format.value).upper() != "PARQUET":
            raise UnsupportedFeatureError("the Iceberg table has data files that are not Parquet")
        if file.key_metadata is not None:
            raise UnsupportedFeatureError("the Iceberg table encrypts its files by its own keys")
        path = self._opened(file.file_path)
        partition = file.spec_id, repr(file.partition)
        if partition not in self._fills:
            made = {**self._defaults, **partition_values(self._table, self._schema, file)}
            size = sum(_VALUE_BYTES + len(str(it)) for it in made.values())
            self._kept.add(len(partition[1]))
            self._fills[partition] = made, size
        fills, size = self._fills[partition]
        self._kept.add(_FILE_BYTES + len(path) + size)
        return path, IcebergFile(deletes=self._index.of(entry), grant=self._grant, fills=fills)


def _united(parts: Iterable[_Live]) -> _Live:
    found = _Live(files={}, bounds=Counter(), specs=set())
    for part in parts:
        for path, file in part.files.items():
            add_once(found.files, path, file)
        found.bounds.update(part.bounds)
        found.specs.update(part.specs)
    return found


def add_once(files: dict[str, _T], path: str, file: _T) -> None:
    """Add a live data file. Raises FormatError if another entry names the same path."""
    if path in files:
        raise FormatError(
            "two entries of the table's manifests name one data file",
            hint="the table's own engine counts its rows twice; it can rewrite the file into two",
        )
    files[path] = file


def _locations(path: str, table: Any, live: Iterable[str]) -> Iterator[str]:
    """Yield the folders of the table: the one above ``metadata``, and folders in the metadata.

    A folder that the metadata names counts only if it is not the root of a disk, and holds the
    metadata file or a live data file: otherwise the table's owner could choose where others
    search for files.
    """
    tree = tree_of(path)
    folder = tree.parents(path)[0]
    if name_of(folder) == METADATA_FOLDER:
        yield tree.parents(folder)[0]
    for place in (table.metadata.location, *map(table.properties.get, PLACES)):
        with suppress(SecureBloomError):
            named = "" if place is None else opened_location(place).rstrip("/")
            if name_of(named) and any(below(it, named) for it in chain((path,), live)):
                yield named


def files_of_branches(table: IcebergTable) -> dict[str, str]:
    """Return the live data files of all branches but main, each with the name of a branch."""
    found: dict[str, str] = {}
    metadata = opened_metadata(table.path).metadata
    for name, ref in sorted(metadata.refs.items()):
        if ref.snapshot_ref_type == "branch" and ref.snapshot_id != metadata.current_snapshot_id:
            other = iceberg_table(table.path, TableVersion(snapshot=ref.snapshot_id))
            found = dict.fromkeys(other.live, name) | found
    return {path: name for path, name in found.items() if path not in table.live}


def older_names(table: IcebergTable) -> list[ColumnMapping]:
    """Return the names of columns in all schemas that the table's metadata has."""
    schemas = opened_metadata(table.path).schemas()
    return [names_of_structure(schemas[number].as_struct()) for number in sorted(schemas)]


def bounded_fields(file: Any) -> set[int]:
    """Return the ids of the columns that have a bound in a manifest's entry."""
    return {*(file.lower_bounds or ()), *(file.upper_bounds or ())}


def partition_fields(table: Any, specs: Iterable[int]) -> list[int]:
    """Return the ids of the columns whose values these partition specs show.

    A transform that shows no value, such as ``bucket``, does not count.
    """
    return sorted(
        {
            field.source_id
            for spec in specs
            for field in table.specs()[spec].fields
            if not str(field.transform).startswith(_TELL_NO_VALUE)
        }
    )


def _by_name(table: Any, bounds: Mapping[int, int]) -> Mapping[str, int]:
    """Return the numbers of files by the names of fields."""
    found = Counter[str]()
    for number, count in bounds.items():
        for name in _names(table, [number]):
            found[name] += count
    return found


def _names(table: Any, ids: Iterable[int]) -> Iterator[str]:
    """Yield the dotted names of columns: the current name, and those of older schemas."""
    schemas = [table.schema(), *reversed(table.schemas().values())]
    for number in ids:
        yield from dict.fromkeys(name for it in schemas for name in names_in(it, number))


def names_in(schema: Any, number: int) -> tuple[str, ...]:
    """Return a tuple with the dotted name of a field in a schema, or () if the schema lacks it."""
    return tuple(filter(None, [schema.find_column_name(number)]))


def opened_metadata(path: str) -> Any:
    """Return pyiceberg's table of a metadata file, which cannot be written to."""
    with imported_for(PURPOSE, "iceberg"):
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.serializers import FromInputFile
        from pyiceberg.table import StaticTable
    from secure_bloom.lakes.iceberg.metadata_files import StoredFiles

    # Not StaticTable.from_metadata: properties of the table could name a class to be imported.
    files = StoredFiles(opener(path))
    metadata = FromInputFile.table_metadata(files.new_input(path))
    return StaticTable(
        identifier=("static-table", path),
        metadata=metadata,
        metadata_location=path,
        io=files,
        catalog=NoopCatalog("static-table"),
    )
