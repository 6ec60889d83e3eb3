"""Process the files of one re-encryption or rotation in threads and processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TypeAlias

from secure_bloom.adding.run import FileTask, with_key_prefetch
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.rekeying.reencryption import Reencryption
from secure_bloom.rekeying.rekey_report import RekeyedFile, failed_file
from secure_bloom.rekeying.rotation import Rotation
from secure_bloom.reports.text import counted
from secure_bloom.running.parallelism import chosen_parallelism, each_file
from secure_bloom.storage.paths import files_at_once, mean_size

#: Called with the number of files done and the number of them in all.
FileProgress = Callable[[int, int], None]
RekeyWork: TypeAlias = Reencryption | Rotation


def rekey_files(
    work: RekeyWork,
    open_work: Callable[[], RekeyWork],
    tasks: Sequence[FileTask],
    *,
    jobs: int | None,
    progress: FileProgress | None,
) -> tuple[RekeyedFile, ...]:
    """Return the report of each task, in order. ``open_work`` makes the same work elsewhere."""
    found: dict[int, RekeyedFile] = {}
    paths = [task.path for task in tasks]
    done = each_file(
        partial(_rekey, work),
        partial(_rekeyer, open_work),
        tasks,
        chosen_parallelism(
            len(paths),
            jobs,
            mean_size=mean_size(paths),
            at_once=files_at_once(paths),
            by_threads=work.asks_for_each_key,
        ),
        lost=lambda task, error: failed_file(task.path, error, 0.0),
        ahead=partial(with_key_prefetch, _ahead(work, {it.path: it.target for it in tasks})),
    )
    # Closed here: an error of `progress` must not leave the pool at work on files.
    with closing(done):
        for index, report in done:
            found[index] = report
            if progress is not None:
                progress(len(found), len(tasks))
    reports = tuple(found[index] for index in range(len(tasks)))
    # One warning for the run, and not one in each process that worked on it.
    warn_unverified(report.path for report in reports if not report.verified)
    return reports


def closed_notes(work: RekeyWork, reports: Iterable[RekeyedFile]) -> Iterator[str]:
    """Yield a note on files whose footers stayed closed, so that the policy was not checked."""
    closed = sum(report.footer is not None and not report.columns for report in reports)
    if closed and isinstance(work, Rotation) and not work.rewrapper.moves:
        yield (
            f"{counted(closed, 'file')}: footers were not opened, because their keys are stored "
            "outside; which columns are encrypted was not checked: secure-bloom audit checks it"
        )


def _ahead(work: RekeyWork, targets: Mapping[str, str | None]) -> KeyPrefetch:
    if isinstance(work, Rotation):
        return KeyPrefetch(work.resolver, work.ask, lambda: work.rewrapper.asked)
    return KeyPrefetch(work.resolver, lambda it: work.ask(it, targets[it]), work.wrapped)


def _rekeyer(open_work: Callable[[], RekeyWork]) -> Callable[[FileTask], RekeyedFile]:
    """Return the work in another process."""
    return partial(_rekey, open_work())


def _rekey(work: RekeyWork, task: FileTask) -> RekeyedFile:
    if isinstance(work, Rotation):
        return work.rotate(task.path, task.target)
    return work.reencrypt(task.path, task.target)
