"""Decide whether a filter of a column pays. The first rule against it gives the reason."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from secure_bloom.advising.candidates import Candidate
from secure_bloom.advising.query_log import QueryLog
from secure_bloom.advising.sample import TableSample
from secure_bloom.advising.trial import ColumnTrial, LookupComparison
from secure_bloom.reading.pruning.plan import Step

#: A column gains if lookups of one kind read less by this share, and by this many bytes.
_WORTH, _WORTH_BYTES = 0.1, 4096
#: Statistics suffice if they leave about the one row group that has, or could have, the value.
_ALMOST_ONE = 1.5
#: A step rules out most row groups by this share; footers are most of the bytes by this one.
_MOST, _FOOTERS = 0.5, 0.6
#: A filter that serves only where dictionaries do must save this share of the bytes.
_HALF = 0.5
_FEW_ROW_GROUPS = 3


class AdviceVerdict(enum.StrEnum):
    """Whether lookups would read less with a filter of the column."""

    GAINS = "gains"
    NO = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCase:
    """All facts by which one column is decided."""

    candidate: Candidate
    sample: TableSample
    log: QueryLog | None
    trial: ColumnTrial


def refusal(candidate: Candidate, log: QueryLog | None) -> str | None:
    """Return why a column gets no filter whatever its values are.

    Return None if its values must be tried.
    """
    if candidate.refusal is not None:
        return candidate.refusal
    return _by_queries(candidate, log)


def _by_queries(candidate: Candidate, log: QueryLog | None) -> str | None:
    if log is None:
        return None
    use = log.use(candidate.name)
    if use.equal:
        return None
    if use.range:
        return "ranges only: queries ask for its ranges, and a filter answers = and in alone"
    return "not looked up: no query of the log asks for it by = or in"


def decide(case: ColumnCase) -> tuple[AdviceVerdict, str]:
    """Return the verdict on a column that was tried, and the reason as a sentence."""
    for rule in _AGAINST:
        reason = rule(case)
        if reason is not None:
            return AdviceVerdict.NO, reason + ("; it has filters" if case.trial.had_filters else "")
    return AdviceVerdict.GAINS, ("has one: " if case.trial.had_filters else "") + _gain(case)


def _without_values(case: ColumnCase) -> str | None:
    if case.trial.present is None and case.trial.absent is None:
        return "no values: every row that was looked at is null or NaN"
    return None


def _fractions(case: ColumnCase) -> str | None:
    if case.candidate.has_fractions and case.log is None:
        return (
            "ranges only: numbers with fractions are hardly ever asked for by =, and a filter "
            "answers nothing else; a log with --queries can show otherwise"
        )
    return None


def _sorted(case: ColumnCase) -> str | None:
    if case.sample.row_group_count < 2:
        return None
    left = [it.without.after_statistics for it in _comparisons(case)]
    # Of two or three row groups, "about one" would be true of a column that is not sorted.
    if max(left) > min(_ALMOST_ONE, 0.5 * case.sample.row_group_count):
        return None
    if any(it.without.skipped[Step.PARTITION] for it in _comparisons(case)):
        return "partition: the names of folders and statistics suffice"
    return (
        f"sorted: statistics suffice, they leave {max(left):.1f} of "
        f"{case.sample.row_group_count:,} row groups to a lookup"
    )


def _dictionary_suffices(case: ColumnCase) -> str | None:
    """Return a reason against a filter if dictionaries already rule out absent values, or None.

    A filter is smaller than a dictionary, but would save only a part of the dictionary's bytes.
    """
    present, absent = case.trial.present, case.trial.absent
    if absent is None or absent.share >= _HALF or (present is not None and _is_worth(present)):
        return None
    return _small_files(case) or _dictionary(case)


def _little(case: ColumnCase) -> str | None:
    """Return why the gain is too small: the first cause that explains it."""
    if any(_is_worth(it) for it in _comparisons(case)):
        return None
    return next(filter(None, (cause(case) for cause in _CAUSES)))


def _small_files(case: ColumnCase) -> str | None:
    kinds = _comparisons(case)
    if all(it.without.footers >= _FOOTERS * it.without.bytes for it in kinds):
        return (
            "small files: footers are most of what a lookup reads, filters or not; fewer and "
            "larger files would be read faster"
        )
    return None


def _dictionary(case: ColumnCase) -> str | None:
    if _rules_out_most(case, Step.DICTIONARY):
        return (
            f"dictionary-complete: about {case.trial.distinct.row_group:,} distinct values "
            "a row group are in its dictionary, which rules out the others already"
        )
    return None


def _mostly_statistics(case: ColumnCase) -> str | None:
    if _rules_out_most(case, Step.STATISTICS):
        return "sorted: statistics suffice, the row groups that they leave have the value"
    return None


def _few_row_groups(case: ColumnCase) -> str | None:
    count = case.sample.row_group_count
    if count <= _FEW_ROW_GROUPS:
        return f"too few row groups: {count}, and a filter skips whole ones"
    return None


def _common(case: ColumnCase) -> str | None:
    present, count = case.trial.present, case.sample.row_group_count
    if present is not None and present.with_.read > _MOST * count:
        return (
            f"common values: a lookup finds rows in {present.with_.read:.0f} of {count:,} row "
            "groups, and no filter skips those"
        )
    return None


def _no_gain(_: ColumnCase) -> str | None:
    return "a lookup reads about as many bytes of filters as it saves"


_CAUSES: tuple[Callable[[ColumnCase], str | None], ...] = (
    _small_files,
    _dictionary,
    _mostly_statistics,
    _few_row_groups,
    _common,
    _no_gain,
)
_AGAINST: tuple[Callable[[ColumnCase], str | None], ...] = (
    _without_values,
    _fractions,
    _sorted,
    _dictionary_suffices,
    _little,
)


def _comparisons(case: ColumnCase) -> list[LookupComparison]:
    return [it for it in (case.trial.present, case.trial.absent) if it is not None]


def _is_worth(kind: LookupComparison) -> bool:
    return kind.saved >= _WORTH_BYTES and kind.share >= _WORTH


def _rules_out_most(case: ColumnCase, step: Step) -> bool:
    """Return whether the step already rules out most row groups for a value that no row has."""
    kind = case.trial.absent or case.trial.present
    return kind is not None and kind.without.skipped[step] > _MOST * case.sample.row_group_count


def _gain(case: ColumnCase) -> str:
    """Return a text with the bytes that lookups of present and of absent values save."""
    parts = [
        f"{name} lookups read {100 * it.share:.0f} % less"
        if _is_worth(it)
        else f"{name} ones gain nothing"
        for name, it in (("absent", case.trial.absent), ("present", case.trial.present))
        if it is not None
    ]
    parts.sort(key=lambda part: "gain nothing" in part)
    return ", ".join(parts) + _why_not_present(case)


def _why_not_present(case: ColumnCase) -> str:
    present = case.trial.present
    if present is None or _is_worth(present):
        return ""
    if case.sample.row_group_count == 1:
        return ": the one row group must be read for them"
    if present.with_.read > _MOST * case.sample.row_group_count:
        return ": most row groups have the value"
    return ""
