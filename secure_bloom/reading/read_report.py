"""Report why a read was as fast or as slow as it was: per file and row group, bytes and seconds.

People get sentences, in which what was not skipped comes first, and advice: it answers "I have a
filter, so why is nothing faster?".  Each rule of the advice checks the row groups that were read
and yields sentences, mostly none.  Rules about filters check only row groups without a match: no
filter can skip a row that is there.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, ClassVar

from secure_bloom.reading.file_reports import ReadTotals
from secure_bloom.reading.pruning.plan import Note, Reason, RowGroupPlan, Step, percent
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


#: A filter is too full if more than this share of absent values pass.
_FULL = 0.1
#: A value is common if more than this share of the row groups have it.
_COMMON = 0.5
#: With fewer row groups than this nothing is called common; from this many rows on they are many.
_MANY = 4
#: Skipping a file with fewer bytes than this in the wanted columns saves little.
_SMALL = 256 * 1024


def advice(read: ReadTotals) -> list[str]:
    """Return the sentences about a read, the most important first."""
    return [sentence for rule in _RULES for sentence in rule(read)]


def _without_condition(read: ReadTotals) -> Iterator[str]:
    if not read.has_condition:
        yield "there is no condition (--where), so every row group is read"


def _without_key(read: ReadTotals) -> Iterator[str]:
    for column in _columns(read, Reason.NO_KEY):
        yield (
            f"the key of {column} is missing: its condition was left out with its filter, and "
            "rows may have come that do not match"
        )


def _without_filter(read: ReadTotals) -> Iterator[str]:
    others = ", ".join(sorted({name for file in read.files for name in file.filters}))
    there = f" (there are filters of {others})" if others else ""
    for column, count in _counts(_read_in_vain(read), Reason.NO_FILTER).items():
        groups = f"{count:,} row group{'' if count == 1 else 's'}"
        yield (
            f"{column} has no filter in {groups} that had to be read{there}: "
            f"secure-bloom add PATH --column {column}"
        )


def _under_or(read: ReadTotals) -> Iterator[str]:
    columns = ", ".join(_counts(_read_in_vain(read), Reason.OTHER_PARTS))
    if columns:
        yield (
            f"under `or` every part must be ruled out; the filter of {columns} alone cannot do "
            "that, the other parts need one too"
        )


def _without_lookup(read: ReadTotals) -> Iterator[str]:
    columns = ", ".join(_columns(read, Reason.NO_LOOKUP))
    if columns:
        yield (
            f"a filter answers = and in, and the condition on {columns} is neither; statistics "
            "rule ranges out where rows are sorted by the column, and hardly ever a !="
        )


def _without_single_form(read: ReadTotals) -> Iterator[str]:
    columns = ", ".join(_columns(read, Reason.NO_SINGLE_FORM))
    if columns:
        yield (
            f"no filter can be asked for the value of {columns}: files may hold it in several "
            "forms, or another type than the filter's"
        )


def _full_filter(read: ReadTotals) -> Iterator[str]:
    notes = _notes_in_vain(read)
    full = [(n.column, n.fpp or 0.0) for n in notes if (n.fpp or 0.0) > _FULL]
    # Sorted by their shares: of each column the dictionary keeps the last, the worst one.
    for column, fpp in dict(sorted(full, key=itemgetter(1))).items():
        yield (
            f"the filter of {column} is too full: {percent(fpp)} % of what is not there passes; "
            f"secure-bloom add PATH --column {column}:fpp=0.01 --replace-filters, "
            "without max_bytes or with a larger one"
        )


def _long_list(read: ReadTotals) -> Iterator[str]:
    weak = [
        (n.column, n.chance or 0.0)
        for n in _notes_in_vain(read)
        if (n.fpp or 0.0) <= _FULL < (n.chance or 0.0)
    ]
    for column, chance in dict(sorted(weak, key=itemgetter(1))).items():
        yield (
            f"the condition has many values of {column}: the filter lets {percent(chance)} % of "
            "row groups pass by chance; for long lists give it a smaller fpp: "
            f"secure-bloom add PATH --column {column}:fpp=0.0001 --replace-filters"
        )


def _common_value(read: ReadTotals) -> Iterator[str]:
    if not read.has_condition or _columns(read, Reason.NO_KEY):
        return
    count = sum(bool(group.rows_found) for group in _read(read))
    if read.row_groups >= _MANY and count > _COMMON * read.row_groups:
        yield (
            f"{count:,} of {read.row_groups:,} row groups hold rows that match: no filter can "
            "skip them; filters serve rare values, and rows that are sorted or clustered by the "
            "column"
        )


def _one_row_group(read: ReadTotals) -> Iterator[str]:
    if not (read.has_condition and read.row_groups == read.row_groups_read == 1):
        return
    # Many matching rows could lie in each of several smaller row groups.
    if all((group.rows_found or 0) < _MANY for group in _read(read)):
        yield (
            "there is one row group, which is read or skipped whole: of smaller ones "
            "(parquet.block.size when it is written) most could be skipped"
        )


def _small_files(read: ReadTotals) -> Iterator[str]:
    pages = sum(file.bytes_pages for file in read.files)
    is_small = read.bytes_full_scan < _SMALL * len(read.files)
    has_judged = read.skipped or read.bytes_read > read.bytes_full_scan
    if is_small and has_judged and read.bytes_read > 2 * pages:
        yield (
            "the files are small: their footers and filters are most of what is read, and "
            "skipping saves little; fewer and larger files would be read faster"
        )


_RULES: tuple[Callable[[ReadTotals], Iterator[str]], ...] = (
    _without_condition,
    _without_key,
    _without_filter,
    _under_or,
    _without_lookup,
    _without_single_form,
    _full_filter,
    _long_list,
    _common_value,
    _one_row_group,
    _small_files,
)


def _read(read: ReadTotals) -> Iterator[RowGroupPlan]:
    """Yield the row groups that no step ruled out before their pages were read."""
    for file in read.files:
        yield from (group for group in file.row_groups if group.pages_are_read)


def _read_in_vain(read: ReadTotals) -> list[RowGroupPlan]:
    """Return the row groups that were read but had no match: they could have been skipped."""
    return [g for g in _read(read) if g.skipped_by is not None or g.rows_found == 0]


def _notes_in_vain(read: ReadTotals) -> Iterator[Note]:
    for group in _read_in_vain(read):
        yield from group.notes


def _columns(read: ReadTotals, reason: Reason) -> list[str]:
    """Return the columns about which a step noted ``reason``."""
    return list(_counts(_read(read), reason))


def _counts(groups: Iterable[RowGroupPlan], reason: Reason) -> dict[str, int]:
    """Return the number of row groups in which a step noted ``reason``, by column."""
    counts: dict[str, int] = {}
    for group in groups:
        for column in dict.fromkeys(n.column for n in group.notes if n.reason is reason):
            counts[column] = counts.get(column, 0) + 1
    return counts
