"""Report why a read was as fast or as slow as it was: per file and row group, bytes and seconds.

People get sentences, in which what was not skipped comes first.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from secure_bloom.reading.advice import advice
from secure_bloom.reading.file_reports import ReadTotals
from secure_bloom.reading.pruning.plan import Note, RowGroupPlan, Step, percent
from secure_bloom.reports.base import Report
from secure_bloom.reports.text import counted, human_bytes, legible


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReadReport(Report, ReadTotals):
    """A whole read, which returned ``rows`` rows, or None if it was only planned.

    ``files_left`` is the number of files that were not read because there were enough rows.
    ``unverified`` are the paths of signed files whose key was not available: their content may be
    forged.  ``hidden`` are columns, and members of structures, whose key is missing: they are null
    or left out.  ``seconds`` is wall-clock time by pass: footers, planning, rows.  ``str`` of a
    report, and its display in a notebook, have the text that the command line prints.
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
        return list(_lines(self))

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


def _lines(report: ReadReport) -> Iterator[str]:
    """Yield the rows, why row groups were read, what was skipped, the bytes, the time, advice."""
    rows = "none read: this is the plan" if report.rows is None else f"{report.rows:,}"
    yield f"rows:       {rows}"
    for line in _reasons(report):
        yield f"not skipped: {legible(line)}"
    yield f"row groups: {report.row_groups_read:,} of {report.row_groups:,} read"
    for step, count in report.skipped.items():
        yield f"            {count:,} skipped by {step}"
    if report.files_left:
        left = counted(report.files_left, "file")
        yield f"            {left} not looked at: there were rows enough"
    yield from _bytes(report)
    steps = ", ".join(f"{step} {spent:.2f}" for step, spent in report.seconds.items())
    yield f"seconds:    {steps}"
    if report.hidden:
        missing = "its key is missing" if len(report.hidden) == 1 else "their keys are missing"
        yield f"hidden:     {legible(', '.join(report.hidden))}: {missing}"
    for line in report.advice:
        yield f"advice: {legible(line)}"


def _bytes(report: ReadReport) -> Iterator[str]:
    read, full = human_bytes(report.bytes_read), human_bytes(report.bytes_full_scan)
    share = 100 * report.bytes_read / max(1, report.bytes_full_scan)
    if report.bytes_read <= report.bytes_full_scan:
        yield f"bytes:      {read} of {full} that a full scan reads ({share:.1f} %)"
    else:
        yield (
            f"bytes:      {read}, {share - 100:.1f} % more than a full scan ({full}): filters and "
            "indexes took more than was skipped"
        )
    parts = {
        "footers": sum(file.bytes_footer for file in report.files),
        "filters, dictionaries and indexes": sum(file.bytes_judged_by for file in report.files),
        "pages": sum(file.bytes_pages for file in report.files),
    }
    sizes = ", ".join(f"{name} {human_bytes(size)}" for name, size in parts.items() if size)
    yield f"            {sizes or 'none'}"


def _reasons(report: ReadReport) -> list[str]:
    """Return why row groups were read, by column and step, with their numbers."""
    found: dict[tuple[str, Step | None, str], list[tuple[RowGroupPlan, list[Note]]]] = {}
    for file in report.files:
        for group in file.row_groups:
            if group.skipped_by is None:
                for kind, notes in _by_kind(group.notes).items():
                    found.setdefault(kind, []).append((group, notes))
    return [
        f"{column}, {'' if step is None else f'{step}: '}{_together(places)} "
        f"({counted(len(places), 'row group')})"
        for (column, step, _), places in found.items()
    ]


def _by_kind(notes: Sequence[Note]) -> dict[tuple[str, Step | None, str], list[Note]]:
    """Return notes grouped by column, step and kind: the reason, or the text of the note."""
    found: dict[tuple[str, Step | None, str], list[Note]] = {}
    for note in notes:
        kind = note.reason or ("rows" if note.rows is not None else note.text)
        found.setdefault((note.column, note.step, kind), []).append(note)
    return found


def _together(places: Sequence[tuple[RowGroupPlan, list[Note]]]) -> str:
    """Return notes of one kind as one text, with the sum or the range of their numbers."""
    first = places[0][1][0]
    if first.rows is not None:
        left = sum(min(note.rows or 0 for note in notes) for _, notes in places)
        return f"leaves {left:,} of {sum(group.rows for group, _ in places):,} rows"
    chances = sorted({n.chance for _, notes in places for n in notes if n.chance is not None})
    if len(chances) > 1:
        return (
            "maybe: the filters' false-positive probabilities are "
            f"{percent(chances[0])} to {percent(chances[-1])} %"
        )
    return first.text
