"""Refuse a table whose metadata must show values of columns that get a key.

    partition values    in manifests, in the summaries of manifest lists, and in paths
    delete files        values of columns in clear: those of equality deletes, and the deleted
                        rows that some writers keep in position deletes

Bounds are no reason to refuse a table, because the new snapshot leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyiceberg.manifest import DataFileContent, FileFormat

from secure_bloom.errors import UnsupportedFeatureError, located
from secure_bloom.lakes.iceberg.commit_table import CommitTable
from secure_bloom.lakes.iceberg.live_files import Manifests
from secure_bloom.lakes.iceberg.replacing_snapshot import spec_of
from secure_bloom.lakes.iceberg.schema_fields import TableColumns
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import read_unverified
from secure_bloom.storage import open_input

#: The transform of a partition field that was removed.
_VOID: Final = "void"


def refuse_shown_values(table: CommitTable, manifests: Manifests, secret: frozenset[int]) -> None:
    """Raise UnsupportedFeatureError for a partition or a delete file with values of ``secret``."""
    if not secret:
        return
    columns = TableColumns.of(table.metadata)
    for number in _partition_sources(table, manifests):
        if number in secret:
            raise UnsupportedFeatureError(
                f"the table is partitioned by {columns.name(number)}, so its manifests and paths "
                "show what the column holds",
                hint="partition the table by columns without a key (ALTER TABLE ... DROP PARTITION "
                "FIELD), and let its engine rewrite the data files",
                path=table.path,
            )
    for entry in manifests.deletes(table.head):
        file = entry.data_file
        shown = secret & _columns_of(table, file)
        if shown:
            names = ", ".join(sorted(map(columns.name, shown)))
            raise UnsupportedFeatureError(
                f"a delete file has values of {names} in clear",
                hint="let the table's engine apply its deletes (rewrite_data_files with the option "
                "delete-file-threshold), then run again",
                path=str(file.file_path),
            )


def _partition_sources(table: CommitTable, manifests: Manifests) -> Iterator[int]:
    """Yield the ids of columns that partition live files, or files that are written from now on."""
    entries = [*manifests.live(table.head).values(), *manifests.deletes(table.head)]
    used = {it.data_file.spec_id for it in entries} | {table.metadata.default_spec_id}
    for spec_id in sorted(used):
        for part in spec_of(spec_id, table).fields:
            # A hash or a part of a value shows something of it, too.
            if str(part.transform) != _VOID:
                yield part.source_id


def _columns_of(table: CommitTable, file: Any) -> set[int]:
    """Return the ids of the columns that a delete file has."""
    sizes = file.column_sizes or {}
    if file.content == DataFileContent.POSITION_DELETES and (
        # Each column of the file has a size, so the file need not be opened.
        sizes or file.file_format == FileFormat.PUFFIN
    ):
        return set(sizes)
    if file.file_format != FileFormat.PARQUET:
        raise UnsupportedFeatureError(
            f"which columns a delete file has is not known: it is {file.file_format.value}",
            path=str(file.file_path),
        )
    path = table.location(file.file_path)
    with located(path=path), open_input(path) as opened:
        leaves = read_unverified(read_tail(opened)).leaves
    found = {leaf.element.field_id for leaf in leaves if leaf.element.field_id is not None}
    return found | {*(file.equality_ids or ())}
