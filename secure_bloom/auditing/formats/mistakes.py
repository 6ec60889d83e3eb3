"""Group findings into mistakes, worst first: the same finding in 10,000 files is one mistake.

Their worst state is the conclusion of the audit.  Paths are shown in rows, named relative to their
common folder, at most as many as fit on a page.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

from secure_bloom.auditing.findings import AuditReport, Finding, Severity, fix_of
from secure_bloom.auditing.rules.leak_rules import VALUES_NOT_SEARCHED
from secure_bloom.reports.text import counted, legible

#: An id with more wordings than this is one mistake: hostile files can word findings endlessly.
_MOST_WORDINGS = 12


class State(enum.StrEnum):
    """The state of one place, worst first. A place that could not be checked is never clean.

    A place with a note counts as clean.
    """

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    UNCHECKED = "unchecked"
    NOTE = "note"
    IGNORED = "ignored"
    CLEAN = "clean"

    @property
    def rank(self) -> int:
        """The rank of the state: 0 for the worst."""
        return _RANKS[self]


#: States that leave an audit clean.
HARMLESS = frozenset({State.NOTE, State.IGNORED, State.CLEAN})
_RANKS = {state: rank for rank, state in enumerate(State)}
_Key = tuple[str, Severity, str | None, str | None]


def is_unchecked(finding: Finding) -> bool:
    """Return whether the finding says that something could not be checked, not that it is wrong."""
    return finding.id.startswith("unchecked")


def state_of(finding: Finding) -> State:
    """Return the state that a finding gives to its place. The finding is not an ignored one."""
    return State.UNCHECKED if is_unchecked(finding) else State(finding.severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One mistake and all its places. ``row_groups`` counts the row groups named, over all files.

    ``paths`` and ``columns`` are in the order of the findings, each once.
    """

    id: str
    severity: Severity
    state: State
    what: str
    fix: str
    paths: tuple[str, ...]
    columns: tuple[str, ...]
    row_groups: int
    findings: tuple[Finding, ...]


def group_report(report: AuditReport) -> tuple[Mistake, ...]:
    """Return all mistakes in reading order: found, unchecked, notes, ignored.

    Among equally bad mistakes the most widespread come first, and mistakes of one id stay together.
    """
    groups = [
        *_groups(report.findings),
        *_groups(report.notes, State.NOTE),
        *_groups(report.ignored, State.IGNORED),
    ]
    widest: Counter[tuple[State, str]] = Counter()
    for group in groups:
        kind = group.state, group.id
        widest[kind] = max(widest[kind], len(group.paths))
    return tuple(
        sorted(
            groups,
            key=lambda g: (g.state.rank, -widest[g.state, g.id], g.id, -len(g.paths)),
        )
    )


def _groups(findings: Iterable[Finding], state: State | None = None) -> Iterable[Mistake]:
    """Yield a mistake for each group of findings with the same key.

    ``state`` overrides the findings' own states.
    """
    findings = tuple(findings)
    wordings = Counter(finding.id for finding in {_key(f): f for f in findings}.values())
    by_key: dict[_Key, list[Finding]] = {}
    for finding in findings:
        folded = wordings[finding.id] > _MOST_WORDINGS
        by_key.setdefault(_key(finding, folded=folded), []).append(finding)
    return [_group(key, members, state) for key, members in by_key.items()]


def _key(finding: Finding, *, folded: bool = False) -> _Key:
    if folded:
        return finding.id, finding.severity, None, None
    return finding.id, finding.severity, finding.what, finding.fix


def _group(key: _Key, members: list[Finding], state: State | None) -> Mistake:
    first, wording = members[0], key[2]
    others = len({member.what for member in members}) - 1
    places = {(m.path, m.row_group) for m in members if m.row_group is not None}
    paths = tuple(dict.fromkeys(m.path for m in members if m.path is not None))
    return Mistake(
        id=first.id,
        severity=first.severity,
        state=state or state_of(first),
        what=first.what if wording is not None else f"{first.what} (and {others:,} like it)",
        fix=fix_of(first.fix, paths),
        paths=paths,
        columns=tuple(dict.fromkeys(m.column for m in members if m.column is not None)),
        row_groups=len(places),
        findings=tuple(members),
    )


def parts_of_fix(fix: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a fix, and whether each is a command to copy: one in backticks."""
    for number, part in enumerate(fix.split("`")):
        if part.strip(" ,;"):
            yield part, number % 2 == 1


#: The most tables that the extent of a mistake names.
_MOST_TABLES = 5
_NOWHERE = "in the policy, or the dataset as a whole"


def extent(group: Mistake) -> str:
    """Return the extent of a mistake: its files and row groups."""
    if not group.paths:
        tables = list(dict.fromkeys(it.table for it in group.findings if it.table is not None))
        more = ", ..." if len(tables) > _MOST_TABLES else ""
        named = ", ".join(map(legible, tables[:_MOST_TABLES])) + more
        return f"in the table{'s' * (len(tables) > 1)} {named}" if tables else _NOWHERE
    files = counted(len(group.paths), "file")
    return f"{files}, {counted(group.row_groups, 'row group')}" if group.row_groups else files


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """``state`` is the worst state, ``headline`` its text, ``scope`` says what was checked."""

    state: State
    headline: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCount:
    """The number of mistakes in one state, and of their places."""

    state: State
    mistakes: int
    places: int


def tallies(groups: Iterable[Mistake]) -> tuple[StateCount, ...]:
    """Return the counts of every state but ``CLEAN``, worst first."""
    mistakes: Counter[State] = Counter()
    places: Counter[State] = Counter()
    for group in groups:
        mistakes[group.state] += 1
        places[group.state] += len(group.findings)
    states = [state for state in State if state is not State.CLEAN]
    return tuple(StateCount(state=s, mistakes=mistakes[s], places=places[s]) for s in states)


def verdict(report: AuditReport, groups: Sequence[Mistake]) -> Conclusion:
    """Return the conclusion of an audit.

    It is clean only if there are files, and all of them were checked.
    """
    found = [group for group in groups if group.state not in HARMLESS]
    state = min((group.state for group in found), key=lambda s: s.rank, default=State.CLEAN)
    if not report.files:
        worst = state if found else State.UNCHECKED
        return Conclusion(state=worst, headline="no file was looked at", scope="nothing checked")
    files, whose = counted(report.files, "file"), "its" if report.files == 1 else "their"
    return Conclusion(
        state=state,
        headline=_headline(state, found, groups, counts=bool(report.findings)),
        scope=f"{files} looked at, {report.columns_checked:,} of {whose} columns checked",
    )


def _headline(
    state: State, found: Sequence[Mistake], groups: Sequence[Mistake], *, counts: bool
) -> str:
    """Return one sentence. ``counts`` is true if something that was found counts as a finding."""
    if state is State.CLEAN and counts:
        return "nothing but notes, and --severity note counts them"
    if state is State.CLEAN:
        is_partial = any(group.id == VALUES_NOT_SEARCHED.id for group in groups)
        return "clean, but not all values were searched for" if is_partial else "clean"
    if state is State.UNCHECKED:
        return "nothing wrong found, but not all could be checked"
    if any(group.paths and group.state is not State.UNCHECKED for group in found):
        return "the files do not obey the policy"
    return "the policy, or the configuration of writers, has mistakes"


#: A path may have thousands of folders; rows name no more than these.
_DEEPEST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRow:
    """Files that are shown as one row with this ``label``.

    ``paths`` are in the order of the report.
    """

    label: str
    paths: tuple[str, ...]


def common_folder(paths: Sequence[str]) -> str:
    """Return the deepest folder that contains all paths, with its slash, or "" if there is none."""
    if not paths:
        return ""
    # The folders that the first and the last path in order share, all paths between share too.
    first, last = (path.split("/")[:-1] for path in (min(paths), max(paths)))
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    common = "".join(f"{name}/" for name, _ in same)
    return "" if common.endswith("://") or not common.strip("/") else common


def below_folder(path: str, folder: str) -> str:
    """Return a path without the folder that it is in. The folder itself keeps its name."""
    return path.removeprefix(folder) or path


def path_rows(paths: Sequence[str], folder: str, most: int) -> list[PathRow]:
    """Return at most ``most`` rows, named relative to ``folder``: files, else folders, else ranges.

    If there are too many folders, the level above is tried, as long as it has more than one folder.
    """
    names = [below_folder(path, folder) for path in paths]
    if len(paths) <= most:
        return [PathRow(label=n, paths=(p,)) for n, p in zip(names, paths, strict=True)]
    parts = [name.split("/")[:-1] for name in names]
    for depth in range(min(max(map(len, parts)), _DEEPEST), 0, -1):
        rows = _by_label(["/".join([*part[:depth], ""]) for part in parts], paths)
        if 1 < len(rows) <= most:
            return rows
    tops = _by_label([f"{part[0]}/" if part else "" for part in parts], paths)
    return _runs(tops if len(tops) > most else _by_label(names, paths), most)


def _by_label(labels: Sequence[str], paths: Sequence[str]) -> list[PathRow]:
    """Return one row for each label, sorted. The folder itself, which has no label, is ``./``."""
    pairs = sorted(zip(labels, paths, strict=True))
    grouped = groupby(pairs, key=lambda pair: pair[0])
    return [
        PathRow(label=label or "./", paths=tuple(path for _, path in group))
        for label, group in grouped
    ]


def _runs(rows: Sequence[PathRow], most: int) -> list[PathRow]:
    """Return the rows with neighbours joined, so that there are at most ``most``."""
    length = -(-len(rows) // most)
    return [_run(rows[start : start + length]) for start in range(0, len(rows), length)]


def _run(rows: Sequence[PathRow]) -> PathRow:
    first, last = rows[0].label, rows[-1].label
    return PathRow(
        label=first if len(rows) == 1 else f"{first} … {last}",
        paths=tuple(path for row in rows for path in row.paths),
    )
