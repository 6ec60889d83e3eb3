"""``secure-bloom hudi``: the record key filters of Hudi's base files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from secure_bloom.cli.exit_codes import print_and_exit_code, print_failures, print_outcome
from secure_bloom.cli.inputs import listed_values
from secure_bloom.cli.runnable_hints import with_runnable_hints
from secure_bloom.cli.shared_arguments import (
    AccessOptions,
    with_access_to_read,
    with_access_to_sign,
    with_common_options,
    with_jobs_option,
)
from secure_bloom.cli.terminal_tables import (
    percent,
    print_files,
    print_json,
    print_table,
    short_names,
)
from secure_bloom.cli.verbosity import print_line, print_note, print_notes, wants_summary
from secure_bloom.errors import PolicyError
from secure_bloom.reports.text import counted, human_bytes

if TYPE_CHECKING:
    from secure_bloom.adding.report import AddReport, FileAddReport, FilterReport
    from secure_bloom.hudi.filter_reader import RecordKeyFile, RecordKeyReport
    from secure_bloom.hudi.key_lookup import LookupReport


EXIT_FOUND, EXIT_NOWHERE = 0, 1


_COLUMN = click.option(
    "-c", "--column", default="_hoodie_record_key", show_default=True, help="The key column."
)


@click.group("hudi")
def hudi() -> None:
    """Show, add and ask the record key filters of Apache Hudi's base files.

    \b
    secure-bloom hudi show table/                        type, size, false positives
    secure-bloom hudi lookup table/ some-key other-key   which files hold these keys
    secure-bloom hudi add copy/                          build filters if there are none
    """


@hudi.command("show", short_help="Show the record key filters of files.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--range", "show_range", is_flag=True, help="Also the smallest and largest key.")
@with_access_to_read
@with_common_options
def show_command(
    paths: tuple[str, ...],
    show_range: bool,
    access: AccessOptions,
    as_json: bool,
    verbose: bool,
) -> int:
    """Show the record key filters of files.

    The smallest and largest key of a file are data: they are shown with --range alone.

    \b
    secure-bloom hudi show table/ --json

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.hudi.filter_reader import show

    report = show(paths, **access.arguments())
    if as_json:
        print_json(report.with_ranges() if show_range else report.to_dict())
    else:
        print_filters(report, show_range=show_range, verbose=verbose)
    return print_failures(report.failed)


@hudi.command("add", short_help="Add record key filters and key ranges to files.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--type",
    "type_code",
    type=click.Choice(["DYNAMIC_V0", "SIMPLE"], case_sensitive=False),
    default="DYNAMIC_V0",
    show_default=True,
    help="The kind of filter.",
)
@click.option(
    "--num-entries",
    type=int,
    help="Number of keys that a filter is made for; by default as many as the file has.",
)
@click.option("--fpp", type=float, default=1e-9, show_default=True, help="False positives.")
@click.option(
    "--max-entries",
    type=int,
    default=100_000,
    show_default=True,
    help="Largest number of keys that DYNAMIC_V0 is made for.",
)
@click.option(
    "-o", "--output", metavar="DIR", help="Write new files below DIR. The old files stay."
)
@click.option("--in-place", is_flag=True, help="Append to the files instead of copying their data.")
@click.option("--replace-filters", is_flag=True, help="Build existing filters anew.")
@click.option("-n", "--dry-run", is_flag=True, help="Write nothing. Report what a run would do.")
@click.option(
    "--allow-clear-entry",
    is_flag=True,
    help="Also write them for an encrypted column into a footer that everyone can read.",
)
@_COLUMN
@with_jobs_option
@with_access_to_sign
@with_common_options
def add_command(
    paths: tuple[str, ...],
    replace_filters: bool,
    type_code: str,
    num_entries: int | None,
    fpp: float,
    max_entries: int,
    access: AccessOptions,
    as_json: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Add record key filters and key ranges to base files, from their key column.

    The filter is in the footer, so it is as secret as the footer: notes say who can read it. For an
    encrypted column, a footer in clear is refused. So are files of a live
    Hudi table, because its log records their sizes.

    \b
    secure-bloom hudi add copy/ --num-entries 60000

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.hudi.filter_writer import RecordKeyFilterOptions, add_record_key_filter

    made_for = RecordKeyFilterOptions(
        type_code=type_code, num_entries=num_entries, fpp=fpp, max_entries=max_entries
    )
    given = access.arguments()
    report = add_record_key_filter(
        paths, options=made_for, replace=replace_filters, **given, **options
    )
    report = with_runnable_hints(report, paths, given["policy"], access.policy_path, access.keyring)
    return print_and_exit_code(report, print_added, as_json=as_json, verbose=verbose)


@hudi.command("lookup", short_help="Find the files that hold record keys.")
@click.argument("path")
@click.argument("keys", nargs=-1, metavar="KEY...")
@click.option(
    "--from",
    "source",
    metavar="FILE[:COLUMN]",
    help="Keys from a file, one a line, or from a column of a CSV or TSV file; - for stdin.",
)
@_COLUMN
@with_access_to_read
@with_common_options
def lookup_command(
    path: str,
    keys: tuple[str, ...],
    source: str | None,
    column: str,
    access: AccessOptions,
    as_json: bool,
    verbose: bool,
) -> int:
    """Find the files below PATH that hold record keys.

    The range in a file's footer may rule the file out, then its filter.  If neither does, the key
    column of the file is read, and nothing else.

    \b
    secure-bloom hudi lookup table/ 3eeb61f7-c2b0-4636-99bd-5d7a5a1d2c04
    secure-bloom hudi lookup table/ --from keys.txt --json

    A KEY that is a file, or looks like one, is an error: give such keys with --from.

    Exit code: 0 a key was found, 1 none was, 2 error.
    """
    from secure_bloom.hudi.key_lookup import lookup

    _refuse_paths(keys)
    wanted = [*keys, *(listed_values(source) if source is not None else ())]
    if not wanted:
        raise PolicyError("no key is given", hint="name keys, or a file of keys with --from")
    report = lookup(path, wanted, column=column, **access.arguments())
    code = print_and_exit_code(report, print_lookup, as_json=as_json, verbose=verbose)
    return code or (EXIT_FOUND if any(report.found.values()) else EXIT_NOWHERE)


def _refuse_paths(keys: tuple[str, ...]) -> None:
    """Raise PolicyError for a key that is a path, because a shell has expanded a glob."""
    for key in keys:
        # Not Path.exists: it raises for a key that is longer than any path.
        is_there = os.path.exists(key)  # noqa: PTH110
        if is_there or (key.endswith(".parquet") and "/" in key):
            kind = "folder" if Path(key).is_dir() else "file"
            raise PolicyError(
                f"{key} is a {kind}, and lookup takes one PATH",
                hint="quote the glob or pass the folder; give a key that is a path by --from",
            )


_FILTER_HEADERS = ("file", "type", "vectors>", "bytes>", "fpp>", "bits set>", "column")
_SHAPE_HEADERS = ("bits a vector>", "hash", "hashes>", "keys a vector>", "in the last>")
_ADDED_HEADERS = ("file", "filter", "keys>", "bytes>", "fpp>", "before>", "after>")
_BUILD_HEADERS = ("fpp asked for>", "footer key", "seconds>")
_LOOKUP_HEADERS = ("file", "status", "keys in range>", "candidates>", "found>")
Row = tuple[object, ...]


def print_filters(report: RecordKeyReport, *, show_range: bool, verbose: bool) -> None:
    """Print one row for each file: its filter and, with ``show_range``, its key range."""
    names = short_names([file.path for file in report.files])
    shown = [file for file in report.files if file.error is None or file.hudi is not None]
    rows = [_filter_row(names[file.path], file) for file in shown]
    if verbose:
        rows = [(*row, *_shape(file)) for row, file in zip(rows, shown, strict=True)]
    if rows:
        headers = (*_FILTER_HEADERS, *(_SHAPE_HEADERS if verbose else ()))
        print_files(headers, rows, verbose=verbose)
    ranges = [
        (names[file.path], file.min_key, file.max_key)
        for file in report.files
        if file.error is None
    ]
    if show_range and ranges:
        print_files(("file", "smallest key", "largest key"), ranges, verbose=verbose)


def _filter_row(name: str, file: RecordKeyFile) -> Row:
    from secure_bloom.hudi.record_keys.footer_entry import RecordKeyDescription

    described = file.hudi or RecordKeyDescription()
    kind = "unreadable" if file.error else described.type or "none"
    fpp = None if described.fpp is None else f"{described.fpp:.2g}"
    is_unnamed = file.hudi is not None and described.column is None
    column = "not said" if is_unnamed else described.column
    return (name, kind, described.rows, described.bytes, fpp, percent(described.fill), column)


def _shape(file: RecordKeyFile) -> Row:
    from secure_bloom.hudi.record_keys.footer_entry import RecordKeyDescription

    shape = file.hudi or RecordKeyDescription()
    return (shape.vector_size, shape.hash, shape.num_hashes, shape.nr, shape.current)


def print_added(report: AddReport, *, verbose: bool) -> None:
    """Print one row for each file: the filter that was added or kept. Then print notes."""
    names = short_names([file.path for file in report.files])
    added = [(file, each) for file in report.files for each in file.filters]
    rows = [_added_row(names[file.path], file, each) for file, each in added]
    if verbose:
        rows = [(*row, *_build(*each)) for row, each in zip(rows, added, strict=True)]
    if rows:
        headers = (*_ADDED_HEADERS, *(_BUILD_HEADERS if verbose else ()))
        print_files(headers, rows, verbose=verbose)
    if rows or wants_summary():
        print_outcome(report.totals, report.seconds, dry_run=report.dry_run)
    print_notes(report.notes, verbose=verbose)
    if report.dry_run:
        print_note("a dry run, nothing was written")


def _added_row(name: str, file: FileAddReport, each: FilterReport) -> Row:
    sizes = (human_bytes(file.bytes_before), human_bytes(file.bytes_after))
    return (name, each.action, each.values, each.bytes, f"{each.fpp or 0.0:.2g}", *sizes)


def _build(file: FileAddReport, each: FilterReport) -> Row:
    key = each.key or ("" if each.encrypted else "in clear")
    return (each.fpp_requested, key, f"{file.seconds:.2f}")


def print_lookup(report: LookupReport, *, verbose: bool) -> None:
    """Print each key with the files that hold it, then how many files were skipped and read."""
    from secure_bloom.hudi.key_lookup import LookupStatus

    absent = "unknown" if report.failed else "nowhere"
    for key, paths in report.found.items():
        for path in paths or (absent,):
            print_line(f"{key}  {path}")
    if verbose:
        rows = [
            (file.path, file.status.replace("_", " "), file.in_range, file.candidates, file.found)
            for file in report.files
        ]
        print_table(_LOOKUP_HEADERS, rows)
    without = report.read_without_filter
    unfiltered = f"; {without:,} read without a filter" if without else ""
    print_line(
        f"{counted(len(report.files), 'file')}: "
        f"{report.count(LookupStatus.SKIPPED_BY_RANGE)} skipped by range, "
        f"{report.count(LookupStatus.SKIPPED_BY_FILTER)} by filter, "
        f"{report.count(LookupStatus.READ)} read, {report.count(LookupStatus.FAILED)} failed; "
        f"{counted(report.false_positives, 'false positive')}{unfiltered}"
    )
