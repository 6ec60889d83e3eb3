"""Findings of an audit, the rules that they come from by a stable id, and the report of them."""

from __future__ import annotations

import enum
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from secure_bloom.auditing.scope import AuditScope
from secure_bloom.reports.base import Report
from secure_bloom.reports.text import counted, shell_word
from secure_bloom.storage import is_object_uri

#: A finding's text is cut here: a hostile file may call its key by a name of 60,000 letters.
_LONGEST = 500


class Severity(enum.StrEnum):
    """How bad a finding is, worst first. A note is not bad: writers cannot do better."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NOTE = "note"


#: In the fix of a rule: the command that removes the files of the finding.
REMOVE = "`rm PATH`"
#: The most files that one command removes: a line of more is not read.
_MOST_REMOVED = 10


def fix_of(fix: str, paths: Sequence[str]) -> str:
    """Return a fix with the paths of its files in the place of ``PATH``, quoted for a shell."""
    if REMOVE not in fix or not paths:
        return fix
    # A name that begins with a minus would be an option.
    named = [f"./{path}" if path.startswith("-") else path for path in paths[:_MOST_REMOVED]]
    rest = len(paths) - len(named)
    more = f" and {counted(rest, 'more file')}, which --json lists" if rest else ""
    # No shell removes an object, or finds a file by a name in which a value is masked.
    is_command = not is_object_uri(paths[0]) and not any("***" in path for path in named)
    # Two findings may name one file, and the second command would not find it.
    command = f"`rm -f {' '.join(map(shell_word, named))}`"
    return fix.replace(REMOVE, (command if is_command else "delete " + ", ".join(named)) + more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, or could not be checked, at one place.

    ``what`` does not name the place, so that the same mistake in many files has the same text.
    ``message`` is the line that also names file, row group and column.  ``fix`` says what to do,
    its commands in backticks.
    ``causes`` are the errors that led to it, such as those of a KMS.  ``table`` is the table of the
    policy that a finding without a path is about.
    """

    id: str
    severity: Severity
    what: str
    fix: str
    path: str | None = None
    row_group: int | None = None
    column: str | None = None
    causes: tuple[str, ...] = ()
    table: str | None = None

    @property
    def message(self) -> str:
        """One line that says where and what."""
        return ": ".join([*self._place(), self.what])

    def _place(self) -> Iterator[str]:
        if self.path is not None:
            yield self.path
        if self.row_group is not None:
            yield f"row group {self.row_group}"
        if self.column is not None:
            yield f"column {self.column}"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as it is in ``secure-bloom audit --json``."""
        return {
            "id": self.id,
            "severity": str(self.severity),
            "path": self.path,
            "row_group": self.row_group,
            "column": self.column,
            "table": self.table,
            "message": self.message,
            "fix": fix_of(self.fix, [] if self.path is None else [self.path]),
            "causes": list(self.causes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of finding. Its four texts are those on the page about audits."""

    id: str
    severity: Severity
    meaning: str
    fix: str

    def finding(
        self,
        what: str,
        *,
        path: str | None = None,
        row_group: int | None = None,
        column: str | None = None,
    ) -> Finding:
        """Return a finding of this kind. ``what`` does not name the place."""
        return Finding(
            id=self.id,
            severity=self.severity,
            what=what if len(what) <= _LONGEST else f"{what[:_LONGEST]}…",
            fix=self.fix,
            path=path,
            row_group=row_group,
            column=column,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedTable:
    """One table of an audit: the number of its files, and of its findings by :data:`KINDS`."""

    table: str
    files: int
    findings: Mapping[str, int]

    @property
    def worst(self) -> str | None:
        """The kind of the worst finding, or None for a table without one."""
        return next((it for it in KINDS if self.findings.get(it)), None)

    def goodness(self) -> tuple[tuple[int, ...], str]:
        """Return a sort key: tables with many bad findings first, then by name."""
        return tuple(-self.findings.get(it, 0) for it in KINDS), self.table


#: The kinds of findings that a table is judged by, worst first.
KINDS = ("critical", "high", "medium", "low", "unchecked")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AuditReport(Report):
    """All findings of an audit, and what was checked.

    ``paths`` are the checked files and ``columns`` the policy's columns, both in the order of a
    report.  ``columns_checked`` counts the columns of files that were checked completely.
    ``file_columns`` has the columns of each file that could be read, or is None if they are not
    known. ``bytes`` is the size of the files that could be read, and ``filters`` the number of
    their Bloom filters. ``left_out`` are files that a sample left out. ``table_of`` has the table
    of each file, and of each other path with a finding.
    ``ignored`` are findings that do not count for this caller, ``notes`` say what the policy itself
    leaves open: both are shown, but do not make the audit fail.  ``scope`` is what the audit was
    asked to check.  ``leak_search`` has the counts of words that were searched for, with
    ``check_values``.
    """

    findings: tuple[Finding, ...] = ()
    ignored: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    paths: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    file_columns: Mapping[str, tuple[str, ...]] | None = None
    left_out: tuple[str, ...] = ()
    table_of: Mapping[str, str] = field(default_factory=dict)
    columns_checked: int = 0
    bytes: int = 0
    filters: int = 0
    scope: AuditScope = field(default_factory=AuditScope)
    leak_search: Mapping[str, Any] | None = None

    ROWS: ClassVar = ("findings",)

    @property
    def files(self) -> int:
        """The number of files that were checked."""
        return len(self.paths)

    @property
    def verdict(self) -> str:
        """``clean``, ``findings``, or ``unchecked`` if nothing is wrong but not all was checked."""
        if any(not finding.id.startswith("unchecked-") for finding in self.findings):
            return "findings"
        return "unchecked" if self.findings or not self.paths else "clean"

    @property
    def tables(self) -> tuple[AuditedTable, ...]:
        """The findings that count, by the table of their place, the worst table first."""
        files = Counter(self.table_of[path] for path in self.paths if path in self.table_of)
        found: dict[str, Counter[str]] = {name: Counter() for name in files}
        for finding in self.findings:
            name = finding.table or self.table_of.get(finding.path or "")
            if name is not None:
                is_unchecked = finding.id.startswith("unchecked-")
                kind = "unchecked" if is_unchecked else str(finding.severity)
                found.setdefault(name, Counter())[kind] += 1
        tables = [
            AuditedTable(table=name, files=files[name], findings=counts)
            for name, counts in found.items()
        ]
        return tuple(sorted(tables, key=AuditedTable.goodness))

    def _counts(self) -> dict[str, int]:
        severities = Counter(str(finding.severity) for finding in self.findings)
        counts = {str(each): severities[str(each)] for each in Severity}
        return {**counts, "notes": len(self.notes), "ignored": len(self.ignored)}

    def _document(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "counts": self._counts(),
            "findings": [finding.to_dict() for finding in self.findings],
            "ignored": [finding.to_dict() for finding in self.ignored],
            "notes": [finding.to_dict() for finding in self.notes],
            "files": self.files,
            "columns_checked": self.columns_checked,
            "tables": [
                {
                    "table": it.table,
                    "files": it.files,
                    "findings": sum(it.findings.values()),
                    "worst": it.worst,
                }
                for it in self.tables
            ],
            "scope": self.scope.to_dict(),
            "leak_search": self.leak_search,
        }

    def _summary(self) -> str:
        severities = Counter(finding.severity for finding in self.findings)
        counts = ", ".join(f"{severities[each]} {each}" for each in Severity if severities[each])
        findings = counted(len(self.findings), "finding") + (f" ({counts})" if counts else "")
        return f"{findings} in {counted(self.files, 'file')}"


def audit_numbers(report: AuditReport, seconds: float) -> dict[str, tuple[float, str]]:
    """Return the numbers of an audit, for ``output_files.write_metrics``."""
    counts = report.to_dict()["counts"]
    unread = len(report.paths) - len(report.file_columns or ())
    return {
        "files": (report.files, "Files that were checked."),
        "files_unread": (unread, "Files of these that could not be read."),
        "failures": (unread, "Files that could not be read, as files_unread."),
        "files_left_out": (len(report.left_out), "Files that the sample left out."),
        "bytes": (report.bytes, "Bytes of the files that could be read."),
        "filters": (report.filters, "Bloom filters of these files."),
        "columns_checked": (report.columns_checked, "Columns of files that were checked whole."),
        **{
            f'findings{{severity="{severity}"}}': (counts[severity], "Findings that count.")
            for severity in Severity
        },
        "findings_ignored": (counts["ignored"], "Findings that do not count."),
        "seconds": (seconds, "Duration of the audit."),
        "finished_timestamp_seconds": (time.time(), "When the audit ended, in Unix time."),
    }
