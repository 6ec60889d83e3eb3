"""Advice on a read: answers "I have a filter, so why is nothing faster?".

Each rule checks the row groups that were read and yields sentences, mostly none.  Rules about
filters check only row groups without a match: no filter can skip a row that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter

from secure_bloom.reading.file_reports import ReadTotals
from secure_bloom.reading.pruning.plan import Note, Reason, RowGroupPlan, percent

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
    """Return the columns about which a step noted that reason."""
    return list(_counts(_read(read), reason))


def _counts(groups: Iterable[RowGroupPlan], reason: Reason) -> dict[str, int]:
    """Return the columns about which a step noted that reason, with the number of row groups."""
    counts: dict[str, int] = {}
    for group in groups:
        for column in dict.fromkeys(n.column for n in group.notes if n.reason is reason):
            counts[column] = counts.get(column, 0) + 1
    return counts
