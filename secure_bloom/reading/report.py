"""Why a read was as fast or as slow as it was: per file and row group, in bytes and seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from secure_bloom.reading.advice import advice
from secure_bloom.reading.file_reports import ReadTotals


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReport(ReadTotals):
    """A whole read, which returned ``rows`` rows.

    ``files_left`` files were not looked at, because there were as many rows as were wanted.
    ``unverified`` are the paths of signed files whose key was not at hand: what they say may be
    forged.  ``seconds`` is wall-clock time by pass: footers, planning, rows.
    """

    rows: int
    files_left: int
    unverified: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def advice(self) -> list[str]:
        """What would make the read take less, in sentences; none where nothing would."""
        return advice(self)

    def to_json(self) -> dict[str, Any]:
        """The document that ``secure-bloom read --explain --json`` prints."""
        return {
            "rows": self.rows,
            "files_left": self.files_left,
            "unverified": list(self.unverified),
            "row_groups": self.row_groups,
            "row_groups_read": self.row_groups_read,
            "skipped": self.skipped,
            "bytes_read": self.bytes_read,
            "bytes_full_scan": self.bytes_full_scan,
            "seconds": self.seconds,
            "advice": self.advice,
            "files": [file.to_json() for file in self.files],
        }
