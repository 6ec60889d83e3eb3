"""``secure-bloom add``: filters for Parquet files that are already written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from secure_bloom.cli.arguments import (
    load_keys,
    load_policy,
    parse_columns,
    policy_option,
    with_common_options,
    with_jobs_option,
    with_table_options,
    with_unprotected_option,
)
from secure_bloom.cli.exit_codes import print_and_exit_code
from secure_bloom.cli.progress_bar import progress_bar

if TYPE_CHECKING:
    from secure_bloom.adding.report import AddReport


@click.command("add")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@policy_option("Policy file (TOML): which columns get filters, under which keys.")
@click.option(
    "-c",
    "--column",
    "column_texts",
    multiple=True,
    metavar="NAME[:fpp=F][:max_bytes=N]",
    help="A column that gets filters, instead of the policy's; 'customer.*' means all of a "
    "structure. May be repeated.",
)
@click.option(
    "-o", "--output", metavar="DIR", help="Write new files below DIR, leave the old ones."
)
@click.option("--in-place", is_flag=True, help="Append to the files; costs no copy of the data.")
@click.option("--replace-filters", is_flag=True, help="Build filters anew where there are some.")
@with_table_options
@click.option(
    "--branch", metavar="NAME", help="Of an Iceberg table: the branch that gets the snapshot."
)
@click.option(
    "-n", "--dry-run", is_flag=True, help="Work everything out, write nothing, say what gains."
)
@with_jobs_option
@with_unprotected_option
@with_common_options
def add_command(
    paths: tuple[str, ...],
    policy_path: Path | None,
    column_texts: tuple[str, ...],
    dry_run: bool,
    allow_unprotected: bool,
    keyring: Path | None,
    as_json: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Add Bloom filters to Parquet files; no data page is touched.

    PATH is a file, a folder or a glob.  Files are replaced atomically (or appended to, with
    --in-place); a file that fails does not stop the others.  A Delta table, given alone, gets new
    files beside the old ones, and a commit.

    \b
    secure-bloom add out/ --policy keys/policy.toml
    secure-bloom add out/ --column email:fpp=0.01 --keyring keys/dev-keyring.json
    secure-bloom add out/ --column id --dry-run --json
    secure-bloom add lake/events --column id --since 41 --where "day = '2026-11-20'"

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.api.add import add_bloom_filters
    from secure_bloom.cli.print_add import print_add_report

    access: dict[str, Any] = {
        "policy": load_policy(policy_path),
        "keys": load_keys(keyring),
        "allow_unprotected": allow_unprotected,
    }
    with progress_bar("adding filters", quiet=as_json) as progress:
        report = add_bloom_filters(
            paths,
            columns=parse_columns(column_texts),
            dry_run=dry_run,
            progress=progress,
            **access,
            **options,
        )
    if dry_run and not report.failed and not report.commits:
        report = _advised(report, paths, **access)
    return print_and_exit_code(report, print_add_report, as_json=as_json, verbose=verbose)


def _advised(report: AddReport, paths: tuple[str, ...], **access: Any) -> AddReport:
    """Return the report of a dry run, with notes on what the filters would gain."""
    # Imported here: it takes the reader too.
    from secure_bloom.advising.advisor import advice_notes

    notes = advice_notes(paths, _new_filters(report), **access)
    return replace(report, notes=(*report.notes, *notes))


def _new_filters(report: AddReport) -> dict[str, float]:
    """Return the columns that are to get filters, and their false-positive probability."""
    return {
        filter_.column: filter_.fpp_requested
        for file in report.files
        for filter_ in file.filters
        if filter_.action == "added" and filter_.fpp_requested is not None
    }
