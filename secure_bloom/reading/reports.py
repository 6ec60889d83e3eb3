"""Why a read was as fast or as slow as it was: per file and row group, in bytes and seconds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from secure_bloom.reading.plans import Note, RowGroupPlan, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """One file; bytes are those of requests for its footer, filters and pages."""

    path: str
    row_groups: tuple[RowGroupPlan, ...]
    bytes_read: int
    bytes_full_scan: int
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The file as it stands in the document of a report."""
        return {
            "path": self.path,
            "bytes_read": self.bytes_read,
            "bytes_full_scan": self.bytes_full_scan,
            "notes": list(self.notes),
            "row_groups": [_row_group_json(group) for group in self.row_groups],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReport:
    """A whole read.

    ``seconds`` is wall-clock time by stage: footers, planning, rows.  ``rows`` were returned.
    """

    rows: int
    files: tuple[FileReport, ...]
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def bytes_read(self) -> int:
        """Bytes that were read of all files."""
        return sum(file.bytes_read for file in self.files)

    @property
    def bytes_full_scan(self) -> int:
        """Bytes that a scan of the same columns without any skipping reads."""
        return sum(file.bytes_full_scan for file in self.files)

    @property
    def skipped(self) -> dict[str, int]:
        """How many row groups each step skipped, in the order of the steps."""
        counts = Counter(group.skipped_by for file in self.files for group in file.row_groups)
        return {str(step): counts[step] for step in Step if counts[step]}

    @property
    def row_groups_read(self) -> int:
        """How many row groups were left to be read."""
        return sum(g.skipped_by is None for file in self.files for g in file.row_groups)

    def to_json(self) -> dict[str, Any]:
        """The document that ``secure-bloom read --explain --json`` prints."""
        return {
            "rows": self.rows,
            "row_groups": sum(len(file.row_groups) for file in self.files),
            "row_groups_read": self.row_groups_read,
            "skipped": self.skipped,
            "bytes_read": self.bytes_read,
            "bytes_full_scan": self.bytes_full_scan,
            "seconds": self.seconds,
            "files": [file.to_json() for file in self.files],
        }


def _row_group_json(group: RowGroupPlan) -> dict[str, Any]:
    return {
        "row_group": group.row_group,
        "rows": group.rows,
        "skipped_by": None if group.skipped_by is None else str(group.skipped_by),
        "rows_looked_at": _looked_at(group),
        "notes": [_note_json(note) for note in group.notes],
    }


def _looked_at(group: RowGroupPlan) -> int:
    if group.skipped_by is not None:
        return 0
    return group.rows if group.ranges is None else sum(end - start for start, end in group.ranges)


def _note_json(note: Note) -> dict[str, Any]:
    step = None if note.step is None else str(note.step)
    return {"column": note.column, "step": step, "text": note.text}
