"""Find what old metadata files of a table reveal about its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from secure_bloom.errors import PolicyError
from secure_bloom.lakes.iceberg.catalog import METADATA_SUFFIX
from secure_bloom.lakes.iceberg.locations import opener
from secure_bloom.lakes.iceberg.table import (
    IcebergTable,
    bounded_fields,
    names_in,
    opened_metadata,
    partition_fields,
)
from secure_bloom.storage.dispatch import tree_of

#: A field, by the table's UUID: a folder may have the metadata of another table with the same ids.
_Field = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OldMetadata:
    """What old metadata of a table reveals about its columns, beside the live files' entries.

    ``bounds`` maps the name of a column to the number of old files with a bound for it. The values
    of the columns ``partitions`` are in old manifests. The columns ``defaults`` have a default
    value. For the columns ``sketches``, statistics files hold hashes of the values.
    """

    bounds: Mapping[str, int]
    partitions: frozenset[str]
    defaults: frozenset[str]
    sketches: frozenset[str]


def old_metadata(table: IcebergTable) -> OldMetadata:
    """Return what all metadata files of the table, with all of their snapshots, reveal.

    The entries of live files are left out.
    """
    live, seen = frozenset(table.files), set[str]()
    names: dict[_Field, set[str]] = {}
    bounds: dict[str, set[_Field]] = {}
    partitions, defaults, sketches = set[_Field](), set[_Field](), set[_Field]()
    tree = tree_of(table.path)
    folder = tree.parents(table.path)[0]
    for name in sorted(tree.names(folder)):
        if name.endswith(METADATA_SUFFIX):
            location = tree.join(folder, name)
            one = opened_metadata(location)
            uuid = str(one.metadata.table_uuid)
            for schema in one.schemas().values():
                for number in schema.field_ids:
                    names.setdefault((uuid, number), set()).update(names_in(schema, number))
                    field = schema.find_field(number)
                    if (field.initial_default, field.write_default) != (None, None):
                        defaults.add((uuid, number))
            for found in one.metadata.statistics:
                sketches.update((uuid, it) for blob in found.blob_metadata for it in blob.fields)
            specs = set[int]()
            for path, spec, ids in _entries(one, opener(location), seen):
                specs.add(spec)
                if path not in live:
                    bounds.setdefault(path, set()).update((uuid, it) for it in ids)
            partitions.update((uuid, it) for it in partition_fields(one, specs))

    def named(fields: Iterable[_Field]) -> set[str]:
        return {name for it in fields for name in names.get(it, ())}

    return OldMetadata(
        bounds=Counter(name for found in bounds.values() for name in named(found)),
        partitions=frozenset(named(partitions)),
        defaults=frozenset(named(defaults)),
        sketches=frozenset(named(sketches)),
    )


def _entries(
    table: Any, opened: Callable[[str], str], seen: set[str]
) -> Iterator[tuple[str, int, set[int]]]:
    """Yield path, partition spec, and fields with bounds of each entry of all snapshots.

    Manifests and manifest lists in ``seen`` are left out, because each metadata file names those
    of the one before it again.
    """
    from secure_bloom.lakes.iceberg.metadata_files import manifest_entries

    for snapshot in table.snapshots():
        if snapshot.manifest_list in seen:
            continue
        seen.add(snapshot.manifest_list)
        try:
            manifests = snapshot.manifests(table.io)
            for manifest in manifests:
                if manifest.manifest_path in seen:
                    continue
                seen.add(manifest.manifest_path)
                for entry in manifest_entries(manifest, table.io, with_deleted=True):
                    file = entry.data_file
                    yield opened(file.file_path), file.spec_id, bounded_fields(file)
        except PolicyError:
            # Expired: its manifests are gone.
            continue
