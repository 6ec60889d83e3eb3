"""What ``secure-bloom probe`` prints."""

from __future__ import annotations

from collections import Counter

from secure_bloom.bloom.probe import ProbeReport, Verdict
from secure_bloom.cli.tables import print_table
from secure_bloom.cli.terminal import tell
from secure_bloom.text import counted


def print_probe_report(report: ProbeReport, *, verbose: bool) -> None:
    """For each value how many row groups say what, and where it may be."""
    counts: dict[str, Counter[Verdict]] = {}
    places: dict[str, list[str]] = {}
    for file in report.files:
        for group in file.row_groups:
            for value, verdict in group.verdicts.items():
                counts.setdefault(str(value), Counter())[verdict] += 1
                if verdict is Verdict.MAYBE:
                    place = f"{file.path}, row group {group.row_group}"
                    places.setdefault(str(value), []).append(place)
    headers = ("value", *(f"{verdict.replace('_', ' ')}>" for verdict in Verdict))
    rows = ((value, *(count[verdict] for verdict in Verdict)) for value, count in counts.items())
    files = counted(len(report.files), "file")
    title = f"row groups of {files}, by what the filter of {report.column} says"
    # Where every file failed there is nothing to count: the errors tell.
    if counts:
        print_table(headers, rows, title=title)
    for value, found in places.items():
        _print_places(value, found, limit=None if verbose else 5)


def _print_places(value: str, found: list[str], *, limit: int | None) -> None:
    tell(f"{value} may be in")
    for place in found[:limit]:
        tell(f"  {place}")
    if limit is not None and len(found) > limit:
        tell(f"  and {len(found) - limit} more row groups: -v names them all")
