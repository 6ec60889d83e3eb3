"""Bring files of a Delta table under other keys: write new files beside the old ones, and commit.

The old files stay under their old keys for time travel, until the table's VACUUM removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from secure_bloom.adding.report import file_notes
from secure_bloom.adding.run import FileTask
from secure_bloom.adding.table_change import GONE, AnyTableRun, TableChange, new_sizes
from secure_bloom.rekeying.rekey_report import RekeyedFile, RekeyReport
from secure_bloom.rekeying.rekey_work import FileProgress, RekeyWork, closed_notes, rekey_files

_OLD_FILES = (
    "the old files stay for time travel, under their old keys, until the table's VACUUM removes "
    "them: a key that is destroyed earlier takes the older versions with it, and a key that has "
    "leaked opens them until then"
)
_OLD_LOG = (
    "bounds of encrypted columns are out of the table's latest version; older commits and "
    "checkpoints of the log show them until they are cleaned up, and new writes do again unless "
    "delta.dataSkippingStatsColumns leaves these columns out"
)


class RekeyTableRun(AnyTableRun, Protocol):
    """A run on a table whose log may still show bounds of columns that the run encrypts."""

    @property
    def shows_secrets(self) -> bool: ...  # noqa: D102


def rekey_table(
    run: RekeyTableRun,
    open_work: Callable[[], RekeyWork],
    *,
    jobs: int | None,
    progress: FileProgress | None,
) -> RekeyReport:
    """Write new files beside the live ones, and commit them in place of the old ones."""
    rekeying = open_work()
    reports: list[RekeyedFile] = []

    def work(tasks: Sequence[FileTask]) -> Mapping[str, int | None]:
        done = rekey_files(rekeying, open_work, tasks, jobs=jobs, progress=progress)
        reports.extend(done)
        return new_sizes(done)

    change = run.rewrite(work, dry_run=rekeying.dry_run)
    gone = run.gone(change, reports)
    shown = tuple(_taken_meanwhile(it) if it.path in gone else it for it in reports)
    return RekeyReport(
        files=shown,
        notes=(
            *file_notes(shown),
            *closed_notes(rekeying, reports),
            *change.notes,
            *table_notes(run, change),
        ),
        dry_run=rekeying.dry_run,
        commits=change.commits,
    )


def _taken_meanwhile(report: RekeyedFile) -> RekeyedFile:
    """Return the report of a file that another writer removed from the table meanwhile."""
    return replace(
        report,
        status="unchanged",
        bytes_after=report.bytes_before,
        footer=report.footer_before,
        master_keys=report.master_keys_before,
        columns=tuple(replace(it, key=it.key_before) for it in report.columns),
        error=None,
        hint=None,
        causes=(),
        notes=(*report.notes, GONE),
    )


def table_notes(run: RekeyTableRun, change: TableChange) -> Iterator[str]:
    """Yield notes on what old versions of the table still show."""
    if any(commit.files for commit in change.commits):
        yield _OLD_FILES
    if change.commits and run.shows_secrets:
        yield _OLD_LOG
