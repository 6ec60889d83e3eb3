"""Report why a read was as fast or as slow as it was: per file and row group, bytes and seconds."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any, ClassVar

from secure_bloom.reading.advice import advice
from secure_bloom.reading.file_reports import ReadTotals
from secure_bloom.reading.report_lines import report_lines
from secure_bloom.reports.base import Report
from secure_bloom.reports.text import counted


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReadReport(Report, ReadTotals):
    """A whole read, which returned ``rows`` rows, or None if it was only planned.

    ``files_left`` is the number of files that were not read because there were enough rows.
    ``unverified`` are the paths of signed files whose key was not available: their content may be
    forged.  ``hidden`` are columns, and members of structures, whose key is missing: they are null
    or left out.  ``seconds`` is wall-clock time by pass: footers, planning, rows.  ``str`` of a
    report, and a notebook, say what the command line says.
    """

    rows: int | None
    files_left: int
    unverified: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)

    ROWS: ClassVar = ("files", "row_groups")

    @property
    def advice(self) -> list[str]:
        """Sentences on how the read could be faster, or [] if it could not."""
        return advice(self)

    @property
    def lines(self) -> list[str]:
        """What was read and why, for people: what was not skipped comes first."""
        return list(report_lines(self))

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        said = html.escape(str(self))
        return f'<pre style="white-space: pre-wrap">{said}</pre>{Report._repr_html_(self)}'

    def _document(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "files_left": self.files_left,
            "unverified": list(self.unverified),
            "hidden": list(self.hidden),
            "row_groups": self.row_groups,
            "row_groups_read": self.row_groups_read,
            "skipped": self.skipped,
            "bytes_read": self.bytes_read,
            "bytes_full_scan": self.bytes_full_scan,
            "seconds": self.seconds,
            "advice": self.advice,
            "files": [file.to_dict() for file in self.files],
        }

    def _summary(self) -> str:
        return (
            f"{'planned' if self.rows is None else counted(self.rows, 'row')}, "
            f"{self.row_groups_read} of {counted(self.row_groups, 'row group')} and "
            f"{self.bytes_read:,} of "
            f"{self.bytes_full_scan:,} bytes read"
        )
