"""Check what the metadata of a Paimon table shows: bounds of columns, and indexes in clear."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.naming import secret_named, short
from secure_bloom.auditing.rules.leak_rules import PAIMON_INDEX_IN_CLEAR, PAIMON_INDEX_PRESENT
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import FormatError, located
from secure_bloom.lakes.paimon.names import branch_folders, root_of
from secure_bloom.lakes.paimon.rows import present_fields
from secure_bloom.lakes.paimon.schema import PaimonSchema, SchemaReader, read_json
from secure_bloom.lakes.paimon.snapshot import PaimonEntry, every_entry, every_index_entry
from secure_bloom.lakes.paimon.table import PaimonFile, PaimonTable
from secure_bloom.paimon.container import FileIndex
from secure_bloom.paimon.index_files import MAX_INDEX_BYTES
from secure_bloom.storage import join, open_input, sibling
from secure_bloom.storage.dispatch import tree_of

#: The folder of the statistics that ``ANALYZE TABLE`` computes.
_STATISTICS = "statistics"
#: The type of index files with hashes of primary keys.
_HASHES = "HASH"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownInManifests:
    """What all manifests of a table show of its columns, those of old snapshots included.

    ``live`` and ``old`` map the name of a column to the number of files with bounds for it.
    ``indexed`` has all names of each column for which a manifest has an index or names an index
    file.
    """

    live: Mapping[str, int]
    old: Mapping[str, int]
    indexed: tuple[tuple[str, ...], ...]


def shown_in_manifests(table: PaimonTable) -> ShownInManifests:
    """Return what the manifests of a table show. Indexes beside data files are not included."""
    root = root_of(table.folder)
    # Branches number their schemas on their own, and no entry says of which branch it is.
    branches = [OtherNames(folder) for folder in (root, *branch_folders(root).values())]
    live = {file.entry.place for file in table.files.values()}
    found: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    indexed: dict[tuple[str, ...], None] = {}
    with located(path=table.folder):
        for entry in every_entry(table.folder):
            number = entry.file["_SCHEMA_ID"]
            written = [(it, schema) for it in branches if (schema := it.schemas.get(number))]
            if not written:
                raise FormatError(f"no schema {number} of the table can be read")
            embedded = entry.file.get("_EMBEDDED_FILE_INDEX")
            stored_in_index = _columns(embedded) if embedded is not None else []
            for names, schema in written:
                for stored in _bounded(entry, schema):
                    for name in names.of(schema, stored):
                        found[name].add(entry.place)
                indexed.update((tuple(names.of(schema, it)), None) for it in stored_in_index)
        for record in every_index_entry(table.folder):
            for names in branches:
                indexed.update((it, None) for it in _indexed(record, names, table.schema))
    return ShownInManifests(
        live=Counter({name: len(places & live) for name, places in found.items()}),
        old=Counter({name: len(places - live) for name, places in found.items()}),
        indexed=tuple(filter(None, indexed)),
    )


def _indexed(
    record: Mapping[str, Any], names: OtherNames, schema: PaimonSchema
) -> Iterator[tuple[str, ...]]:
    """Yield all names of each column whose values or hashes an index file has."""
    index = record.get("_GLOBAL_INDEX")
    if isinstance(index, Mapping):
        for number in (index.get("_INDEX_FIELD_ID"), *(index.get("_EXTRA_FIELD_IDS") or ())):
            yield names.with_id(number)
    # The buckets of a table with a primary key are found by hashes of its keys.
    elif record.get("_INDEX_TYPE") == _HASHES:
        for name in schema.primary_keys:
            yield tuple(names.of(schema, name))


def _bounded(entry: PaimonEntry, schema: PaimonSchema) -> Iterator[str]:
    """Yield the columns for which an entry has a file's bounds, by their names in its schema."""
    file = entry.file
    written = file.get("_VALUE_STATS_COLS")
    if written is None:
        written = file.get("_WRITE_COLS")
    if written is None:
        written = [column.name for column in schema.fields]
    for statistics, names in (
        (file.get("_VALUE_STATS"), written),
        (file.get("_KEY_STATS"), list(schema.primary_keys)),
    ):
        least = statistics.get("_MIN_VALUES") if isinstance(statistics, Mapping) else None
        if not isinstance(least, bytes):
            raise FormatError("an entry of a manifest has no statistics")
        present = present_fields(least)
        # Keys have bounds without the columns of the partition: then all keys count.
        known = names if len(names) >= len(present) else ()
        for position, has_value in enumerate(present):
            if has_value and position < len(known):
                yield known[position]


class OtherNames:
    """The names that the columns of a table, or of a branch, have in any of its schemas."""

    def __init__(self, folder: str) -> None:
        self._names: defaultdict[int, dict[str, None]] = defaultdict(dict)
        self.schemas = {schema.id: schema for schema in SchemaReader(folder).every()}
        for schema in self.schemas.values():
            for column in schema.fields:
                self._names[column.id][column.name] = None

    def with_id(self, number: object) -> tuple[str, ...]:
        """Return all names of the column with an id, the newest first."""
        return (*reversed(self._names.get(number, {})),) if isinstance(number, int) else ()

    def of(self, schema: PaimonSchema, name: str) -> list[str]:
        """Return all names of a column that one schema calls ``name``, the newest first."""
        column = schema.named(name)
        return [name] if column is None else [*reversed(self._names[column.id])] or [name]


def columns_with_defaults(table: PaimonTable) -> set[str]:
    """Return the columns with a default value in any schema, by all their names."""
    root = root_of(table.folder)
    found: set[str] = set()
    for folder in (root, *branch_folders(root).values()):
        names = OtherNames(folder)
        for schema in names.schemas.values():
            for column in schema.fields:
                option = f"fields.{column.name}.default-value"
                if column.has_default or option in schema.options:
                    found.update(names.of(schema, column.name))
    return found


def columns_with_statistics(table: PaimonTable) -> set[str]:
    """Return the columns whose bounds a statistics file has, by all their names."""
    found: set[str] = set()
    root = root_of(table.folder)
    tree, folder = tree_of(root), join(root, _STATISTICS)
    branches = [OtherNames(it) for it in (root, *branch_folders(root).values())]
    for name in sorted(tree.names(folder)) if tree.is_folder(folder) else ():
        with located(path=tree.join(folder, name)):
            document = read_json(tree.join(folder, name))
            number, columns = document.get("schemaId"), document.get("colStats")
            for stored, said in columns.items() if isinstance(columns, Mapping) else ():
                bounds = [said.get(it) for it in ("min", "max")] if isinstance(said, dict) else []
                if bounds != [None] * len(bounds):
                    written = [(it, it.schemas[number]) for it in branches if number in it.schemas]
                    found.update([stored], *(it.of(schema, stored) for it, schema in written))
    return found


def check_manifest_indexes(
    indexed: Iterable[tuple[str, ...]], policy: KeyPolicy, folder: str
) -> Iterator[Finding]:
    """Yield a finding for each sensitive column with an index, and a note on other columns."""
    others: list[str] = []
    for names in indexed:
        found = list(_finding(names, policy, folder))
        yield from found
        others += [] if found else names[:1]
    if others:
        what = f"indexes of the table, in clear: {short(', '.join(others))}"
        yield PAIMON_INDEX_PRESENT.finding(what, path=folder)


def check_indexes(file: PaimonFile, names: OtherNames, policy: KeyPolicy) -> Iterator[Finding]:
    """Yield a finding for each column in a file's indexes that is sensitive under another name.

    The check of folders finds columns that are sensitive under the name in the index itself. This
    check looks at the other names that the column has in the table's schemas.
    """
    for name in file.index_names:
        path = sibling(file.path, name)
        with located(path=path), open_input(path) as index:
            if index.size > MAX_INDEX_BYTES:
                raise FormatError(f"the index has {index.size} bytes")
            for stored in _columns(index.all_bytes()):
                others = [it for it in names.of(file.schema, stored) if it != stored]
                yield from _finding(others, policy, path)


def _columns(content: bytes) -> list[str]:
    # Paimon indexes the key of a map under the name m[k].
    return [column.name.partition("[")[0] for column in FileIndex.from_bytes(content).columns]


def _finding(names: Iterable[str], policy: KeyPolicy, path: str) -> Iterator[Finding]:
    for name in names:
        if secret_named(name.split("."), policy) is not None:
            yield PAIMON_INDEX_IN_CLEAR.finding(
                "an index of the table holds the column in clear", path=path, column=name
            )
            return
