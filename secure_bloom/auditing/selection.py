"""Select the findings that count: by their severity, and without ids and columns to ignore."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from secure_bloom.auditing.findings import Finding, Severity
from secure_bloom.auditing.rules import RULES
from secure_bloom.encryption.configuration import close_match
from secure_bloom.errors import PolicyError

_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Findings of at least ``severity`` count, except the ``ignored`` pairs of id and column.

    The column is None if the id is ignored for all columns.
    """

    severity: Severity = Severity.LOW
    ignored: frozenset[tuple[str, str | None]] = frozenset()

    def counts(self, finding: Finding) -> bool:
        """Return whether the finding makes an audit fail."""
        return _RANKS[finding.severity] <= _RANKS[self.severity] and not self._ignores(finding)

    def is_note(self, finding: Finding) -> bool:
        """Return whether the finding is reported as a note.

        It does not count, but nobody ignored it.
        """
        is_note = finding.severity is Severity.NOTE and self.severity is not Severity.NOTE
        return is_note and not self._ignores(finding)

    def _ignores(self, finding: Finding) -> bool:
        return not self.ignored.isdisjoint({(finding.id, None), (finding.id, finding.column)})


def selection(ignore: Iterable[str], severity: Severity | str | None) -> Selection:
    """Return the selection from ``ID`` and ``ID:COLUMN`` texts, and the name of a severity.

    Raises PolicyError for an unknown id or severity, which would otherwise silently change nothing.
    """
    return Selection(
        severity=Severity.LOW if severity is None else _severity(severity),
        ignored=frozenset(map(_ignored, ignore)),
    )


def _severity(name: str) -> Severity:
    if name not in _RANKS:
        raise PolicyError(f"{name!r} is no severity", hint=close_match(name, map(str, Severity)))
    return Severity(name)


def _ignored(text: str) -> tuple[str, str | None]:
    name, colon, column = text.partition(":")
    if name not in RULES:
        raise PolicyError(f"{name!r} is no id of a finding", hint=close_match(name, RULES))
    if colon and not column:
        raise PolicyError(f"{text!r} names no column", hint=f"for every column: {name}")
    return name, column or None
