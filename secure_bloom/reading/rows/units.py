"""Units of a read: row groups of one file that are decoded together."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import pyarrow as pa

from secure_bloom.encryption.kms import KeyMisfitError
from secure_bloom.errors import KeyUnavailableError
from secure_bloom.reading.pruning.plan import FilePlan, RowGroupPlan
from secure_bloom.reading.rows.file_reader import FileReader, Parts

#: Row groups are decoded together up to this many uncompressed bytes.
_UNIT_BYTES = 64 * 1024 * 1024
OTHER_COLUMNS = "to read other columns: --columns, or missing_keys='drop' (--missing-keys drop)"
#: Most rows of a batch.
BATCH_ROWS = 128 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Row groups of one file that are decoded together. One with ranges is alone in its unit."""

    reader: FileReader
    row_groups: tuple[RowGroupPlan, ...]
    is_narrowed: bool = False

    def narrowed(self) -> Unit | None:
        """Return the unit without the row groups whose values do not match.

        Return None if none is left.
        """
        if self.is_narrowed:
            return self
        left = self.reader.narrowed(self.row_groups)
        return replace(self, row_groups=tuple(left), is_narrowed=True) if left else None

    def read(self) -> pa.Table | Parts:
        """Return the rows for which the predicate is true, in the schema of the result.

        If they would take too much memory, they are returned in parts that are decoded later.
        """
        try:
            unit = self.narrowed()
            return self.reader.no_rows if unit is None else self.reader.read(unit.row_groups)
        except KeyUnavailableError as error:
            # A key that does not fit is no missing one: no option leaves its column out.
            if not isinstance(error, KeyMisfitError):
                error.hint = f"{error.hint}; {OTHER_COLUMNS}" if error.hint else OTHER_COLUMNS
            raise


def tables_of(rows: pa.Table | Parts) -> Generator[pa.Table, None, None]:
    """Yield the tables of a unit's rows, whether it reads them at once or in parts."""
    if isinstance(rows, Parts):
        with closing(rows.groups):
            for tables in rows.groups:
                yield from tables
    else:
        yield rows


def units(reader: FileReader) -> list[Unit]:
    """Return the row groups that the plan of a file leaves, grouped into units."""
    runs = list(_runs(reader.plan))
    reader.units_left = len(runs)
    return [Unit(reader=reader, row_groups=tuple(run)) for run in runs]


def _runs(plan: FilePlan) -> Iterator[list[RowGroupPlan]]:
    run: list[RowGroupPlan] = []
    size = 0
    for group in plan.surviving:
        group_size = plan.footer.row_groups[group.row_group].total_byte_size
        alone = group.ranges is not None or any(before.ranges is not None for before in run)
        if run and (alone or size + group_size > _UNIT_BYTES):
            yield run
            run, size = [], 0
        run.append(group)
        size += group_size
    if run:
        yield run
