"""Reports of a read: for each file and in total, the bytes and row groups that were read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.reading.pruning.plan import FilePlan, Note, RowGroupPlan, Step
from secure_bloom.reading.rows.column_decoder import stored_extents
from secure_bloom.storage.inputs import Extent, covered


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReadReport:
    """One file. ``filters`` are the columns that have a filter in its first row group.

    ``bytes_footer`` were read for the footer: up to 64 KiB from the end of the file at first.
    ``bytes_judged_by`` were read to rule row groups out: filters, dictionaries, page indexes.
    ``bytes_pages`` were read for pages.  No byte counts twice: bytes that were read together with
    the footer count as footer only.  ``bytes_full_scan`` is the footer and every page of the same
    columns.
    """

    path: str
    row_groups: tuple[RowGroupPlan, ...]
    bytes_footer: int
    bytes_judged_by: int
    bytes_pages: int
    bytes_full_scan: int
    filters: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def bytes_read(self) -> int:
        """The number of bytes that were read of the file."""
        return self.bytes_footer + self.bytes_judged_by + self.bytes_pages

    def to_dict(self) -> dict[str, Any]:
        """Return the file as it is in the document of a report."""
        return {
            "path": self.path,
            "bytes_read": self.bytes_read,
            "bytes_full_scan": self.bytes_full_scan,
            "bytes_footer": self.bytes_footer,
            "bytes_judged_by": self.bytes_judged_by,
            "bytes_pages": self.bytes_pages,
            "filters": list(self.filters),
            "notes": list(self.notes),
            "row_groups": [_row_group_json(group) for group in self.row_groups],
        }


def file_report(
    plan: FilePlan,
    row_groups: tuple[RowGroupPlan, ...],
    pages: Sequence[Extent],
    needed: Sequence[str],
    *,
    describes_file: bool = True,
) -> FileReadReport:
    """Return the report of one file: the bytes read for its plan, and for its pages.

    ``needed`` are the columns that the request needs.  Without ``describes_file`` the report has
    neither the bytes of a full scan nor the columns with a filter, which need the whole footer.
    """
    footer = plan.footer
    notes = []
    if not footer.is_verified:
        notes.append("the footer's signature was not checked: no footer key")
    full = [
        extent
        for index in range(len(footer.row_groups) if describes_file else 0)
        for extent in stored_extents(footer, index, needed)
    ]
    pruned = covered([*footer.tail.extents, *plan.extents])
    read = covered([*footer.tail.extents, *plan.extents, *pages])
    return FileReadReport(
        path=plan.path,
        row_groups=row_groups,
        bytes_footer=covered(footer.tail.extents),
        bytes_judged_by=pruned - covered(footer.tail.extents),
        bytes_pages=read - pruned,
        bytes_full_scan=covered([*footer.tail.extents, *full]) if describes_file else 0,
        filters=_columns_with_filters(footer) if describes_file else (),
        notes=tuple(notes),
    )


def _columns_with_filters(footer: Footer) -> tuple[str, ...]:
    """Return the columns that have a filter in the first row group, or () if it cannot be read."""
    found = []
    for ordinal, leaf in enumerate(footer.columns.leaves if footer.row_groups else ()):
        # The read itself asks nothing of columns that are not wanted, and fails for none.
        with suppress(SecureBloomError):
            if footer.chunk_to_read(0, ordinal).meta_data.bloom_filter_offset is not None:
                found.append(leaf.name)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTotals:
    """The files of a read. ``has_condition`` says whether anything could be skipped at all."""

    has_condition: bool
    files: tuple[FileReadReport, ...]

    @property
    def bytes_read(self) -> int:
        """The number of bytes that were read of all files."""
        return sum(file.bytes_read for file in self.files)

    @property
    def bytes_full_scan(self) -> int:
        """The number of bytes that a scan of the same columns reads without any skipping."""
        return sum(file.bytes_full_scan for file in self.files)

    @property
    def row_groups(self) -> int:
        """The number of row groups of all files."""
        return sum(len(file.row_groups) for file in self.files)

    @property
    def skipped(self) -> dict[str, int]:
        """The number of row groups that each step skipped, in the order of the steps."""
        counts = Counter(group.skipped_by for file in self.files for group in file.row_groups)
        return {str(step): counts[step] for step in Step if counts[step]}

    @property
    def row_groups_read(self) -> int:
        """The number of row groups that no step skipped."""
        return sum(g.skipped_by is None for file in self.files for g in file.row_groups)


def _row_group_json(group: RowGroupPlan) -> dict[str, Any]:
    return {
        "row_group": group.row_group,
        "rows": group.rows,
        "skipped_by": None if group.skipped_by is None else str(group.skipped_by),
        "rows_looked_at": _looked_at(group),
        "rows_found": group.rows_found,
        "notes": [_note_json(note) for note in group.notes],
    }


def _looked_at(group: RowGroupPlan) -> int:
    if group.skipped_by is not None:
        return 0
    return group.rows if group.ranges is None else sum(end - start for start, end in group.ranges)


def _note_json(note: Note) -> dict[str, Any]:
    step = None if note.step is None else str(note.step)
    reason = None if note.reason is None else str(note.reason)
    return {
        "column": note.column,
        "step": step,
        "text": note.text,
        "reason": reason,
        "fpp": note.fpp,
        "chance": note.chance,
        "rows": note.rows,
    }
