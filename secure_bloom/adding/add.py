"""Add Bloom filters to files: check the request first, then plan and write file by file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
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
)
from secure_bloom.adding.rewrite import Rewriter, WriteMode
from secure_bloom.adding.run import FileTask, files_to_write, rewrite_files, summary_notes
from secure_bloom.calling.arguments import Progress, check_fields
from secure_bloom.encryption.access import Access
from secure_bloom.storage.paths import Paths

if TYPE_CHECKING:
    from secure_bloom.encryption.policy import KeyPolicy


# No repr: keys may be a client of the user's, and show themselves.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AddRequest:
    """The arguments of :func:`secure_bloom.add_bloom_filters`, as described there."""

    paths: Paths
    _: KW_ONLY
    columns: Columns | None = None
    policy: KeyPolicy | str | PathLike[str] | None = None
    keys: Keys | None = None
    in_place: bool = False
    output: str | PathLike[str] | None = None
    replace_filters: bool = False
    dry_run: bool = False
    allow_unprotected: bool = False
    where: str | None = None
    since: int | None = None
    commit_every: int | None = None
    branch: str | None = None
    jobs: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def filters(self) -> FilterRequest:
        """Return the wanted filters. Raises PolicyError if there is none."""
        return filter_request(self.columns, self.policy, replace_filters=self.replace_filters)

    def rewriter(self, filters: FilterRequest, mode: WriteMode) -> Callable[[], Rewriter]:
        """Return a function that makes the work on single files, in this or another process."""
        access = Access(
            keys=self.keys, policy=filters.policy, allow_unprotected=self.allow_unprotected
        )
        return partial(_rewriter, filters, access, mode)


def add_to_files(asked: AddRequest) -> AddReport:
    """Add filters to files that belong to no table, each in place or below ``output``."""
    filters = asked.filters()
    mode = WriteMode(in_place=asked.in_place, dry_run=asked.dry_run)
    open_rewriter = asked.rewriter(filters, mode)
    rewriter = open_rewriter()
    files, targets = files_to_write(asked.paths, in_place=asked.in_place, output=asked.output)
    chunks = check_few(files, filters, rewriter.resolver)
    reports = rewrite_files(
        rewriter,
        open_rewriter,
        [FileTask(path=path, target=targets.get(path)) for path in files],
        chunks_a_file=chunks,
        jobs=asked.jobs,
        progress=asked.progress,
    )
    changed = [targets.get(report.path, report.path) for report in reports if report.changes]
    left = left_filters_notes(reports) if asked.in_place else ()
    notes = (*file_notes(reports), *left, *summary_notes(changed))
    return AddReport(files=tuple(reports), notes=notes, dry_run=asked.dry_run)


def _rewriter(filters: FilterRequest, access: Access, mode: WriteMode) -> Rewriter:
    return Rewriter(request=filters, resolver=access.checked_resolver(), mode=mode)
