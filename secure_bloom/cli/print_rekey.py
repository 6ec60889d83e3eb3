"""What re-encryption and rotation did, as a terminal shows it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from secure_bloom.cli.tables import human_bytes, print_table, short_names
from secure_bloom.text import counted

if TYPE_CHECKING:
    from secure_bloom.rekeying import RekeyReport

#: Files that are told of one by one without -v.
_SHOWN_FILES = 20


def print_rekey_report(report: RekeyReport, *, verbose: bool) -> None:
    """Each file with its keys before and now, then how many of each kind."""
    names = short_names([file.path for file in report.files])
    if verbose or len(report.files) <= _SHOWN_FILES:
        print_table(
            ["file", "status", "footer", "master keys before", "now", "size"],
            [
                [
                    names[file.path],
                    file.status,
                    file.footer or "",
                    ", ".join(file.master_keys_before) or "none",
                    ", ".join(file.master_keys) or "none",
                    "" if file.bytes_after is None else human_bytes(file.bytes_after),
                ]
                for file in report.files
            ],
        )
    counts = Counter(file.status for file in report.files)
    told = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    would = "would be: " if report.dry_run else ""
    click.echo(f"{counted(len(report.files), 'file')}: {would}{told}")
    for note in report.notes:
        click.echo(f"note: {note}")
