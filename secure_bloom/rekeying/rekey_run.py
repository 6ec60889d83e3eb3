"""Runs over many files: encrypt a table, re-encrypt it, rotate its keys, decrypt it to a folder.

In a folder of files decrypted from a Delta table, names of folders hold the partition values:

    output/day=2026-11-20/part-0.snappy.parquet
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from os import PathLike

from secure_bloom.adding.report import file_notes
from secure_bloom.adding.run import FileTask, files_to_write, summary_notes
from secure_bloom.errors import MissingPathError, SecureBloomError, UnsupportedFeatureError
from secure_bloom.parquet.schema import unknown_column
from secure_bloom.rekeying.protection import missing_columns
from secure_bloom.rekeying.rekey_report import RekeyReport
from secure_bloom.rekeying.rekey_work import (
    FileProgress,
    RekeyWork,
    closed_notes,
    rekey_files,
)
from secure_bloom.storage import join, local_path, name_of, open_input
from secure_bloom.storage.listing import check_targets
from secure_bloom.storage.paths import Paths
from secure_bloom.tables import LiveFile, Snapshot, snapshot


def rekey_paths(
    paths: Paths,
    open_work: Callable[[], RekeyWork],
    *,
    output: str | PathLike[str] | None = None,
    has_columns: bool = True,
    jobs: int | None,
    progress: FileProgress | None,
) -> RekeyReport:
    """Do the work on files, each in place or below ``output``.

    With ``has_columns``, some file must have each of the policy's columns with keys.
    """
    work = open_work()
    files, targets = files_to_write(paths, in_place=False, output=output)
    if has_columns:
        check_columns(files, work)
    tasks = [FileTask(path=path, target=targets.get(path)) for path in files]
    return rekey_tasks(work, open_work, tasks, jobs=jobs, progress=progress)


def check_columns(files: Iterable[str], work: RekeyWork) -> None:
    """Raise PolicyError for a column with a key that no readable file has.

    Reads footers until each column was found, which is mostly in the first one, or until a footer
    stays closed.
    """
    policy = work.policy
    known = set[str]()
    missing = set() if policy is None else set(missing_columns(policy, ()))
    for path in files:
        if policy is None or not missing:
            return
        # A file that cannot be read is reported when its turn comes.
        with suppress(SecureBloomError), open_input(path) as file:
            leaves = work.leaves(file)
            if leaves is None:
                return
            missing.intersection_update(missing_columns(policy, leaves))
            known.update(leaf.name for leaf in leaves)
    # If no footer opened, no column is known; each file then has an error of its own.
    for name in sorted(missing) if known else ():
        raise unknown_column(name, known)


def rekey_tasks(
    work: RekeyWork,
    open_work: Callable[[], RekeyWork],
    tasks: Sequence[FileTask],
    *,
    jobs: int | None,
    progress: FileProgress | None,
) -> RekeyReport:
    """Return the report of a run over files. Each task names the place for a file's new content."""
    reports = rekey_files(work, open_work, tasks, jobs=jobs, progress=progress)
    changed = [
        task.target or task.path
        for task, report in zip(tasks, reports, strict=True)
        if report.changes
    ]
    summaries = () if work.dry_run else summary_notes(changed, what="have other keys now")
    notes = (*file_notes(reports), *closed_notes(work, reports), *summaries)
    return RekeyReport(files=reports, notes=notes, dry_run=work.dry_run)


_NULL = "__HIVE_DEFAULT_PARTITION__"
#: Characters that Spark escapes in names of folders.  Letters beyond ASCII stay: Spark unescapes
#: single bytes.
_ESCAPED = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")


def bare_targets(folder: str, output: str | os.PathLike[str]) -> dict[str, str]:
    """Return the live files of the table in a folder, and the path of each below ``output``.

    Raises UnsupportedFeatureError if a reader of the folder without a log would find other rows
    than the table has.
    """
    table = snapshot(folder)
    if table is None:
        raise MissingPathError("there is no Delta table", path=folder)
    _refuse_others(table)
    top = local_path(output)
    targets = {file.path: join(top, _inside(table, file)) for file in table.files}
    # The log may have files of one name in several folders, which do not come along.
    check_targets(targets)
    return targets


def _refuse_others(table: Snapshot) -> None:
    """Raise an error for tables whose rows need more than the files."""
    deleted = [file for file in table.files if file.deletion_vector is not None]
    if deleted:
        raise UnsupportedFeatureError(
            "rows of the file are deleted by a deletion vector, and would come back in a folder "
            "without a log",
            hint="purge the table first (REORG TABLE ... APPLY (PURGE))",
            path=deleted[0].path,
        )
    if table.metadata.column_mapping_mode != "none":
        raise UnsupportedFeatureError(
            "the table's files have other names of columns than the table (column mapping), and a "
            "folder without a log has no place for them",
            hint="write the rows that `read` returns instead",
            path=table.folder,
        )


def _inside(table: Snapshot, file: LiveFile) -> str:
    values: Mapping[str, str | None] = file.partition_values
    folders = (
        f"{_escaped(it)}={_folder_value(values[it])}" for it in table.metadata.partition_columns
    )
    # The name alone: the log may have the file below any folder, and only the values count.
    return "/".join((*folders, name_of(file.path)))


def _folder_value(value: str | None) -> str:
    return _NULL if value is None else _escaped(value)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)
