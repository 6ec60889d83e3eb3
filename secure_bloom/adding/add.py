"""Add Bloom filters to files: check the request first, then plan and write file by file."""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import TYPE_CHECKING

from secure_bloom.adding.preflight import check_few
from secure_bloom.adding.report import AddReport, file_notes, left_filters_notes
from secure_bloom.adding.request import (
    Columns,
    FilterRequest,
    Keys,
    filter_request,
    request_resolver,
)
from secure_bloom.adding.rewrite import Rewriter, WriteMode
from secure_bloom.adding.run import FileTask, Progress, rewrite_files
from secure_bloom.adding.summary_files import summary_notes
from secure_bloom.adding.targets import files_to_write
from secure_bloom.storage.paths import Paths

if TYPE_CHECKING:
    from secure_bloom.encryption.policy import KeyPolicy


def add_bloom_filters(
    paths: Paths,
    *,
    columns: Columns | None = None,
    policy: KeyPolicy | str | PathLike[str] | None = None,
    keys: Keys | None = None,
    in_place: bool = False,
    output: str | PathLike[str] | None = None,
    replace_filters: bool = False,
    dry_run: bool = False,
    allow_unprotected: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> AddReport:
    """Add split-block Bloom filters to existing Parquet files without touching a data page.

    ``paths`` are files, folders or globs.  ``columns`` maps column names to their options, or
    lists names; without it the policy's columns are taken.  ``keys`` defaults to the policy's
    KMS; a client of your own may be called from several threads.  Files are replaced atomically,
    or with ``in_place`` appended to, or with ``output`` written below another folder; several at
    a time, on at most ``jobs`` cores, by default all.  Many small files are shared by processes:
    each asks the policy's KMS itself, or gets ``keys`` over a pipe if they can be pickled.  A file
    that fails is reported and does not stop the others: so is one that is protected less than the
    policy says, with a weaker algorithm, shorter keys or a footer in clear, unless
    ``allow_unprotected`` is given.

    Raises PolicyError or UnsupportedFeatureError before any file is written where the request
    itself cannot be: a column that no file has, an unknown master key, a managed table, and what a
    few of the files show, such as a BOOLEAN column.  What only another file shows fails that file.

    >>> sb.add_bloom_filters("new/", policy="keys/policy.toml")
    <AddReport: 1 file (1 added)>
    >>> sb.add_bloom_filters("plain/", columns={"email": 0.001})
    <AddReport: 1 file (1 added)>
    """
    request = filter_request(columns, policy, replace_filters=replace_filters)
    mode = WriteMode(in_place=in_place, dry_run=dry_run)
    open_rewriter = partial(
        request_rewriter, request, keys, mode, allow_unprotected=allow_unprotected
    )
    rewriter = open_rewriter()
    files, targets = files_to_write(paths, in_place=in_place, output=output)
    chunks = check_few(files, request, rewriter.resolver)
    reports = rewrite_files(
        rewriter,
        open_rewriter,
        [FileTask(path=path, target=targets.get(path)) for path in files],
        chunks_a_file=chunks,
        jobs=jobs,
        progress=progress,
    )
    changed = [targets.get(report.path, report.path) for report in reports if report.changes]
    left = left_filters_notes(reports) if in_place else ()
    notes = (*file_notes(reports), *left, *summary_notes(changed))
    return AddReport(files=tuple(reports), notes=notes, dry_run=dry_run)


def request_rewriter(
    request: FilterRequest, keys: Keys | None, mode: WriteMode, *, allow_unprotected: bool
) -> Rewriter:
    """The work on single files that a request asks for, in this process or in another one."""
    resolver = request_resolver(request, keys, allow_unprotected=allow_unprotected)
    return Rewriter(request=request, resolver=resolver, mode=mode)
