"""Check what the metadata of a Paimon table shows: bounds of columns, and indexes in clear."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.naming import secret_named
from secure_bloom.auditing.rules.leak_rules import PAIMON_INDEX_IN_CLEAR
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import FormatError, located
from secure_bloom.lakes.paimon.names import branch_folders, root_of
from secure_bloom.lakes.paimon.rows import present_fields
from secure_bloom.lakes.paimon.schema import PaimonSchema, SchemaReader, read_json
from secure_bloom.lakes.paimon.snapshot import PaimonEntry, every_entry
from secure_bloom.lakes.paimon.table import PaimonFile, PaimonTable
from secure_bloom.paimon.container import FileIndex
from secure_bloom.paimon.index_files import MAX_INDEX_BYTES
from secure_bloom.storage import join, open_input, sibling
from secure_bloom.storage.dispatch import tree_of

#: The folder of the statistics that ``ANALYZE TABLE`` computes.
_STATISTICS = "statistics"


def columns_with_bounds(table: PaimonTable) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the columns with bounds in manifests, with the number of files.

    The first part is of live files, the second of files that only old manifests name.
    """
    root = root_of(table.folder)
    # Branches number their schemas on their own, and no entry says of which branch it is.
    branches = [OtherNames(folder) for folder in (root, *branch_folders(root).values())]
    live = {file.entry.place for file in table.files.values()}
    found: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    with located(path=table.folder):
        for entry in every_entry(table.folder):
            number = entry.file["_SCHEMA_ID"]
            written = [(it, schema) for it in branches if (schema := it.schemas.get(number))]
            if not written:
                raise FormatError(f"no schema {number} of the table can be read")
            for names, schema in written:
                for stored in _bounded(entry, schema):
                    for name in names.of(schema, stored):
                        found[name].add(entry.place)
    counts = {name: len(places & live) for name, places in found.items()}
    old = {name: len(places - live) for name, places in found.items()}
    return Counter(counts), Counter(old)


def _bounded(entry: PaimonEntry, schema: PaimonSchema) -> Iterator[str]:
    """Yield the columns of a file whose bounds an entry has, by the names of its schema."""
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
    """Return the columns whose bounds a file of statistics has, by all their names."""
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


def check_indexes(
    file: PaimonFile, names: OtherNames, policy: KeyPolicy, folder: str
) -> Iterator[Finding]:
    """Yield a finding for each sensitive column of an index that the manifest has for a file.

    Index files are found with the folders, by the names in them.  Here a column counts that had
    another name when the file was written.
    """
    if file.embedded_index is not None:
        with located(path=file.path):
            for stored in _columns(file.embedded_index):
                yield from _finding(names.of(file.schema, stored), policy, folder)
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
