"""AuditReport -> SARIF 2.1.0, as code-scanning tools take it.

There is one rule for each id, and one result for each mistake in a file, for all its row groups.
The tools show 5,000 results of a run.  If there are more, results are made by folder, or for the
dataset, with the first files as locations.  Ignored findings are suppressed results.
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from secure_bloom.auditing.findings import AuditReport, Finding, Severity
from secure_bloom.auditing.formats.mistakes import is_unchecked
from secure_bloom.auditing.formats.path_rows import common_folder
from secure_bloom.text import counted, legible

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_MOST_RESULTS = 5_000
_MOST_LOCATIONS = 100
_MOST_LOCATIONS_OF_ALL = 20_000
_MOST_ROW_GROUPS = 20
_LONGEST = 2_000
#: Section 3.27.10.
_LEVELS = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "note",
}
#: What code scanning sorts by: 0 to 10, like a CVSS score.
_SCORES = {
    Severity.CRITICAL: "9.5",
    Severity.HIGH: "8.0",
    Severity.MEDIUM: "5.5",
    Severity.LOW: "2.0",
}
_SEVERITIES = list(Severity)
#: Section 3.11.5; and 3.11.6, where ``[text](target)`` is a link.
_PLACEHOLDER = re.compile(r"\{(\d+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """Findings that make one result, about ``place``: a file, a folder or the dataset."""

    place: str
    suppressed: bool
    findings: Sequence[Finding]

    @property
    def order(self) -> tuple[bool, int, str, str, str, str]:
        """Worst first, so that the least severe are left out."""
        first = self.findings[0]
        rank = _SEVERITIES.index(first.severity)
        return self.suppressed, rank, first.id, self.place, first.column or "", first.what


_Place = Callable[[Finding], str]


def render_sarif(report: AuditReport, *, meanings: Mapping[str, str] | None = None) -> str:
    """The report as one SARIF log with one run; ``meanings`` say what each id means."""
    results = _fitting_results(report)
    rules = _rules((*report.findings, *report.ignored), meanings or {})
    indexes = {rule["id"]: index for index, rule in enumerate(rules)}
    left_out = len(results) - _MOST_RESULTS
    most = max(min(_MOST_LOCATIONS, _MOST_LOCATIONS_OF_ALL // max(len(results), 1)), 1)
    run = {
        "tool": {"driver": _driver(rules)},
        "invocations": [_invocation(max(left_out, 0))],
        "results": [_result_json(result, indexes, most) for result in results[:_MOST_RESULTS]],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _driver(rules: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": "secure-bloom", "version": version("secure-bloom"), "rules": rules}


def _invocation(left_out: int) -> dict[str, Any]:
    """That the audit ran, and how many results are left out: never in silence."""
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if left_out:
        text = f"{counted(left_out, 'result')} left out, the least severe; --format json has all"
        note = {"level": "warning", "message": {"text": text}}
        invocation["toolExecutionNotifications"] = [note]
    return invocation


def _rules(findings: Iterable[Finding], meanings: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rules of the ids that occur, by id; severity and fix are those of the worst finding."""
    worst: dict[str, Finding] = {}
    for finding in findings:
        known = worst.setdefault(finding.id, finding)
        if _SEVERITIES.index(finding.severity) < _SEVERITIES.index(known.severity):
            worst[finding.id] = finding
    return [_rule(worst[rule_id], meanings.get(rule_id)) for rule_id in sorted(worst)]


def _rule(finding: Finding, meaning: str | None) -> dict[str, Any]:
    title = finding.id.replace("-", " ").capitalize()
    return {
        "id": finding.id,
        "name": title.title().replace(" ", ""),
        "shortDescription": {"text": title},
        "fullDescription": {"text": _message_text(meaning or title)},
        "help": {"text": _message_text(finding.fix)},
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
        "properties": {
            "security-severity": _SCORES[finding.severity],
            "tags": ["security", *(["unchecked"] if is_unchecked(finding) else [])],
        },
    }


def _fitting_results(report: AuditReport) -> list[_Result]:
    """The results by file; by folder, or for the dataset, where those are too many."""
    dataset = common_folder(report.paths) or "."
    places: tuple[_Place, ...] = (
        lambda finding: finding.path or dataset,
        lambda finding: (finding.path or dataset).rpartition("/")[0] + "/",
        lambda _: dataset,
    )
    results: list[_Result] = []
    for place in places:
        results = sorted(_results(report, place), key=lambda result: result.order)
        if len(results) <= _MOST_RESULTS:
            break
    return results


def _results(report: AuditReport, place: _Place) -> list[_Result]:
    grouped: dict[tuple[object, ...], list[Finding]] = {}
    for suppressed, findings in ((False, report.findings), (True, report.ignored)):
        for finding in findings:
            key = (suppressed, finding.id, finding.column, finding.what, place(finding))
            grouped.setdefault(key, []).append(finding)
    return [
        _Result(place=place(members[0]), suppressed=bool(key[0]), findings=members)
        for key, members in grouped.items()
    ]


def _result_json(result: _Result, indexes: dict[str, int], most: int) -> dict[str, Any]:
    """A result with at most ``most`` locations; its message counts all files."""
    first = result.findings[0]
    document: dict[str, Any] = {
        "ruleId": first.id,
        "ruleIndex": indexes[first.id],
        "level": _LEVELS[first.severity],
        "message": {"text": _message_text(_message(result))},
        "locations": _locations(result, most),
        "partialFingerprints": {"primaryLocationLineHash": _fingerprint(result)},
    }
    if result.suppressed:
        document["suppressions"] = [{"kind": "external", "justification": "--ignore"}]
    return document


def _message(result: _Result) -> str:
    """Where in the file, what is wrong, and what to do."""
    first = result.findings[0]
    files = len({finding.path for finding in result.findings})
    row_groups = [f.row_group for f in result.findings if f.row_group is not None]
    where = [f"column {first.column}"] if first.column is not None else []
    if files > 1:
        where.append(f"{files:,} files")
    elif row_groups:
        where.append(_row_groups_text(row_groups))
    place = f"{', '.join(where)}: " if where else ""
    return f"{place}{first.what}. Fix: {first.fix}"


def _row_groups_text(row_groups: Sequence[int]) -> str:
    named = ", ".join(map(str, row_groups[:_MOST_ROW_GROUPS]))
    more = len(row_groups) - _MOST_ROW_GROUPS
    return f"row group {named}" + (f" and {more:,} more" if more > 0 else "")


def _message_text(text: str) -> str:
    """Text in which nothing is a link or a placeholder."""
    plain = legible(text, _LONGEST).replace("](", "] (")
    return _PLACEHOLDER.sub(r"{{\1}}", plain)


def _locations(result: _Result, most: int) -> list[dict[str, Any]]:
    column = result.findings[0].column
    paths = dict.fromkeys(finding.path or result.place for finding in result.findings)
    return [_location(path, column) for path in list(paths)[:most]]


def _location(path: str, column: str | None) -> dict[str, Any]:
    location: dict[str, Any] = {
        # A Parquet file has no lines, but code scanning refuses a location without one.
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(path)},
            "region": {"startLine": 1},
        }
    }
    if column is not None:
        location["logicalLocations"] = [{"fullyQualifiedName": legible(column), "kind": "member"}]
    return location


def _uri(path: str) -> str:
    """A path as a URI reference (RFC 3986); a key of an object store is taken literally."""
    scheme, separator, rest = path.partition("://")
    if separator:
        return f"{scheme}://{quote(rest, safe='/:@?&=', errors='surrogatepass')}"
    return ("file://" if path.startswith("/") else "") + quote(path, errors="surrogatepass")


def _fingerprint(result: _Result) -> str:
    """Equal for the same mistake at the same place, whatever else a later run finds.

    Row groups do not count, so a file that is written anew with more of them keeps its alert.
    The name is the one that code scanning reads.
    """
    first = result.findings[0]
    parts = (first.id, first.column or "", first.what, result.place)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
