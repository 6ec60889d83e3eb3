"""The advice on a table: a record for each column, and the lines of a policy, with its JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from secure_bloom.advising.query_log import QueryLog
from secure_bloom.advising.sample import TableSample
from secure_bloom.advising.trial import ColumnTrial, LookupComparison, LookupCost
from secure_bloom.advising.verdict import AdviceVerdict
from secure_bloom.encryption.policy_tables import toml_string
from secure_bloom.reports.base import Report
from secure_bloom.reports.text import counted, human_bytes

#: Seconds from which on tenths, and minutes, are shown; numbers of lines that are shown.
_LEAST_SECONDS, _MINUTES, _SHOWN_LINES = 0.1, 120, 10
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class BetterFpp:
    """A false-positive probability that serves the table better than the tried one.

    With ``reads_less`` a lookup reads clearly fewer bytes, filters included. Otherwise a lookup
    reads fewer row groups that have no match. That saves bytes in an open table, which reads its
    filters only once.
    """

    fpp: float
    trial: ColumnTrial
    reads_less: bool

    def fact(self, first: ColumnTrial) -> str:
        """Return a sentence on what this probability improves. ``first`` is the earlier trial."""
        if self.reads_less or first.absent is None or self.trial.absent is None:
            return f"fpp = {self.fpp:g} reads at least a tenth less: --fpp tries it"
        before, now = first.absent.with_.read, self.trial.absent.with_.read
        return (
            f"fpp = {self.fpp:g} for many lookups in an open table: one that finds nothing reads "
            f"{now:.1f} row groups in vain, not {before:.1f}, and filters take "
            f"{human_bytes(round(self.trial.bytes_added))}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnAdvice:
    """One column. ``trial`` is None if its values were not tried.

    ``share`` is its share of the ``=`` and ``in`` conditions of a log, or None without a log.
    ``key`` is the key that a policy names for it, ``stored_key`` the key that it is encrypted
    under.  ``better`` was tried too, and serves lookups better than ``fpp``.
    """

    column: str
    type: str
    verdict: AdviceVerdict
    reason: str
    fpp: float
    key: str | None = None
    stored_key: str | None = None
    share: float | None = None
    trial: ColumnTrial | None = None
    better: BetterFpp | None = None

    @property
    def better_fpp(self) -> float | None:
        """The false-positive probability that serves the table better, if one was found."""
        return None if self.better is None else self.better.fpp

    @property
    def gains(self) -> bool:
        """Whether the column is to have a filter."""
        return self.verdict is AdviceVerdict.GAINS

    @property
    def saved(self) -> float:
        """The bytes that a lookup saves: the mean for present and absent values."""
        found = [kind.saved for kind in self.kinds.values() if kind is not None]
        return sum(found) / len(found) if found else 0.0

    @property
    def lookups_until_it_pays(self) -> int | None:
        """The number of lookups that save as many bytes as building reads and writes.

        None if lookups save nothing, or if the filters exist already.
        """
        if self.trial is None or self.trial.had_filters or self.saved <= 0:
            return None
        cost = self.trial.bytes_read_to_build + self.trial.bytes_added
        return max(1, math.ceil(cost / self.saved))

    @property
    def kinds(self) -> dict[str, LookupComparison | None]:
        """Lookups of values that are in the table, and of values that are not."""
        return {
            "present": None if self.trial is None else self.trial.present,
            "absent": None if self.trial is None else self.trial.absent,
        }

    @property
    def facts(self) -> tuple[str, ...]:
        """The cost of filters, when they pay, and the number of values, as sentences."""
        if self.trial is None:
            return ()
        distinct, pays = self.trial.distinct, self.lookups_until_it_pays
        tried = {name: kind.lookups for name, kind in self.kinds.items() if kind is not None}
        found = [
            f"filters add {human_bytes(round(self.trial.bytes_added))}",
            f"built in {_seconds(self.trial.seconds_to_build)}",
            f"{counted(distinct.table, 'distinct value')}, {distinct.row_group:,} a row group",
            "tried with " + ", ".join(f"{count} {name}" for name, count in tried.items()),
        ]
        if pays is not None and self.gains:
            found.insert(2, f"paid back by {counted(pays, 'lookup')}")
        if self.better is not None:
            found.append(self.better.fact(self.trial))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return the column's record for the JSON document."""
        trial, kinds = self.trial, self.kinds
        return {
            "column": self.column,
            "type": self.type,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "fpp": self.fpp,
            "better_fpp": self.better_fpp,
            "bytes_added": None if trial is None else round(trial.bytes_added),
            "seconds_to_build": None if trial is None else round(trial.seconds_to_build, 3),
            "bytes_per_lookup": _both(kinds, lambda cost: round(cost.bytes)),
            "standard_error": _both(kinds, lambda cost: round(cost.error)),
            "bytes_saved_per_lookup": {
                name: None if kind is None else round(kind.saved) for name, kind in kinds.items()
            },
            "lookups_until_it_pays": self.lookups_until_it_pays,
            "row_groups_read": _both(kinds, lambda cost: round(cost.read, 2)),
            "row_groups_skipped": {
                name: None if kind is None else _skipped(kind.without)
                for name, kind in kinds.items()
            },
            "distinct_values": None
            if trial is None
            else {
                "row_group": trial.distinct.row_group,
                "table": trial.distinct.table,
            },
            "share_of_queries": None if self.share is None else round(self.share, 4),
            "lookups_tried": {
                name: 0 if kind is None else kind.lookups for name, kind in kinds.items()
            },
        }


def _seconds(seconds: float) -> str:
    if seconds < _LEAST_SECONDS:
        return f"less than {_LEAST_SECONDS} s"
    return f"{seconds:.1f} s" if seconds < _MINUTES else f"{seconds / 60:.0f} minutes"


def _both(kinds: Mapping[str, LookupComparison | None], number: Any) -> dict[str, Any]:
    return {
        name: {
            "without": None if kind is None else number(kind.without),
            "with": None if kind is None else number(kind.with_),
        }
        for name, kind in kinds.items()
    }


def _skipped(cost: LookupCost) -> dict[str, float]:
    """Return how many row groups each step rules out. A step that rules out none is left out."""
    return {str(step): round(count, 2) for step, count in cost.skipped.items() if count}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TableAdvice(Report):
    """The advice on a table. ``columns`` that gain come first, in the order of their gain.

    ``looked_at`` says which part of the table was tried. ``log`` is the log of queries, if one was
    given. ``in_clear`` is whether a policy was given but the files are not encrypted yet.
    """

    columns: tuple[ColumnAdvice, ...]
    files: int
    row_groups: int
    rows: int
    bytes: int
    files_looked_at: int
    row_groups_looked_at: int
    log: QueryLog | None = None
    in_clear: bool = False

    ROWS: ClassVar = ("columns",)

    @property
    def gaining(self) -> tuple[ColumnAdvice, ...]:
        """The columns that are to have filters."""
        return tuple(column for column in self.columns if column.gains)

    @property
    def policy(self) -> str:
        """The lines of a policy that ask for the filters of the columns that gain."""
        return "\n\n".join(map(_policy_lines, self.gaining))

    @property
    def size_text(self) -> str:
        """The size of the table."""
        return (
            f"{counted(self.files, 'file')}, {counted(self.row_groups, 'row group')}, "
            f"{counted(self.rows, 'row')}, {human_bytes(self.bytes)}"
        )

    @property
    def sureness(self) -> str:
        """A sentence on the part of the table that the numbers come from."""
        if self.row_groups_looked_at >= self.row_groups:
            return "all row groups were tried, with some values each: nothing is scaled up"
        return (
            f"tried on {self.row_groups_looked_at:,} of {self.row_groups:,} row groups, in "
            f"{self.files_looked_at:,} of {counted(self.files, 'file')}; the rest is an estimate"
        )

    @property
    def queries_text(self) -> str:
        """A sentence on the part of the log of queries that was understood, or "" without a log."""
        if self.log is None:
            return ""
        text = f"queries: {counted(self.log.lines, 'line')}"
        if not self.log.not_parsed:
            return text
        some = ", ".join(map(str, self.log.not_parsed[:_SHOWN_LINES]))
        more = " ..." if len(self.log.not_parsed) > _SHOWN_LINES else ""
        return f"{text}, {len(self.log.not_parsed):,} not understood: {some}{more}"

    def _document(self) -> dict[str, Any]:
        return {
            "columns": [column.to_dict() for column in self.columns],
            "table": {
                "files": self.files,
                "row_groups": self.row_groups,
                "rows": self.rows,
                "bytes": self.bytes,
            },
            "looked_at": {
                "files": self.files_looked_at,
                "row_groups": self.row_groups_looked_at,
            },
            "in_clear": self.in_clear,
            "queries": None
            if self.log is None
            else {"lines": self.log.lines, "not_parsed": list(self.log.not_parsed)},
            "policy": self.policy,
        }

    def _summary(self) -> str:
        return f"{len(self.gaining):,} of {counted(len(self.columns), 'column')} gain"


def conclude(
    sample: TableSample,
    columns: Sequence[ColumnAdvice],
    log: QueryLog | None,
    *,
    in_clear: bool = False,
) -> TableAdvice:
    """Return the advice on the table from the advice on its columns."""
    return TableAdvice(
        columns=tuple(sorted(columns, key=_rank)),
        files=sample.file_count,
        row_groups=sample.row_group_count,
        rows=sample.rows - sample.deleted_rows,
        bytes=sample.size,
        files_looked_at=len(sample.row_groups),
        row_groups_looked_at=sample.chosen_count,
        log=log,
        in_clear=in_clear,
    )


def _rank(column: ColumnAdvice) -> tuple[float, ...]:
    return (not column.gains, -(column.share or 0.0), -column.saved)


def _policy_lines(column: ColumnAdvice) -> str:
    name = column.column if _BARE_KEY.fullmatch(column.column) else toml_string(column.column)
    lines = [f"[columns.{name}]"]
    if column.key is not None:
        lines.append(f"key = {toml_string(column.key)}")
    elif column.stored_key is not None:
        # The key is a comment: a policy with a key needs that of the footer, too.
        lines.append(f"# key = {toml_string(column.stored_key)}, as the files have it")
    return "\n".join([*lines, f"bloom = {{ fpp = {column.fpp:g} }}"])
