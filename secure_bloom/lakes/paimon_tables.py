"""Paimon tables: the manifests of the latest snapshot name the live files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from secure_bloom.errors import located
from secure_bloom.lakes.paimon.names import is_named, root_of, table_folder
from secure_bloom.lakes.table_format import ListedTable, TableFormat, TableRows, TableVersion
from secure_bloom.storage.column_mapping import ColumnMapping, NamedField, StoredName

if TYPE_CHECKING:
    import pyarrow as pa

    from secure_bloom.lakes.paimon.schema import PaimonField
    from secure_bloom.lakes.paimon.table import PaimonFile, PaimonTable


class PaimonTables(TableFormat):
    """Tables that are a folder, or named in a warehouse. A run commits indexes of their files."""

    title = "a Paimon table"
    log_folder = "schema"
    log_mark = re.compile(r"schema-[0-9]+")
    is_found_by_log = True
    refusal = (
        "secure-bloom paimon build TABLE gives the table's folder indexes that its readers ask; "
        "give the verbs that read the table's folder, or read it with its own engine"
    )
    rewritten_by = (
        "no command of secure-bloom changes the keys of a Paimon table: rewrite its files with "
        "Paimon, then expire its old snapshots"
    )

    def recognizes(self, path: str) -> bool:
        """Return whether a path names a table of a warehouse, or a branch."""
        return is_named(path)

    def list_table(self, path: str, at: TableVersion) -> ListedTable:
        """Return the table in a folder or of a warehouse."""
        from secure_bloom.lakes.paimon.table import paimon_table, require_parquet

        found = paimon_table(table_folder(path), at)
        require_parquet(found)
        place = root_of(found.folder)
        # A folder that was given is listed anyway; external paths are in other ones.
        outside = {file.root for file in found.files.values()} - {place}
        return ListedTable(
            format=self,
            place=place,
            files=found.files,
            mappings={
                path: names for path, file in found.files.items() if (names := found.mapping(file))
            },
            locations=(*((place,) if is_named(path) else ()), *sorted(outside)),
            schema=found.column_names,
            state=found,
        )

    def rows_of(self, state: PaimonTable, files: Sequence[PaimonFile]) -> TableRows:
        """Return the columns of the table's schema, and the deletion vectors of the files."""
        import pyarrow as pa

        from secure_bloom.lakes.deletion_vectors import PaimonDeletedRows
        from secure_bloom.lakes.paimon.arrow_types import arrow_field

        state.refuse_unmerged()
        with located(path=state.folder):
            columns = pa.schema(map(arrow_field, state.schema.fields))
            fills = [_partition_fills(state, file) for file in files]
        return TableRows(
            columns=columns,
            names=state.names(),
            partitions=[{} for _ in files],
            deleted=[
                None if file.vector is None else PaimonDeletedRows(vector=file.vector)
                for file in files
            ],
            fills=fills,
        )

    def older_names(self, state: PaimonTable) -> list[ColumnMapping]:
        """Return the names of columns in all schemas, by every name that files use for them."""
        from secure_bloom.lakes.paimon.schema import SchemaReader, every_field

        schemas = SchemaReader(state.folder).every()
        names: defaultdict[int, dict[str, None]] = defaultdict(dict)
        for schema in schemas:
            for column in every_field(schema.fields):
                names[column.id][column.name] = None
        return [ColumnMapping(members=_by_every_name(it.fields, names)) for it in schemas]


def _by_every_name(
    fields: Sequence[PaimonField], names: Mapping[int, Iterable[str]]
) -> dict[StoredName, NamedField]:
    """Return the fields of a structure in one schema, by every name that files use for them."""
    return {
        stored: NamedField(name=each.name, inside=_inside(each.type, names))
        for each in fields
        for stored in names[each.id]
    }


def _inside(kind: Any, names: Mapping[int, Iterable[str]]) -> ColumnMapping | None:
    from secure_bloom.lakes.paimon.schema import fields_in, held_types

    inner = [_inside(held, names) for held in held_types(kind)]
    members = _by_every_name(fields_in(kind), names)
    return ColumnMapping(members=members, inner=inner) if members or any(inner) else None


def _partition_fills(table: PaimonTable, file: PaimonFile) -> dict[str, pa.Scalar]:
    """Return the values of partition columns, because files of a migrated table lack them."""
    from secure_bloom.lakes.paimon.arrow_types import partition_scalar

    columns = [table.schema.named(name) for name in table.schema.partition_keys]
    return {
        column.name: partition_scalar(value, column)
        for column, value in zip(columns, file.partition, strict=True)
        if column is not None and value is not None
    }
