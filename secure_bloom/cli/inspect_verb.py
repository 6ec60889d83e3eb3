"""``secure-bloom inspect``: footers, encryption, keys and filters of files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from secure_bloom.cli.exit_codes import print_failures
from secure_bloom.cli.shared_arguments import (
    load_keys,
    load_policy,
    policy_option,
    with_common_options,
    with_table_version,
)
from secure_bloom.cli.terminal_tables import percent, print_files, print_table, short_names
from secure_bloom.cli.timeout import with_timeout
from secure_bloom.cli.verbosity import print_line
from secure_bloom.reports.text import counted, human_bytes

if TYPE_CHECKING:
    from secure_bloom.hudi.record_keys.footer_entry import RecordKeyDescription
    from secure_bloom.inspecting.files import (
        BloomInspection,
        ColumnInspection,
        FileInspection,
        InspectReport,
    )
    from secure_bloom.paimon.index_description import PaimonInspection


EXIT_WRONG_FILTER = 1


@click.command("inspect")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@policy_option("Policy file (TOML) whose [kms] has the keys.")
@click.option("--check", is_flag=True, help="Also read all values, and look each up in its filter.")
@with_timeout
@with_table_version
@with_common_options
def inspect_command(
    paths: tuple[str, ...],
    policy_path: Path | None,
    check: bool,
    keyring: Path | None,
    at: dict[str, Any],
    as_json: bool,
    verbose: bool,
) -> int:
    """Show footers, encryption, keys and filters of files.

    Without any key it shows the footer mode, the algorithm, key names, and all of a plain file.

    \b
    secure-bloom inspect out/ --keyring keys/dev-keyring.json
    secure-bloom inspect out/ --check

    Exit code: 0 done, 1 with --check: a filter misses values of its column, 2 error.
    """
    from secure_bloom.api.inspect import inspect
    from secure_bloom.cli.terminal_tables import print_json

    report = inspect(
        paths, keys=load_keys(keyring), policy=load_policy(policy_path), check=check, **at
    )
    if as_json:
        print_json(report.to_dict())
    else:
        print_inspect_report(report, verbose=verbose)
    failed = [file for file in report.files if file.error is not None]
    return print_failures(failed) or (EXIT_WRONG_FILTER if report.wrong else 0)


#: More files than these get a row each in one table.
_MOST_TABLES: Final = 10


def print_inspect_report(report: InspectReport, *, verbose: bool) -> None:
    """Print one table for each file or, for many files unless ``verbose``, one row."""
    shown = [file for file in report.files if file.error is None]
    if len(shown) > _MOST_TABLES and not verbose:
        _print_summary(shown, verbose=verbose)
    else:
        for file in shown:
            _print_file(file, verbose=verbose)
    for file, group, column in report.wrong:
        missed = column.bloom.missed if column.bloom else 0
        print_line(
            f"wrong filter: {file.path}, row group {group.row_group}, column {column.column}: "
            f"misses {missed} values, queries lose rows; add --replace-filters repairs it"
        )


def _print_summary(files: Sequence[FileInspection], *, verbose: bool) -> None:
    headers = ("file", "footer", "keys", "rows>", "row groups>", "in clear>", "with filters>")
    names = short_names([file.path for file in files])
    print_files(headers, [_file_row(file, names[file.path]) for file in files], verbose=verbose)
    readable = [file for file in files if file.rows is not None]
    rows = sum(file.rows or 0 for file in readable)
    groups = sum(len(file.row_groups) for file in readable)
    some = "" if len(readable) == len(files) else f"; {len(readable):,} can be read"
    print_line(
        f"{counted(len(files), 'file')}{some}, {counted(rows, 'row')}, "
        f"{counted(groups, 'row group')}"
    )
    print_line("-v shows the columns of each file")


def _file_row(file: FileInspection, name: str) -> tuple[object, ...]:
    columns = [column for group in file.row_groups for column in group.columns]
    if file.rows is None:
        return (name, file.footer, ", ".join(_keys_of(file)), *"????")
    return (
        name,
        file.footer,
        ", ".join(_keys_of(file)),
        f"{file.rows:,}",
        len(file.row_groups),
        len({column.column for column in columns if column.encrypted == "no"}),
        len({column.column for column in columns if column.bloom is not None}),
    )


def _keys_of(file: FileInspection) -> Iterable[str]:
    """Return the names of the master keys that a file depends on, the footer's key first."""
    columns = (column for group in file.row_groups for column in group.columns)
    encrypted = (column.key or "unnamed" for column in columns if column.encrypted != "no")
    return dict.fromkeys([*([file.key or "unnamed"] if file.algorithm else []), *encrypted])


def _print_file(file: FileInspection, *, verbose: bool) -> None:
    footer = f"{file.footer} footer"
    if file.algorithm:
        footer += f", {file.algorithm}, footer key {file.key or 'unnamed'}"
    groups = len(file.row_groups)
    found = f"; {counted(file.rows or 0, 'row')} in {counted(groups, 'row group')}"
    content = "" if file.rows is None else found
    print_line(f"{file.path}: {footer}{content}")
    if file.hudi is not None:
        print_line(f"  Hudi record keys: {_record_keys(file.hudi)}")
    if file.paimon is not None:
        print_line(f"  Paimon index: {_paimon_index(file.paimon)}")
    columns = [column for group in file.row_groups for column in group.columns]
    notes = {f"column {column.column}: {column.note}" for column in columns if column.note}
    for note in (*([file.note] if file.note else []), *sorted(notes)):
        print_line(f"  note: {note}")
    headers = ("column", "type", "key", "filters", "bytes>", "fpp>", "bits set>")
    if not verbose:
        by_column = zip(*(group.columns for group in file.row_groups), strict=True)
        if file.row_groups:
            print_table(headers, (_column_row(list(chunks)) for chunks in by_column))
        return
    for group in file.row_groups:
        print_table(
            headers,
            (_column_row([column]) for column in group.columns),
            title=f"row group {group.row_group}, {counted(group.rows, 'row')}",
        )


def _record_keys(found: RecordKeyDescription) -> str:
    """Return Hudi's filter and key range as one line."""
    ends = "key range" if found.range else "no key range"
    if found.type is None:
        damage = found.note and f"filter that cannot be read: {found.note}"
        return f"{damage or 'no filter'}; {ends}"
    size, rows = human_bytes(found.bytes), "1 row" if found.rows == 1 else f"{found.rows} rows"
    return f"{found.type} filter of {size} in {rows}, fpp {percent(found.fpp)}; {ends}"


def _paimon_index(found: PaimonInspection) -> str:
    """Return Paimon's index and its columns as one line."""
    if found.error is not None:
        return f"cannot be read: {found.error}"
    columns = ", ".join(f"{each.column} ({each.type})" for each in found.indexes)
    return f"{human_bytes(found.bytes)} in clear beside the file: {columns or 'no columns'}"


_KEY_PLACES = {"no": "in clear", "footer_key": "{key} (footer)", "column_key": "{key}"}


def _column_row(chunks: list[ColumnInspection]) -> tuple[object, ...]:
    first = chunks[0]
    blooms = [chunk.bloom for chunk in chunks if chunk.bloom is not None]
    unknown = not blooms and any(chunk.note for chunk in chunks)
    have = "?" if unknown else f"{len(blooms)} of {len(chunks)}"
    return (
        first.column,
        # The logical type says more to a person than how it is stored.
        first.type.rpartition(" ")[2].lower(),
        _KEY_PLACES[first.encrypted].format(key=first.key or "unnamed"),
        have,
        _size_of(blooms),
        percent(max((b.fpp for b in blooms if b.fpp is not None), default=None)),
        percent(max((b.fill for b in blooms if b.fill is not None), default=None)),
    )


def _size_of(blooms: list[BloomInspection]) -> str | None:
    """Return the bytes of the bitsets, or of all that is stored of filters that cannot be read."""
    if not blooms:
        return None
    if all(bloom.bytes is not None for bloom in blooms):
        return f"{sum(bloom.bytes or 0 for bloom in blooms):,}"
    if all(bloom.length is not None for bloom in blooms):
        return f"{sum(bloom.length or 0 for bloom in blooms):,} encrypted"
    return "?"
