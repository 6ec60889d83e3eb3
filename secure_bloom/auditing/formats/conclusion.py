"""AuditReport -> its conclusion: one state, one sentence, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from secure_bloom.auditing.findings import AuditReport
from secure_bloom.auditing.formats.mistakes import HARMLESS, Mistake, State
from secure_bloom.text import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """``state`` is the worst there is; ``headline`` says it; ``scope`` says of what."""

    state: State
    headline: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCount:
    """How many mistakes are in one state, and in how many places."""

    state: State
    mistakes: int
    places: int


def tallies(groups: Iterable[Mistake]) -> tuple[StateCount, ...]:
    """The counts of every state but ``CLEAN``, worst first."""
    mistakes: Counter[State] = Counter()
    places: Counter[State] = Counter()
    for group in groups:
        mistakes[group.state] += 1
        places[group.state] += len(group.findings)
    states = [state for state in State if state is not State.CLEAN]
    return tuple(StateCount(state=s, mistakes=mistakes[s], places=places[s]) for s in states)


def verdict(report: AuditReport, groups: Sequence[Mistake]) -> Conclusion:
    """The conclusion of an audit; clean means that there are files, and all were looked at."""
    found = [group for group in groups if group.state not in HARMLESS]
    state = min((group.state for group in found), key=lambda s: s.rank, default=State.CLEAN)
    if not report.files:
        worst = state if found else State.UNCHECKED
        return Conclusion(state=worst, headline="no file was looked at", scope="nothing checked")
    files, whose = counted(report.files, "file"), "its" if report.files == 1 else "their"
    return Conclusion(
        state=state,
        headline=_headline(state, found),
        scope=f"{files} looked at, {report.columns_checked:,} of {whose} columns checked",
    )


def _headline(state: State, found: Sequence[Mistake]) -> str:
    if state is State.CLEAN:
        return "clean"
    if state is State.UNCHECKED:
        return "nothing wrong found, but not all could be checked"
    if any(group.paths and group.state is not State.UNCHECKED for group in found):
        return "the files do not obey the policy"
    return "the policy, or what writers are told, is not in order"
