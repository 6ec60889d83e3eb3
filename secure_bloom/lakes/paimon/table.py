"""Read a Paimon table: its live data files, their columns by field ids, and its deleted rows.

Data files are in ``[partition=value/]bucket-N/``.  A file has the columns of the schema under
which it was written: a later schema may give them other names, by the same ids.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from secure_bloom.errors import (
    FormatError,
    PolicyError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.lakes.paimon.names import root_of
from secure_bloom.lakes.paimon.rows import Value, decode_row, text_of
from secure_bloom.lakes.paimon.schema import (
    AtomicType,
    PaimonField,
    PaimonSchema,
    SchemaReader,
    fields_in,
    held_types,
)
from secure_bloom.lakes.paimon.snapshot import (
    PaimonEntry,
    PaimonSnapshot,
    latest_snapshot,
    plain_name,
    read_index_manifest,
    read_snapshot,
    snapshot_at,
)
from secure_bloom.lakes.table_format import TableVersion
from secure_bloom.storage import below, is_object_uri, join, local_path, open_input
from secure_bloom.storage.column_mapping import ColumnMapping, NamedField, StoredName

INDEX_SUFFIX: Final = ".index"
_DELETION_VECTORS = "DELETION_VECTORS"
#: The bucket of files that no reader sees before they are distributed to buckets.
_POSTPONED = -2
_DEFAULT_PARTITION = "__DEFAULT_PARTITION__"
_EXTERNAL_PATHS = "data-file.external-paths"
_OWN_ENGINE = "read the table with its own engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonVector:
    """The place of a file's deletion vector, and its number of deleted rows if it is known."""

    path: str
    offset: int
    length: int
    cardinality: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonFile:
    """A live data file: its entry in the manifests, and the decoded fields of the entry.

    ``schema`` is the schema under which the file was written. ``partition`` has the value of each
    partition column. ``root`` is the table's folder, or the folder of external files, that contains
    the file.
    """

    path: str
    root: str
    entry: PaimonEntry = field(repr=False)
    schema: PaimonSchema = field(repr=False)
    partition: tuple[Value, ...] = field(repr=False)
    vector: PaimonVector | None

    @property
    def size(self) -> int:
        """The size of the data file in bytes."""
        return int(self.entry.file["_FILE_SIZE"])

    @property
    def level(self) -> int:
        """The level of the file: 0 for a new one."""
        return int(self.entry.file["_LEVEL"])

    @property
    def bucket(self) -> tuple[bytes, int]:
        """The partition and the number of the bucket."""
        return self.entry.record["_PARTITION"], self.entry.record["_BUCKET"]

    @property
    def is_parquet(self) -> bool:
        """Whether the file's name has the ending of Parquet files."""
        return bool(self.entry.file["_FILE_NAME"].endswith(".parquet"))

    @property
    def index_names(self) -> tuple[str, ...]:
        """The names of the index files that the manifest lists for it."""
        extra: Sequence[str] = self.entry.file["_EXTRA_FILES"]
        return tuple(name for name in extra if name.endswith(INDEX_SUFFIX))

    @property
    def embedded_index(self) -> bytes | None:
        """The index in the manifest, or None."""
        found: bytes | None = self.entry.file.get("_EMBEDDED_FILE_INDEX")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonTable:
    """A table at one snapshot. ``schema`` is its current one; ``files`` are its live files."""

    folder: str
    schema: PaimonSchema
    snapshot: PaimonSnapshot | None
    files: Mapping[str, PaimonFile] = field(repr=False)
    #: The levels of the live files of each bucket. Files of one level above 0 share no key.
    levels: Mapping[tuple[bytes, int], set[int]] = field(repr=False)

    def mapping(self, file: PaimonFile) -> ColumnMapping | None:
        """Return the table's names of the columns of a file, or None if they are the same."""
        return self._mapping([file.schema])

    def names(self) -> ColumnMapping | None:
        """Return the table's names of the columns of all files, or None if they are the same.

        Raises UnsupportedFeatureError if two files call different columns by one name, or if
        fields inside a column were changed.
        """
        written = list({it.schema.id: it.schema for it in self.files.values()}.values())
        current = {each.id: each for each in self.schema.fields}
        for column in (column for schema in written for column in schema.fields):
            if column.id in current:
                _refuse_changed_inside(column, current[column.id])
        return self._mapping(written)

    def _mapping(self, schemas: Sequence[PaimonSchema]) -> ColumnMapping | None:
        current = {each.id: each for each in self.schema.fields}
        stored: dict[str, PaimonField] = {}
        for column in (column for schema in schemas for column in schema.fields):
            if stored.setdefault(column.name, column).id != column.id:
                raise UnsupportedFeatureError(
                    f"the name {column.name} was given to another column after files were written",
                    hint="read the table with its own engine, or compact it",
                    path=self.folder,
                )
        members: dict[StoredName, NamedField] = {
            name: NamedField(
                name=current[column.id].name,
                physical_name=name,
                inside=_names_inside(column.type, current[column.id].type),
            )
            for name, column in stored.items()
            if column.id in current
        }
        are_same = len(members) == len(stored) and all(
            name == field.name and field.inside is None for name, field in members.items()
        )
        # Files of a table with a primary key have columns of Paimon's own.
        if are_same and not self.schema.primary_keys:
            return None
        return ColumnMapping(members=members)

    def refuse_unmerged(self) -> None:
        """Raise UnsupportedFeatureError if rows of files are not yet merged into the table's rows.

        In a table with a primary key, rows of newer files replace those of older ones, until the
        files of a bucket are compacted to one level, or have deletion vectors.
        """
        if self.schema.is_on("data-evolution.enabled"):
            raise UnsupportedFeatureError(
                "a Paimon table with data-evolution.enabled: columns of a row may be in several "
                "files",
                hint=_OWN_ENGINE,
                path=self.folder,
            )
        for file in self.files.values():
            has_deletes = self.schema.primary_keys and file.entry.file.get("_DELETE_ROW_COUNT")
            if has_deletes or self.is_merged(file):
                raise self._unmerged()

    def is_merged(self, file: PaimonFile) -> bool:
        """Return whether rows of the file are merged with rows of other files of its bucket."""
        if not self.schema.primary_keys:
            return False
        if self.schema.is_on("deletion-vectors.enabled"):
            # Rows that newer files replace are deleted by the vector of the file.
            return file.level == 0
        return self.levels[file.bucket] != {file.level} or file.level == 0

    def _unmerged(self) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            "a Paimon table with a primary key whose files are not compacted: a row may have "
            "older versions in other files",
            hint=_OWN_ENGINE + ", or compact it fully; probe, inspect and audit look at the files "
            "all the same",
            path=self.folder,
        )

    def column_names(self) -> frozenset[str]:
        """Return the names of all columns."""
        return frozenset(each.name for each in self.schema.fields)


def require_parquet(table: PaimonTable) -> None:
    """Raise UnsupportedFeatureError for a table with data files of other formats."""
    if not all(file.is_parquet for file in table.files.values()):
        raise UnsupportedFeatureError(
            "the Paimon table has data files that are not Parquet",
            hint="read it with its own engine; paimon build skips such files",
            path=table.folder,
        )


def paimon_table(folder: str, at: TableVersion | None = None) -> PaimonTable:
    """Return the table in a folder at its latest snapshot, or at ``at``.

    Raises PolicyError for a snapshot that the table does not have, UnsupportedFeatureError for a
    table of a newer format, and FormatError for damaged metadata.
    """
    snapshot = _snapshot(folder, at or TableVersion())
    schemas = SchemaReader(folder)
    with located(path=folder):
        is_latest = at is None or at.is_latest
        number = schemas.latest() if is_latest or snapshot is None else snapshot.schema_id
        schema = schemas.get(number)
        if snapshot is None:
            return PaimonTable(folder=folder, schema=schema, snapshot=None, files={}, levels={})
        places = _Places(folder, schema)
        vectors = dict(_vectors(folder, snapshot, schema))
        files = {
            file.path: file
            for entry in snapshot.live.values()
            if entry.record["_BUCKET"] != _POSTPONED
            for file in [_file(entry, schemas, places, vectors)]
        }
    levels: dict[tuple[bytes, int], set[int]] = defaultdict(set)
    for file in files.values():
        levels[file.bucket].add(file.level)
    return PaimonTable(
        folder=folder,
        schema=schema,
        snapshot=snapshot,
        files=dict(sorted(files.items())),
        levels=levels,
    )


def _snapshot(folder: str, at: TableVersion) -> PaimonSnapshot | None:
    if at.version is not None:
        raise PolicyError(
            "a Paimon table has snapshots, not versions",
            hint="--snapshot ID names one",
            path=folder,
        )
    if at.timestamp is not None:
        return snapshot_at(folder, at.timestamp)
    return latest_snapshot(folder) if at.snapshot is None else read_snapshot(folder, at.snapshot)


def partition_types(schema: PaimonSchema) -> list[AtomicType]:
    """Return the types of the partition columns."""
    return [_atomic(schema, name) for name in schema.partition_keys]


def _atomic(schema: PaimonSchema, name: str) -> AtomicType:
    column = schema.named(name)
    kind = None if column is None else column.atomic
    if kind is None:
        raise FormatError(f"the schema has no partition column {name} of a plain type")
    return kind


class _Places:
    """Computes the values of each partition and the folder of each bucket, once."""

    def __init__(self, folder: str, schema: PaimonSchema) -> None:
        self.root = root_of(folder)
        self._schema = schema
        self._types = partition_types(schema)
        self._known: dict[tuple[bytes, int], tuple[tuple[Value, ...], str]] = {}

    def of(self, partition: bytes, bucket: int) -> tuple[tuple[Value, ...], str]:
        """Return the values of a partition, and the folder of its bucket."""
        found = self._known.get((partition, bucket))
        if found is None:
            values = self.values(partition)
            folder = bucket_folder(self.root, self._schema, values, bucket)
            found = self._known[partition, bucket] = values, folder
        return found

    def values(self, partition: bytes) -> tuple[Value, ...]:
        """Return the values of a partition."""
        return decode_row(partition, self._types)

    def external(self, path: object, schema: PaimonSchema) -> tuple[str, str]:
        """Return the path that opens an external file, and the folder that contains it.

        Raises UnsupportedFeatureError unless the table's options name that folder, because the path
        in an entry alone is not trusted.
        """
        for options in (self._schema.options, schema.options):
            for text in options.get(_EXTERNAL_PATHS, "").split(","):
                root = local_path(text.strip()).rstrip("/")
                found = local_path(path) if isinstance(path, str) else ""
                inside = below(found, root) if root else None
                if inside and is_object_uri(root) == is_object_uri(self.root):
                    for name in inside.split("/"):
                        plain_name(name)
                    return found, root
        raise UnsupportedFeatureError(
            f"a data file is at an external path, in none of the folders that the table's option "
            f"{_EXTERNAL_PATHS} names, or in a store that the table is not in",
            hint=_OWN_ENGINE,
        )


def _file(
    entry: PaimonEntry,
    schemas: SchemaReader,
    places: _Places,
    vectors: Mapping[tuple[bytes, int, str], PaimonVector],
) -> PaimonFile:
    record, file = entry.record, entry.file
    name, schema = file["_FILE_NAME"], schemas.get(file["_SCHEMA_ID"])
    if file.get("_EXTERNAL_PATH") is not None:
        partition = places.values(record["_PARTITION"])
        path, root = places.external(file["_EXTERNAL_PATH"], schema)
    else:
        partition, folder = places.of(record["_PARTITION"], record["_BUCKET"])
        path, root = join(folder, name), places.root
    return PaimonFile(
        path=path,
        root=root,
        entry=entry,
        schema=schema,
        partition=partition,
        vector=vectors.get((record["_PARTITION"], record["_BUCKET"], name)),
    )


def bucket_folder(
    folder: str, schema: PaimonSchema, partition: Sequence[Value], bucket: int
) -> str:
    """Return the folder of a bucket's data files."""
    found = folder
    directory = schema.options.get("data-file.path-directory")
    for part in directory.split("/") if directory else ():
        found = join(found, plain_name(part))
    for name in _partition_folders(schema, partition):
        found = join(found, name)
    return join(found, f"bucket-{bucket}")


def _partition_folders(schema: PaimonSchema, partition: Sequence[Value]) -> Iterator[str]:
    legacy = schema.options.get("partition.legacy-name", "true").strip().lower() == "true"
    default = schema.options.get("partition.default-name", _DEFAULT_PARTITION)
    for name, value in zip(schema.partition_keys, partition, strict=True):
        text = "" if value is None else text_of(value, _atomic(schema, name), legacy=legacy)
        yield f"{_escaped(name)}={_escaped(text if text.strip() else default)}"


#: Characters that names of folders have as %XX, beside control characters.
_ESCAPED: Final = frozenset("\"#%'*/:=?\\\x7f{[]^")


def _escaped(text: str) -> str:
    return "".join(f"%{ord(each):02X}" if each < " " or each in _ESCAPED else each for each in text)


def _names_inside(stored: Any, current: Any) -> ColumnMapping | None:
    """Return the names that fields inside a stored type have now, or None if they are the same."""
    if _shape(stored) == _shape(current):
        return None
    now = {each.id: each for each in fields_in(current)}
    members: dict[StoredName, NamedField] = {
        each.name: NamedField(
            name=now[each.id].name, inside=_names_inside(each.type, now[each.id].type)
        )
        for each in fields_in(stored)
        if each.id in now
    }
    held = zip(held_types(stored), held_types(current), strict=False)
    return ColumnMapping(members=members, inner=[_names_inside(*each) for each in held])


def _refuse_changed_inside(stored: PaimonField, current: PaimonField) -> None:
    if _shape(stored.type) != _shape(current.type):
        raise UnsupportedFeatureError(
            f"the fields inside column {current.name} were changed after files were written",
            hint=_OWN_ENGINE,
        )


def _shape(kind: Any) -> Any:
    """Return the names and ids of the fields in a nested type; None for one without fields."""
    if not isinstance(kind, dict):
        return None
    members = [(each.id, each.name, _shape(each.type)) for each in fields_in(kind)]
    return (members, *map(_shape, held_types(kind)))


def _vectors(
    folder: str, snapshot: PaimonSnapshot, schema: PaimonSchema
) -> Iterator[tuple[tuple[bytes, int, str], PaimonVector]]:
    for record in read_index_manifest(folder, snapshot):
        if record.get("_INDEX_TYPE") != _DELETION_VECTORS or record.get("_KIND") != 0:
            continue
        if record.get("_EXTERNAL_PATH") is not None or schema.is_on("index-file-in-data-file-dir"):
            raise UnsupportedFeatureError("the table has deletion vectors beside data files")
        path = join(join(root_of(folder), "index"), plain_name(record.get("_FILE_NAME")))
        for each in record.get("_DELETIONS_VECTORS_RANGES") or ():
            found = record.get("_PARTITION"), record.get("_BUCKET"), each.get("f0")
            match found:
                case (bytes(partition), int(bucket), str(name)):
                    yield (partition, bucket, name), _vector(path, each)
                case _:
                    raise FormatError("a deletion vector names no data file")


def _vector(path: str, fields: Mapping[str, Any]) -> PaimonVector:
    offset, length, count = (fields.get(name) for name in ("f1", "f2", "_CARDINALITY"))
    if not isinstance(offset, int) or not isinstance(length, int) or min(offset, length) < 0:
        raise FormatError("the offset or length of a deletion vector is missing or negative")
    if count is not None and (not isinstance(count, int) or count < 0):
        raise FormatError("the cardinality of a deletion vector is negative or not a number")
    return PaimonVector(path=path, offset=offset, length=length, cardinality=count)


def read_vector(vector: PaimonVector) -> bytes:
    """Return the bytes of a deletion vector, with its size before and its checksum after it."""
    with located(path=vector.path), open_input(vector.path) as file:
        return file.read_at(vector.offset, vector.length + 8)
