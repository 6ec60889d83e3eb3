"""Print the reports of the verbs of ``secure-bloom paimon``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.bloom.probe import Verdict
from secure_bloom.cli.terminal_tables import percent, print_table, short_names
from secure_bloom.cli.verbosity import tell, tell_note
from secure_bloom.paimon.skipping_rules import Rules
from secure_bloom.reports.text import counted, human_bytes

if TYPE_CHECKING:
    from secure_bloom.paimon.build_report import BuildReport
    from secure_bloom.paimon.index_description import PaimonInspection, ShowReport
    from secure_bloom.paimon.index_probe import PaimonProbe

_INDEX_HEADERS = (
    "column",
    "index",
    "bytes>",
    "hashes>",
    "bits set>",
    "fpp>",
    "values about>",
    "note",
)
_BUILT_HEADERS = ("file", "column", "values>", "items>", "bytes>", "fpp>")
#: The meaning of a verdict, by the rules that it is given by.
_MEANINGS = {
    Rules.SAFE: {
        Verdict.ABSENT: "can be skipped",
        Verdict.MAYBE: "may have such rows",
        Verdict.NO_FILTER: "without an index to ask",
    },
    Rules.PAIMON_0_9: {
        Verdict.ABSENT: "skipped by Paimon 0.9",
        Verdict.MAYBE: "read by Paimon 0.9",
        Verdict.NO_FILTER: "without an index to ask",
    },
}


def print_indexes(report: ShowReport, *, verbose: bool) -> None:
    """A table for each index, then the data files without one."""
    for index in report.indexes:
        if index.error is None:
            tell(f"{index.path}: {human_bytes(index.bytes)}")
            _print_columns(index)
    if report.without:
        tell(f"{counted(len(report.without), 'data file')} without an index")
    for path in report.without if verbose else ():
        tell(f"  {path}")


def _print_columns(index: PaimonInspection) -> None:
    rows = [
        (
            each.column,
            each.type,
            each.bytes,
            each.hash_functions,
            percent(each.fill),
            percent(each.fpp),
            each.values,
            each.note,
        )
        for each in index.indexes
    ]
    if rows:
        print_table(_INDEX_HEADERS, rows)


def print_built(report: BuildReport, *, verbose: bool) -> None:
    """One row a file and column, then notes."""
    names = short_names([file.path for file in report.files])
    rows = [
        (names[file.path], c.column, c.values, c.items, c.bytes, percent(c.fpp))
        for file in report.files
        for c in file.columns
    ]
    if rows:
        print_table(_BUILT_HEADERS, rows)
    for file in report.files if verbose else ():
        for kept in file.kept:
            tell(f"kept: {file.path}, {kept}")
    for note in report.notes:
        tell_note(note)


def print_verdicts(report: PaimonProbe, *, verbose: bool) -> None:
    """Print the number of files with each verdict, paths of those that may have rows, and notes."""
    for verdict, meaning in _MEANINGS[report.rules].items():
        found = [file.path for file in report.files if file.verdict is verdict]
        tell(f"{len(found):,} of {counted(len(report.files), 'file')} {meaning}")
        for path in found if verbose or verdict is Verdict.MAYBE else ():
            tell(f"  {path}")
    for file in report.files:
        if file.note is not None:
            tell_note(f"{file.path}: {file.note}")
    for note in report.notes:
        tell_note(note)
