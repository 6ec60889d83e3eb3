"""Carry out a part of a plan, on any machine: read the rows of one planned file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from secure_bloom.encryption.access import GivenKeys
from secure_bloom.errors import FileChangedError, located
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import read_footer
from secure_bloom.reading.pruning.plan import FilePlan, PlannedFile, ReadPlan
from secure_bloom.reading.rows.file_reader import FileReader
from secure_bloom.reading.rows.pyarrow_source import SourceOpener
from secure_bloom.reading.rows.units import BATCH_ROWS, Unit, tables_of, units
from secure_bloom.storage import open_input


def planned_rows(plan: ReadPlan, file: PlannedFile, keys: GivenKeys) -> Iterator[pa.RecordBatch]:
    """Yield the matching rows of one file of a plan, in the plan's schema.

    Raises FileChangedError if the file is not the one that was planned.
    """
    resolver = replace(plan.access, keys=keys).resolver()
    with located(path=file.path), open_input(file.path) as opened:
        footer = read_footer(opened, resolver, SchemaCache(plan.names))
        if (footer.written, footer.digest) != (file.written, file.digest):
            raise FileChangedError(
                "the file was changed after it was planned",
                hint="plan anew; copies of a file on several machines keep its time of writing",
            )
    planned = FilePlan(
        path=file.path,
        footer=footer,
        partition=file.partition,
        row_groups=file.row_groups,
        unchecked=file.unchecked,
        deleted=file.deleted,
        equality=file.equality,
        fills=file.fills,
    )
    reader = FileReader(planned, plan.request(), SourceOpener(resolver))
    try:
        for unit in filter(None, map(Unit.narrowed, units(reader))):
            for table in tables_of(unit.read()):
                yield from table.to_batches(max_chunksize=BATCH_ROWS)
    finally:
        reader.close()
