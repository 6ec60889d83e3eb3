"""``secure-bloom paimon``: the file indexes of Apache Paimon."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from secure_bloom.cli.column_settings import Setting, parse_settings
from secure_bloom.cli.exit_codes import print_and_exit_code, print_outcome, verdict_code
from secure_bloom.cli.shared_arguments import (
    JSON,
    AccessOptions,
    where_option,
    with_access_to_read,
    with_common_options,
    with_jobs_option,
)
from secure_bloom.cli.terminal_tables import percent, print_files, print_table, short_names
from secure_bloom.cli.verbosity import (
    VERBOSE,
    print_line,
    print_note,
    print_notes,
    wants_summary,
    with_verbosity,
)
from secure_bloom.errors import PolicyError
from secure_bloom.reports.text import counted, human_bytes

if TYPE_CHECKING:
    from secure_bloom.paimon.column_filter import BuildReport
    from secure_bloom.paimon.index_description import PaimonInspection, ShowReport
    from secure_bloom.paimon.index_probe import PaimonProbe


@click.group("paimon")
def paimon() -> None:
    """Show, build and ask the file indexes of Apache Paimon: FILE.index beside FILE.

    \b
    secure-bloom paimon build out/ --column id --column name:fpp=0.01
    secure-bloom paimon probe out/ "id = 5 and name in ('anna', 'bo')"
    secure-bloom paimon show out/                        what an index shows to anyone
    """


@paimon.command("show", short_help="Show the indexes of data files.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "-k", "--keyring", type=click.Path(path_type=Path), help="Not needed: indexes are in clear."
)
@JSON
@VERBOSE
@with_verbosity
def show_command(paths: tuple[str, ...], keyring: Path | None, as_json: bool, verbose: bool) -> int:
    """Show the indexes of data files, or index files themselves; needs no key.

    \b
    secure-bloom paimon show table/bucket-0/
    secure-bloom paimon show data-1.orc.index --json

    Exit code: 0 done, 2 error.
    """
    del keyring  # taken so that every verb takes it
    from secure_bloom.paimon.index_description import show

    report = show(paths)
    return print_and_exit_code(report, print_indexes, as_json=as_json, verbose=verbose)


@paimon.command("build", short_help="Build an index with Bloom filters beside files.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "-c",
    "--column",
    "column_texts",
    multiple=True,
    metavar="NAME[:fpp=F][:items=N]",
    help="A column, or the key of a map as m[k]; may be repeated. Of a table, by default the "
    "columns of its own options.",
)
@click.option(
    "--allow-clear-index",
    is_flag=True,
    help="Also index encrypted columns, in clear, so that everyone can test values.",
)
@click.option(
    "--replace-damaged",
    is_flag=True,
    help="Write a new index in the place of one that cannot be read; what it held is lost.",
)
@click.option(
    "--replace-filters",
    is_flag=True,
    help="Of a table: build filters anew that its indexes have. Those of other files always are.",
)
@where_option("Of a table: index files of these partitions alone.")
@click.option(
    "--since", type=int, metavar="SNAPSHOT", help="Of a table: index files added after a snapshot."
)
@click.option(
    "--commit-every", type=int, metavar="N", help="Of a table: commit after every N files."
)
@click.option("-n", "--dry-run", is_flag=True, help="Write nothing. Report what a run would do.")
@with_jobs_option
@with_access_to_read
@with_common_options
def build_command(
    paths: tuple[str, ...],
    column_texts: tuple[str, ...],
    access: AccessOptions,
    as_json: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Build the index of each Parquet file at PATH, with a Bloom filter of each column.

    Without items=N a filter is sized for the distinct values it gets, and without fpp=F for 10 % of
    false positives, as in Paimon.  Other entries of an existing index are kept.

    A table, given alone, is its folder or paimon://WAREHOUSE/DATABASE.TABLE.  Its live files get
    indexes, and a snapshot lists them, so that Paimon uses them.  Beside other files the index is
    FILE.index.

    \b
    secure-bloom paimon build lake/default.db/orders --column id --where "day = '2026-11-20'"
    secure-bloom paimon build paimon:///data/lake/default.orders --since 41
    secure-bloom paimon build out/ --column id --column "tags[city]:fpp=0.01"
    secure-bloom paimon build out/ --column id:items=1000000 --dry-run

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.paimon.build import build_indexes
    from secure_bloom.paimon.column_filter import IndexOptions

    settings = {"fpp": Setting(float, "0.1"), "items": Setting(int, "1000000")}
    indexes = parse_settings(column_texts, settings, IndexOptions)
    report = build_indexes(paths, indexes or None, **access.arguments(), **options)
    return print_and_exit_code(report, print_built, as_json=as_json, verbose=verbose)


@paimon.command("probe", short_help="Ask indexes which data files can be skipped.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.argument("where")
@click.option(
    "--type",
    "type_texts",
    multiple=True,
    metavar="NAME=TYPE",
    help="Paimon's type of a column, where no data file says it; may be repeated.",
)
@with_access_to_read
@with_common_options
def probe_command(
    paths: tuple[str, ...],
    where: str,
    type_texts: tuple[str, ...],
    access: AccessOptions,
    as_json: bool,
    verbose: bool,
) -> int:
    """Ask the indexes at each PATH which data files can be skipped for the condition WHERE.

    PATH is a data file, a folder, a glob or an index file.  In folders and globs, indexes beside
    ORC and Avro files are found, too; they need --type for each column.  Conditions are = and IN,
    joined by AND and OR; any other keeps the file.

    \b
    secure-bloom paimon probe out/ "id = 5 and name in ('anna', 'bo')"
    secure-bloom paimon probe bucket-0/ bucket-1/ "day = 2024-03-01" --type day=DATE
    secure-bloom paimon probe paimon:///data/lake/default.orders "id = 5"

    For a table, given alone, the indexes that its manifests list are asked about its live files.

    Exit code: 0 a file may have such rows, 1 none has, 3 some file has no index, 2 error.
    """
    from secure_bloom.paimon.index_probe import probe

    report = probe(
        paths,
        where,
        types=_parse_types(type_texts),
        **access.arguments(),
    )
    code = print_and_exit_code(report, print_verdicts, as_json=as_json, verbose=verbose)
    return code or verdict_code(report.verdicts)


def _parse_types(texts: tuple[str, ...]) -> dict[str, str]:
    types = {}
    for text in texts:
        name, sign, data_type = text.rpartition("=")
        if not sign:
            raise PolicyError(f"--type {text} names no type", hint="write id=BIGINT")
        types[name] = data_type
    return types


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
_MEANINGS = {
    "absent": "can be skipped",
    "maybe": "may have such rows",
    "no_filter": "without an index to ask",
}


def print_indexes(report: ShowReport, *, verbose: bool) -> None:
    """Print a table for each index, then the data files without one."""
    for index in report.indexes:
        if index.error is None:
            print_line(f"{index.path}: {human_bytes(index.bytes)}")
            _print_columns(index)
    if report.without:
        print_line(f"{counted(len(report.without), 'data file')} without an index")
    for path in report.without if verbose else ():
        print_line(f"  {path}")


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
    """Print one row for each file and column, then notes."""
    names = short_names([file.path for file in report.files])
    rows = [
        (names[file.path], c.column, c.values, c.items, c.bytes, percent(c.fpp))
        for file in report.files
        for c in file.columns
    ]
    print_files(_BUILT_HEADERS, rows, verbose=verbose)
    if rows or not report.files or wants_summary():
        print_outcome(report.totals, report.seconds, dry_run=report.dry_run)
    for commit in report.commits:
        what = "would commit" if commit.snapshot is None else f"snapshot {commit.snapshot}"
        print_line(f"{what}: indexes of {counted(len(commit.files), 'file')}")
    for file in report.files if verbose else ():
        for kept in file.kept:
            print_line(f"kept: {file.path}, {kept}")
    for note, count in Counter(file.note for file in report.files if file.note).items():
        print_note(f"{counted(count, 'file')}: {note}")
    print_notes(report.notes, verbose=verbose)


def print_verdicts(report: PaimonProbe, *, verbose: bool) -> None:
    """Print how many files have each verdict, paths of files that may have the rows, and notes."""
    for verdict, meaning in _MEANINGS.items():
        found = [file.path for file in report.files if file.verdict == verdict]
        print_line(f"{len(found):,} of {counted(len(report.files), 'file')} {meaning}")
        for path in found if verbose or verdict == "maybe" else ():
            print_line(f"  {path}")
    for file in report.files:
        if file.note is not None:
            print_note(f"{file.path}: {file.note}")
    for note in report.notes:
        print_note(note)
