"""An Iceberg table from its metadata file: the live data files that pyiceberg plans.

pyiceberg is imported with the first such path.  Data files have the ids of fields, by
which a column keeps its data whatever it is called.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from secure_bloom.column_names import NamedField, NamesOfTable, StoredName
from secure_bloom.errors import (
    FormatError,
    PolicyError,
    SecureBloomError,
    UnsupportedFeatureError,
    imported_for,
    located,
)
from secure_bloom.storage import is_object_uri, open_input
from secure_bloom.storage.memory_budget import refuse_beyond
from secure_bloom.storage.tree_of import tree_of
from secure_bloom.tables.iceberg_catalog import METADATA_SUFFIX, PURPOSE

if TYPE_CHECKING:
    import pyarrow as pa


#: The folder of metadata files in that of their table.
METADATA_FOLDER = "metadata"
#: Transforms of a partition's column that tell no value: a hash, and nothing at all.
_TELL_NO_VALUE = ("bucket", "void")


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergTable:
    """The current snapshot of a table: its columns, and its data files in their order.

    ``files_with_bounds`` are the columns whose bounds the manifests show, and of
    how many files; ``partition_columns`` are those by whose values the files are partitioned.
    ``location`` is the folder of the table.  ``with_deletes`` are the files that lose rows by
    delete files.  ``has_defaults``: a column that a file lacks may have a value there.
    """

    path: str
    location: str | None
    columns: pa.Schema = field(repr=False)
    names: NamesOfTable = field(repr=False)
    files: tuple[str, ...]
    with_deletes: frozenset[str]
    has_defaults: bool
    files_with_bounds: Mapping[str, int]
    partition_columns: tuple[str, ...]


def iceberg_table(path: str) -> IcebergTable:
    """The table whose metadata file stands at ``path``.

    Raises UnsupportedFeatureError for a table in an object store, or with what pyiceberg does not
    plan, and FormatError for metadata that cannot be read.
    """
    if is_object_uri(path):
        raise UnsupportedFeatureError(
            "an Iceberg table in an object store is not read here",
            hint="its metadata file must be local",
            path=path,
        )
    with located(path=path):
        try:
            return _planned(path)
        except SecureBloomError:
            raise
        except NotImplementedError as exc:
            raise UnsupportedFeatureError("pyiceberg does not plan this table's files") from exc
        except Exception as exc:
            # Without the text, which may quote bounds of columns.
            raise FormatError("pyiceberg cannot read the table's metadata") from exc


def _planned(path: str) -> IcebergTable:
    table = _opened(path)
    schema = table.schema()
    tasks = list(table.scan().plan_files())
    for task in tasks:
        if str(task.file.file_format.value).upper() != "PARQUET":
            raise UnsupportedFeatureError("the Iceberg table has data files that are not Parquet")
        if getattr(task.file, "key_metadata", None) is not None:
            raise UnsupportedFeatureError("the Iceberg table encrypts its files by its own keys")
    files = {local_location(task.file.file_path): bool(task.delete_files) for task in tasks}
    return IcebergTable(
        path=path,
        location=_location(path),
        columns=schema.as_arrow().remove_metadata(),
        names=names_of_structure(schema.as_struct()),
        files=tuple(sorted(files)),
        with_deletes=frozenset(file for file, has_deletes in files.items() if has_deletes),
        has_defaults=any(_has_default(column) for column in schema.fields),
        files_with_bounds=Counter(
            name for task in tasks for name in _names(table, _bounded_fields(task.file))
        ),
        partition_columns=tuple(_names(table, _partition_fields(table, tasks))),
    )


def _location(path: str) -> str | None:
    """The folder of the table; None where the metadata file is not in its folder ``metadata``."""
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120 - a text
    return os.path.dirname(folder) if os.path.basename(folder) == METADATA_FOLDER else None  # noqa: PTH119, PTH120


def bounds_of_old_files(table: IcebergTable) -> Mapping[str, int]:
    """The columns with bounds in manifests of other snapshots, and of how many files.

    Every metadata file beside the table's own counts, with all snapshots that it names.
    """
    live, found = frozenset(table.files), dict[str, set[str]]()
    folder = os.path.dirname(table.path)  # noqa: PTH120 - a text
    for name in sorted(tree_of(table.path).names(folder or ".")):
        if name.endswith(METADATA_SUFFIX):
            opened = _opened(os.path.join(folder, name))  # noqa: PTH118
            for path, columns in _entries(opened):
                if path not in live:
                    found.setdefault(path, set()).update(columns)
    return Counter(column for columns in found.values() for column in columns)


def _entries(table: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The files of all entries of all snapshots, each with its columns that have bounds."""
    seen: set[str] = set()
    for snapshot in table.snapshots():
        try:
            manifests = snapshot.manifests(table.io)
            for manifest in manifests:
                if manifest.manifest_path in seen:
                    continue
                seen.add(manifest.manifest_path)
                for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                    file = entry.data_file
                    yield (
                        local_location(file.file_path),
                        tuple(_names(table, _bounded_fields(file))),
                    )
        except PolicyError:
            # Expired: its manifests are gone.
            continue


def _bounded_fields(file: Any) -> set[int]:
    """The ids of the columns of which a manifest has a bound."""
    return {*(file.lower_bounds or ()), *(file.upper_bounds or ())}


def _partition_fields(table: Any, tasks: Iterable[Any]) -> list[int]:
    """The ids of the columns that partition the files, but for hashes of them."""
    specs = {task.file.spec_id: table.specs()[task.file.spec_id] for task in tasks}
    return sorted(
        {
            field.source_id
            for spec in specs.values()
            for field in spec.fields
            if not str(field.transform).startswith(_TELL_NO_VALUE)
        }
    )


def _names(table: Any, ids: Iterable[int]) -> Iterator[str]:
    """The dotted names of columns: today's, or of one that was dropped its last."""
    schemas = [table.schema(), *reversed(table.schemas().values())]
    for number in ids:
        names = (schema.find_column_name(number) for schema in schemas)
        if name := next(filter(None, names), None):
            yield name


def _opened(path: str) -> Any:
    with imported_for(PURPOSE, "iceberg"):
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.io.pyarrow import PyArrowFileIO
        from pyiceberg.serializers import FromInputFile
        from pyiceberg.table import StaticTable

    class LocalFiles(PyArrowFileIO):  # type: ignore[misc, unused-ignore]
        """Opens local files alone: what metadata names is not to be believed."""

        def new_input(self, location: str) -> Any:
            path = local_location(location)
            # Opened here first: a pipe would be waited for, and a sparse file read.
            with open_input(path) as file:
                refuse_beyond(2 * file.size, "a file of the metadata")
            return super().new_input(path)

    # Not StaticTable.from_metadata: properties of the table could name a class to be imported.
    files = LocalFiles()
    metadata = FromInputFile.table_metadata(files.new_input(path))
    return StaticTable(
        identifier=("static-table", path),
        metadata=metadata,
        metadata_location=path,
        io=files,
        catalog=NoopCatalog("static-table"),
    )


def opened_location(location: str) -> str:
    """Return the path or URI that opens a file of the metadata; Iceberg does not encode paths."""
    return location if is_object_uri(location) else local_location(location)


def local_location(location: str) -> str:
    """Return the path of a local file that the metadata names."""
    path = location.removeprefix("file://") if location.startswith("file:///") else location
    path = path.removeprefix("file:") if path.startswith("file:/") else path
    if "://" in path or "\0" in path or ".." in path.split("/"):
        raise UnsupportedFeatureError("the metadata of a local Iceberg table names files elsewhere")
    return path


def names_of_structure(structure: Any) -> NamesOfTable:
    """Return the names of the fields of a structure, by their ids."""
    members: dict[StoredName, NamedField] = {
        column.field_id: NamedField(name=column.name, inside=_inside(column.field_type))
        for column in structure.fields
    }
    return NamesOfTable(members=members)


def _inside(kind: Any) -> NamesOfTable | None:
    if kind.is_struct:
        return names_of_structure(kind)
    inner = tuple(_inside(held.field_type) for held in _held(kind))
    return NamesOfTable(inner=inner) if any(inner) else None


def _held(kind: Any) -> list[Any]:
    """The fields inside a list or a map."""
    names = ("element_field", "key_field", "value_field")
    return [getattr(kind, name) for name in names if hasattr(kind, name)]


def _has_default(column: Any) -> bool:
    if column.initial_default is not None:
        return True
    kind = column.field_type
    return any(map(_has_default, kind.fields if kind.is_struct else _held(kind)))
