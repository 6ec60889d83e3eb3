"""The verbs: each imports what it needs when it runs, so that a probe starts fast."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from secure_bloom.cli.arguments import (
    load_keys,
    load_policy,
    parse_columns,
    with_common_options,
    with_policy_options,
    with_unprotected_option,
)
from secure_bloom.cli.verbs import Verbs

if TYPE_CHECKING:
    from secure_bloom.bloom.probe import ProbeReport

EXIT_MAYBE, EXIT_ABSENT, EXIT_ERROR, EXIT_NO_FILTER = 0, 1, 2, 3
EXIT_WRONG_FILTER = 1


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="secure-bloom")
def cli() -> None:
    """Bloom filters for Parquet files that are already written, encrypted like their columns.

    \b
    secure-bloom add out/ --policy keys/policy.toml       add filters, data untouched
    secure-bloom probe out/ email a@example.com --keyring keys/dev-keyring.json
    secure-bloom read out/ --where "email = 'a@x'"        rows, skipping what filters exclude
    secure-bloom inspect out/                             footers, keys, filters
    secure-bloom audit out/ --policy keys/policy.toml     does every file obey the policy
    secure-bloom demo                                     all of it on Spark, in a minute

    Exit code 2 means an error; what went wrong and what to do about it is on stderr.  141: whoever
    read the output (head, a pager) went away.
    """


@cli.command("add")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--policy",
    "policy_path",
    type=click.Path(path_type=Path),
    help="Policy file (TOML): which columns get filters, under which keys.",
)
@click.option(
    "--column",
    "column_texts",
    multiple=True,
    metavar="NAME[:fpp=F][:max_bytes=N]",
    help="A column that gets filters, instead of the policy's; may be repeated.",
)
@click.option("--output", metavar="DIR", help="Write the new files below DIR, leave the old ones.")
@click.option("--in-place", is_flag=True, help="Append to the files; costs no copy of the data.")
@click.option("--replace-filters", is_flag=True, help="Build filters anew where there are some.")
@click.option("--dry-run", is_flag=True, help="Work everything out, write nothing.")
@with_unprotected_option
@with_common_options
def add_command(
    paths: tuple[str, ...],
    policy_path: Path | None,
    column_texts: tuple[str, ...],
    output: str | None,
    in_place: bool,
    replace_filters: bool,
    dry_run: bool,
    allow_unprotected: bool,
    keyring: Path | None,
    as_json: bool,
    verbose: bool,
) -> int:
    """Add Bloom filters to Parquet files; no data page is touched.

    PATH is a file, a folder or a glob.  Files are replaced atomically (or appended to, with
    --in-place); a file that fails does not stop the others.

    \b
    secure-bloom add out/ --policy keys/policy.toml
    secure-bloom add out/ --column email:fpp=0.01 --keyring keys/dev-keyring.json
    secure-bloom add out/ --column id --dry-run --json

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.adding.add import add_bloom_filters
    from secure_bloom.cli import tables

    policy = load_policy(policy_path)
    with progress_bar("adding filters", quiet=as_json) as progress:
        report = add_bloom_filters(
            paths,
            columns=parse_columns(column_texts),
            policy=policy,
            keys=load_keys(keyring, policy),
            in_place=in_place,
            output=output,
            replace_filters=replace_filters,
            dry_run=dry_run,
            allow_unprotected=allow_unprotected,
            progress=progress,
        )
    if as_json:
        tables.print_json(report.to_json())
    else:
        tables.print_add_report(report, verbose=verbose)
    return complain(report.failed) or 0


@cli.command("probe")
@click.argument("path")
@click.argument("column")
@click.argument("values", nargs=-1, required=True, metavar="VALUE...")
@with_policy_options
@with_common_options
def probe_command(
    path: str,
    column: str,
    values: tuple[str, ...],
    policy_path: Path | None,
    allow_unverified: bool,
    allow_unprotected: bool,
    keyring: Path | None,
    as_json: bool,
    verbose: bool,
) -> int:
    """Ask the filters of COLUMN whether VALUE may be in PATH, per file and row group.

    Values are written as a person would: text, 12.50, 2024-03-01, 2024-03-01T10:00:00Z, a UUID,
    hex:00ff for bytes.

    \b
    secure-bloom probe out/ email a@example.com --keyring keys/dev-keyring.json

    Exit code: 0 a value may be there, 1 absent everywhere, 3 some file has no filter, 2 error.
    """
    from secure_bloom.bloom.probe import probe
    from secure_bloom.cli import tables

    report = probe(
        path,
        column,
        values,
        keys=load_keys(keyring),
        policy=load_policy(policy_path),
        allow_unverified=allow_unverified,
        allow_unprotected=allow_unprotected,
    )
    if as_json:
        tables.print_json(report.to_json())
    else:
        tables.print_probe_report(report, verbose=verbose)
    return complain(report.failed) or _probe_code(report)


def _probe_code(report: ProbeReport) -> int:
    from secure_bloom.bloom.probe import Verdict

    if Verdict.MAYBE in report.verdicts:
        return EXIT_MAYBE
    return EXIT_NO_FILTER if Verdict.NO_FILTER in report.verdicts else EXIT_ABSENT


@cli.command("inspect")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--policy", "policy_path", type=click.Path(path_type=Path), help="For its [kms].")
@click.option("--check", is_flag=True, help="Read the values too, and look for each in its filter.")
@with_common_options
def inspect_command(
    paths: tuple[str, ...],
    policy_path: Path | None,
    check: bool,
    keyring: Path | None,
    as_json: bool,
    verbose: bool,
) -> int:
    """Show footers, encryption, keys and filters of files.

    What needs no key is shown without any: the footer mode, the algorithm, key names, and all of
    a plain file.

    \b
    secure-bloom inspect out/ --keyring keys/dev-keyring.json
    secure-bloom inspect out/ --check

    Exit code: 0 done, 1 with --check: a filter misses values of its column, 2 error.
    """
    from secure_bloom.cli import tables
    from secure_bloom.inspection import inspect

    report = inspect(paths, keys=load_keys(keyring, load_policy(policy_path)), check=check)
    if as_json:
        tables.print_json(report.to_json())
    else:
        tables.print_inspect_report(report, verbose=verbose)
    failed = [file for file in report.files if file.error is not None]
    return complain(failed) or (EXIT_WRONG_FILTER if report.wrong else 0)


@cli.command("demo")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--rows", default=300_000, show_default=True, help="Rows of the demo table.")
def demo_command(folder: Path | None, rows: int) -> int:
    """Do the main job end to end on Spark: write encrypted, add filters, look values up.

    The table goes to FOLDER (a new one), else to a temporary folder.  Needs Java 17 or later and
    the extra "spark".

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.spark.demo import run_demo

    run_demo(folder, rows)
    return 0


class ReportedFile(Protocol):
    """A file of a report that may have failed."""

    @property
    def error(self) -> str | None: ...  # noqa: D102
    @property
    def hint(self) -> str | None: ...  # noqa: D102


def complain(failed: Iterable[ReportedFile]) -> int:
    """Every failed file on stderr, each hint behind the files it is for; the exit code, or 0."""
    by_hint: dict[str | None, list[ReportedFile]] = {}
    for file in failed:
        by_hint.setdefault(file.hint, []).append(file)
    for hint, files in by_hint.items():
        for file in files:
            click.echo(f"secure-bloom: error: {file.error}", err=True)
        if hint:
            click.echo(f"secure-bloom: hint: {hint}", err=True)
    return EXIT_ERROR if by_hint else 0


@contextmanager
def progress_bar(what: str, *, quiet: bool) -> Iterator:  # type: ignore[type-arg]
    """A bar on stderr where that is a terminal, nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
