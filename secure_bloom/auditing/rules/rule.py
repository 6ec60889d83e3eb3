"""A rule: one kind of finding, with its id, its severity and its texts."""

from __future__ import annotations

from dataclasses import dataclass

from secure_bloom.auditing.findings import Finding, Severity

#: A finding's text is cut here: a hostile file may call its key by a name of 60,000 letters.
_LONGEST = 500


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
