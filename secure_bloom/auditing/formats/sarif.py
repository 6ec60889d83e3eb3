"""Render an AuditReport as SARIF 2.1.0 for code-scanning tools.

There is one rule for each id, and one result for each mistake, with its files as locations: a
mistake in 10,000 files is one alert.  The tools show 5,000 results of a run and 100 locations of a
result. There are fewer mistakes than that, because an id has few wordings.  Ignored findings are
suppressed results, notes are informational ones.
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from secure_bloom.auditing.findings import AuditReport, Severity
from secure_bloom.auditing.formats.mistakes import (
    Mistake,
    State,
    common_folder,
    extent,
    group_report,
    is_unchecked,
)
from secure_bloom.auditing.scope import AuditScope
from secure_bloom.reports.text import legible, named_columns

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_MOST_LOCATIONS = 100
_MOST_ROW_GROUPS = 20
_LONGEST = 2_000
#: Section 3.27.10; a result that is no failure has the level "none".
_LEVELS = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "note",
    Severity.NOTE: "none",
}
#: Code scanning sorts by this number: 0 to 10, like a CVSS score.
_SCORES = {
    Severity.CRITICAL: "9.5",
    Severity.HIGH: "8.0",
    Severity.MEDIUM: "5.5",
    Severity.LOW: "2.0",
    Severity.NOTE: "0.0",
}
_SEVERITIES = list(Severity)
#: The page that explains each id under its name; ``pyproject.toml`` has the folder too.
PAGE = "https://github.com/secure-bloom/secure-bloom/tree/main/docs/findings.md"
#: Section 3.11.5; and 3.11.6, where ``[text](target)`` is a link.
_PLACEHOLDER = re.compile(r"\{(\d+)\}")


def render_sarif(report: AuditReport, *, meanings: Mapping[str, str] | None = None) -> str:
    """Return the report as one SARIF log with one run. ``meanings`` explain the ids."""
    mistakes = group_report(report)
    rules = _rules(mistakes, meanings or {})
    indexes = {rule["id"]: index for index, rule in enumerate(rules)}
    dataset = common_folder(report.paths) or "."
    driver = {"name": "secure-bloom", "version": version("secure-bloom"), "rules": rules}
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True}],
        "results": [_result(mistake, indexes, dataset, report.scope) for mistake in mistakes],
        "properties": report.scope.to_dict(),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _rules(mistakes: Iterable[Mistake], meanings: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the rules of the ids that occur, by id.

    Severity and fix come from the worst mistake.
    """
    worst: dict[str, Mistake] = {}
    for mistake in mistakes:
        known = worst.setdefault(mistake.id, mistake)
        if _SEVERITIES.index(mistake.severity) < _SEVERITIES.index(known.severity):
            worst[mistake.id] = mistake
    return [_rule(worst[name], meanings.get(name)) for name in sorted(worst)]


def _rule(mistake: Mistake, meaning: str | None) -> dict[str, Any]:
    title = mistake.id.replace("-", " ").capitalize()
    return {
        "id": mistake.id,
        "name": title.title().replace(" ", ""),
        "shortDescription": {"text": title},
        "fullDescription": {"text": _message_text(meaning or title)},
        "help": {"text": _message_text(mistake.fix)},
        "helpUri": f"{PAGE}#{quote(mistake.id)}",
        "defaultConfiguration": {"level": _LEVELS[mistake.severity]},
        "properties": {
            "security-severity": _SCORES[mistake.severity],
            "tags": ["security", *(["unchecked"] if is_unchecked(mistake.findings[0]) else [])],
        },
    }


def _result(
    mistake: Mistake, indexes: dict[str, int], dataset: str, scope: AuditScope
) -> dict[str, Any]:
    """Return a result with its first locations. Its message counts all files."""
    document: dict[str, Any] = {
        "ruleId": mistake.id,
        "ruleIndex": indexes[mistake.id],
        "level": _LEVELS[mistake.severity],
        "message": {"text": _message_text(_message(mistake))},
        "locations": list(_locations(mistake, dataset)),
        "partialFingerprints": {"primaryLocationLineHash": _fingerprint(mistake)},
    }
    if mistake.severity is Severity.NOTE:
        document["kind"] = "informational"
    if mistake.state is State.IGNORED:
        reason = scope.reason(mistake.id, mistake.columns) or "--ignore"
        document["suppressions"] = [{"kind": "external", "justification": reason}]
    return document


def _message(mistake: Mistake) -> str:
    """Return the message: the place, the mistake and the fix."""
    where = [named_columns(mistake.columns)] if mistake.columns else []
    has_table = any(it.table is not None for it in mistake.findings)
    if len(mistake.paths) > 1 or (not mistake.paths and has_table):
        where.append(extent(mistake))
    elif row_groups := [f.row_group for f in mistake.findings if f.row_group is not None]:
        where.append(_row_groups_text(sorted(set(row_groups))))
    place = f"{', '.join(where)}: " if where else ""
    return f"{place}{mistake.what}. Fix: {mistake.fix}"


def _row_groups_text(row_groups: list[int]) -> str:
    named = ", ".join(map(str, row_groups[:_MOST_ROW_GROUPS]))
    more = len(row_groups) - _MOST_ROW_GROUPS
    return f"row group {named}" + (f" and {more:,} more" if more > 0 else "")


def _message_text(text: str) -> str:
    """Return text in which nothing acts as a link or a placeholder."""
    plain = legible(text, _LONGEST).replace("](", "] (")
    return _PLACEHOLDER.sub(r"{{\1}}", plain)


def _locations(mistake: Mistake, dataset: str) -> Iterator[dict[str, Any]]:
    """Yield a location for each file, with the columns that have the mistake there."""
    columns: dict[str, dict[str, None]] = {}
    for finding in mistake.findings:
        path = finding.path or dataset
        if path not in columns and len(columns) == _MOST_LOCATIONS:
            continue
        columns.setdefault(path, {}).update({finding.column: None} if finding.column else {})
    for path, names in columns.items():
        yield _location(path, list(names)[:_MOST_LOCATIONS])


def _location(path: str, columns: list[str]) -> dict[str, Any]:
    location: dict[str, Any] = {
        # A Parquet file has no lines, but code scanning refuses a location without one.
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(path)},
            "region": {"startLine": 1},
        }
    }
    if columns:
        location["logicalLocations"] = [
            {"fullyQualifiedName": legible(column), "kind": "member"} for column in columns
        ]
    return location


def _uri(path: str) -> str:
    """Return a path as a URI reference (RFC 3986). A key of an object store is taken literally."""
    scheme, separator, rest = path.partition("://")
    if separator:
        return f"{scheme}://{quote(rest, safe='/:@?&=', errors='surrogatepass')}"
    return ("file://" if path.startswith("/") else "") + quote(path, errors="surrogatepass")


def _fingerprint(mistake: Mistake) -> str:
    """Return a text that is equal for the same mistake, whatever else a later run finds.

    Files and columns are not part of it, so an alert stays the same while files are repaired or
    added. The name is the one that code scanning reads.
    """
    parts = (mistake.id, mistake.what, *(["ignored"] if mistake.state is State.IGNORED else []))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
