"""Print the reports of the verbs of ``secure-bloom hudi``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.cli.terminal_tables import percent, print_files, print_table, short_names
from secure_bloom.cli.verbosity import tell, tell_note
from secure_bloom.hudi.key_lookup import LookupStatus
from secure_bloom.hudi.record_keys.description import RecordKeyDescription
from secure_bloom.reports.text import counted, human_bytes

if TYPE_CHECKING:
    from secure_bloom.adding.report import AddReport, FileAddReport, FilterReport
    from secure_bloom.hudi.filter_reader import RecordKeyFile, RecordKeyReport
    from secure_bloom.hudi.key_lookup import LookupReport

_FILTER_HEADERS = ("file", "type", "rows>", "bytes>", "fpp>", "bits set>", "column")
_SHAPE_HEADERS = ("bits a row>", "hash", "hashes>", "keys a row>", "in the last>")
_ADDED_HEADERS = ("file", "filter", "keys>", "bytes>", "fpp>", "before>", "after>")
_BUILD_HEADERS = ("fpp asked for>", "footer key", "seconds>")
_LOOKUP_HEADERS = ("file", "status", "keys in range>", "candidates>", "found>")
Row = tuple[object, ...]


def print_filters(report: RecordKeyReport, *, show_range: bool, verbose: bool) -> None:
    """One row a file: its filter; with ``show_range`` also the ends of its key range."""
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
    described = file.hudi or RecordKeyDescription()
    kind = "unreadable" if file.error else described.type or "none"
    fpp = None if described.fpp is None else f"{described.fpp:.2g}"
    is_unnamed = file.hudi is not None and described.column is None
    column = "not said" if is_unnamed else described.column
    return (name, kind, described.rows, described.bytes, fpp, percent(described.fill), column)


def _shape(file: RecordKeyFile) -> Row:
    shape = file.hudi or RecordKeyDescription()
    return (shape.vector_size, shape.hash, shape.num_hashes, shape.nr, shape.current)


def print_added(report: AddReport, *, verbose: bool) -> None:
    """One row a file: the filter that was added or kept; then notes."""
    names = short_names([file.path for file in report.files])
    added = [(file, each) for file in report.files for each in file.filters]
    rows = [_added_row(names[file.path], file, each) for file, each in added]
    if verbose:
        rows = [(*row, *_build(*each)) for row, each in zip(rows, added, strict=True)]
    if rows:
        headers = (*_ADDED_HEADERS, *(_BUILD_HEADERS if verbose else ()))
        print_files(headers, rows, verbose=verbose)
    for note in report.notes:
        tell_note(note)
    if report.dry_run:
        tell_note("a dry run, nothing was written")


def _added_row(name: str, file: FileAddReport, each: FilterReport) -> Row:
    sizes = (human_bytes(file.bytes_before), human_bytes(file.bytes_after))
    return (name, each.action, each.values, each.bytes, f"{each.fpp or 0.0:.2g}", *sizes)


def _build(file: FileAddReport, each: FilterReport) -> Row:
    key = each.key or ("" if each.encrypted else "in clear")
    return (each.fpp_requested, key, f"{file.seconds:.2f}")


def print_lookup(report: LookupReport, *, verbose: bool) -> None:
    """Each key with the files that hold it, then how many files were skipped and read."""
    for key, paths in report.found.items():
        for path in paths or ("nowhere",):
            tell(f"{key}  {path}")
    if verbose:
        rows = [
            (file.path, file.status.replace("_", " "), file.in_range, file.candidates, file.found)
            for file in report.files
        ]
        print_table(_LOOKUP_HEADERS, rows)
    without = report.read_without_filter
    unfiltered = f"; {without:,} read without a filter" if without else ""
    tell(
        f"{counted(len(report.files), 'file')}: "
        f"{report.count(LookupStatus.SKIPPED_BY_RANGE)} skipped by range, "
        f"{report.count(LookupStatus.SKIPPED_BY_FILTER)} by filter, "
        f"{report.count(LookupStatus.READ)} read, {report.count(LookupStatus.FAILED)} failed; "
        f"{counted(report.false_positives, 'false positive')}{unfiltered}"
    )
