"""Print the reports of re-encryption and rotation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from secure_bloom.cli.print_add import print_commits
from secure_bloom.cli.terminal_tables import SHOWN_FILES, print_table, short_names
from secure_bloom.cli.verbosity import tell, tell_note
from secure_bloom.reports.text import counted, human_bytes, legible

if TYPE_CHECKING:
    from secure_bloom.rekeying import KeyUseReport, RekeyReport
    from secure_bloom.rekeying.rekey_report import RekeyedFile

#: A dry run says this in the words of a run: the file stays.
_SAME = ("unchanged", "failed")


def print_rekey_report(report: RekeyReport, *, verbose: bool) -> None:
    """Each file with its keys before and now, then how many of each kind."""
    would = "would be " if report.dry_run else ""
    names = short_names([file.path for file in report.files])
    if verbose or len(report.files) <= SHOWN_FILES:
        print_table(
            ["file", "status", "footer", "master keys before", "now", "size"],
            [
                [
                    names[file.path],
                    f"{would}{file.status}" if file.changes else file.status,
                    file.footer or "",
                    _keys(file, file.master_keys_before),
                    _keys(file, file.master_keys),
                    "" if file.bytes_after is None else human_bytes(file.bytes_after),
                ]
                for file in report.files
            ],
        )
    counts = Counter(file.status for file in report.files)
    told = ", ".join(
        f"{count:,} {would if status not in _SAME else ''}{status}"
        for status, count in counts.items()
    )
    tell(f"{counted(len(report.files), 'file')}: {told}")
    print_commits(report.commits, dry_run=report.dry_run)
    for note in report.notes:
        tell_note(note)


def _keys(file: RekeyedFile, names: tuple[str, ...]) -> str:
    return "" if file.status == "failed" else ", ".join(names) or "none"


#: What the policy says of a key, for people.
_IN_POLICY: Mapping[str | None, str] = {
    None: "",
    "used": "",
    "older": "older",
    "retired": "retired",
    "missing": "does not name it",
}


def print_used_keys(report: KeyUseReport, *, verbose: bool) -> None:
    """Print the number of files that each key opens.

    The files too, with ``verbose`` and where the report is about some keys only.
    """
    print_table(
        ["master key", "version", "files>", "policy"],
        [
            [name, version or "", f"{count:,}", _IN_POLICY[report.standings[name]]]
            for (name, version), count in report.files_by_key.items()
        ],
    )
    hidden = len(report.incomplete)
    if hidden:
        files = counted(hidden, "file")
        tell_note(f"{files} whose footer would not open: keys of columns in them are not known")
    for file in report.files if verbose or report.only else ():
        for key in file.keys:
            opened = [*(["the footer"] if key.opens_footer else []), *key.columns]
            tell(f"{legible(file.path)}: {key.master_key}: {', '.join(opened)}")
