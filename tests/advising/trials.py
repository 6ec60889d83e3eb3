"""Made-up results of trials, for tests of what is concluded from them and how it is told."""

from __future__ import annotations

from secure_bloom.advising.lookup_values import DistinctValues
from secure_bloom.advising.trial import ColumnTrial, LookupComparison, LookupCost
from secure_bloom.reading.pruning.plan import Step


def cost(size: float, read: float = 1.0, **skipped: float) -> LookupCost:
    """A lookup that reads so many bytes and row groups; the others are skipped by steps."""
    steps = dict.fromkeys(Step, 0.0) | {Step[name.upper()]: n for name, n in skipped.items()}
    return LookupCost(bytes=size, error=0.0, footers=1.0, read=read, skipped=steps)


def comparison(without: LookupCost, with_: LookupCost) -> LookupComparison:
    return LookupComparison(without=without, with_=with_, lookups=10)


def trial(
    present: LookupComparison | None, absent: LookupComparison | None, *, added: float = 100.0
) -> ColumnTrial:
    """The trial of a column without a key and without filters."""
    return ColumnTrial(
        bytes_added=added,
        bytes_read_to_build=added,
        seconds_to_build=0.1,
        key=None,
        had_filters=False,
        present=present,
        absent=absent,
        distinct=DistinctValues(row_group=10, table=100),
    )
