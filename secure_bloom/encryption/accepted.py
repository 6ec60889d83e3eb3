"""Findings of an audit that a policy accepts for a time, with the reason."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from secure_bloom.encryption.configuration import ConfigTable
from secure_bloom.errors import PolicyError


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedFinding:
    """An entry of ``[[audit.ignore]]``: the finding ``ID`` or ``ID:COLUMN``, why, and how long.

    ``until`` is the last day on which it is accepted; None is for ever.
    """

    finding: str
    reason: str
    until: datetime.date | None = None


def accepted_findings(policy: ConfigTable) -> tuple[AcceptedFinding, ...]:
    """The entries of a policy; PolicyError for one without a reason, or with a wrong word."""
    audit = policy.table("audit", "[audit]")
    if audit is None:
        return ()
    audit.allow({"ignore"})
    entries = audit.get("ignore", list) or []
    return tuple(_accepted(ConfigTable.of("[[audit.ignore]]", entry)) for entry in entries)


def current(accepted: Iterable[AcceptedFinding], today: datetime.date) -> list[str]:
    """The findings that are accepted today."""
    return [it.finding for it in accepted if it.until is None or today <= it.until]


def _accepted(table: ConfigTable) -> AcceptedFinding:
    table.allow({"finding", "reason", "until"})
    # Who accepts a finding must say why, because a later reader of the policy cannot ask.
    finding, reason = table.text("finding"), table.text("reason")
    if finding is None or reason is None:
        raise PolicyError(
            f"{table.name} lacks {'finding' if finding is None else 'reason'!r}",
            hint='write finding = "ID" or "ID:COLUMN", and reason = "why it is accepted"',
        )
    until = table.entries.get("until")
    # A datetime is a date too, to Python.
    if until is not None and type(until) is not datetime.date:
        raise PolicyError(
            f"'until' of {table.name} is no date", hint="write until = 2027-01-31, without quotes"
        )
    return AcceptedFinding(finding=finding, reason=reason, until=until)
