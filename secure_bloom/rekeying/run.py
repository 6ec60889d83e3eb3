"""Runs over many files: encrypt a table, re-encrypt it, rotate its keys, decrypt it to a folder.

In a folder of files decrypted from a Delta table, names of folders hold the partition values:

    output/day=2026-11-20/part-0.snappy.parquet
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike

from secure_bloom.adding.report import file_notes
from secure_bloom.adding.run import FileTask, files_to_write, summary_notes
from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.delta.recognition import delta_table, refuse_options_of_tables
from secure_bloom.delta.selection import TableSelection
from secure_bloom.delta.table_run import refuse_options_of_files
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import MissingPathError, SecureBloomError, UnsupportedFeatureError
from secure_bloom.parquet.schema import unknown_column
from secure_bloom.rekeying.protection import missing_columns
from secure_bloom.rekeying.rekey_report import RekeyReport
from secure_bloom.rekeying.rekey_work import (
    FileProgress,
    RekeyWork,
    closed_notes,
    decryption,
    reencryption,
    rekey_files,
    rotation,
)
from secure_bloom.rekeying.table_runs import open_reencryption, open_rotation, rekey_table
from secure_bloom.storage import join, local_path, name_of, open_input
from secure_bloom.storage.listing import check_targets, refuse_inside
from secure_bloom.storage.paths import Paths, as_path, as_paths
from secure_bloom.tables import LiveFile, Snapshot, snapshot


@checked_arguments
def reencrypt(
    paths: Paths,
    *,
    policy: KeyPolicy | str | PathLike[str],
    keys: GivenKeys = None,
    old_policy: GivenPolicy = None,
    output: str | PathLike[str] | None = None,
    new_data_keys: bool = False,
    dry_run: bool = False,
    verify: bool = False,
    where: str | None = None,
    since: int | None = None,
    commit_every: int | None = None,
    jobs: int | None = None,
    progress: FileProgress | None = None,
) -> RekeyReport:
    """Bring files under ``policy``, whatever protection they have. No page is decoded.

    Plain files are encrypted.  Encrypted files get new data keys and a new AAD and, if the policy
    says so, other keys for columns, another footer mode or another algorithm.  A file that is
    already as the policy says is left unchanged.  A file that fails is reported and stays
    unchanged.  Many small files are shared by processes, and each process asks the policy's KMS
    itself.

    A Delta table, given alone, gets new files and a commit.  Bounds of columns with a key are
    removed from its statistics.  The old files stay, under their old keys, until its VACUUM.

    Args:
        paths: Files, folders, globs or URIs, or one Delta table.
        policy: A KeyPolicy, or the path of one.
        keys: A keyring or KMS client that opens the old files. It also wraps the new keys if the
            policy has no KMS.
        old_policy: The policy that the files leave.  No KMS is asked for a key that neither policy
            names.
        output: Folder for the new files. By default files are replaced.
        new_data_keys: Also change files that are already as the policy says.
        dry_run: Write nothing, but report what a run would do.
        verify: Read the first page of every column of a new local file before it takes its place,
            not only of the columns that are copied.
        where: Condition on partition columns that chooses files of a Delta table.
        since: Version of a Delta table. Only files added later are changed.
        commit_every: Number of files after which to commit to a Delta table. By default once, at
            the end.
        jobs: Number of cores; by default all.
        progress: Called for each file that is done.

    Returns:
        A report with a record for each file.

    Raises:
        PolicyError: The policy encrypts nothing, or its KMS lacks a master key.  Nothing was
            written.

    Example:
        >>> sb.reencrypt("plain/", policy="keys/policy.toml")
        <RekeyReport: 1 file (1 reencrypted)>
    """
    setting = partial(
        reencryption,
        keys=keys,
        old_policy=old_policy,
        new_data_keys=new_data_keys,
        dry_run=dry_run,
        verify=verify,
    )
    folder = delta_table(as_paths(paths))
    if folder is not None:
        refuse_options_of_files(folder, in_place=False, output=output is not None)
        chosen = TableSelection(where=where, since=since)
        run = open_reencryption(folder, policy, chosen, commit_every=commit_every)
        open_beside = partial(setting, run.policy, only_changes=True)
        return rekey_table(run, open_beside, jobs=jobs, progress=progress)
    refuse_options_of_tables(where=where, since=since, commit_every=commit_every)
    open_work = partial(setting, policy)
    work = open_work()
    files, targets = files_to_write(paths, in_place=False, output=output)
    check_columns(files, work)
    tasks = [FileTask(path=path, target=targets.get(path)) for path in files]
    return _run(work, open_work, tasks, jobs=jobs, progress=progress)


@checked_arguments
def decrypt(
    paths: Paths,
    *,
    output: str | PathLike[str],
    policy: GivenPolicy = None,
    keys: GivenKeys = None,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
    verify: bool = False,
    jobs: int | None = None,
    progress: FileProgress | None = None,
) -> RekeyReport:
    """Write files in clear below ``output``. The old files stay.

    The live files of a Delta table, given alone, are written to a folder without a log. Partition
    values become names of folders.

    Args:
        paths: Files, folders or globs, or one Delta table.
        output: Folder for the new files.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        verify: Read the first page of every column of a new local file before it gets its name.
        jobs: Number of cores; by default all.
        progress: Called for each file that is done.

    Returns:
        A report with a record for each file.

    Raises:
        PolicyError: The request cannot be met.  No file was written.

    Example:
        >>> sb.decrypt("out/", output="clear/", policy="keys/policy.toml")
        <RekeyReport: 1 file (1 decrypted)>
    """
    open_work = partial(
        decryption,
        Access.of(
            keys, policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected
        ),
        verify=verify,
    )
    work = open_work()
    every, output = as_paths(paths), as_path(output)
    folder = delta_table(every)
    targets = (
        files_to_write(every, in_place=False, output=output)[1]
        if folder is None
        else bare_targets(folder, output)
    )
    refuse_inside(output, every)
    tasks = [FileTask(path=path, target=target) for path, target in targets.items()]
    return _run(work, open_work, tasks, jobs=jobs, progress=progress)


@checked_arguments
def rotate_keys(
    paths: Paths,
    *,
    policy: KeyPolicy | str | PathLike[str],
    moves: Mapping[str, str] | None = None,
    keys: GivenKeys = None,
    old_policy: GivenPolicy = None,
    dry_run: bool = False,
    verify: bool = False,
    where: str | None = None,
    since: int | None = None,
    commit_every: int | None = None,
    jobs: int | None = None,
    progress: FileProgress | None = None,
) -> RekeyReport:
    """Wrap the keys of files under other master keys, or under their newest versions.

    Data keys stay, and so do pages, filters and indexes.  Each wrapped key encryption key is
    rewrapped once in a run, inside the KMS if it can.  A Delta table is handled as by
    :func:`reencrypt`.

    Args:
        paths: Files, folders, globs or URIs, or one Delta table.
        policy: A KeyPolicy, or the path of one.
        moves: Mapping of old master keys to new ones. Other keys stay. By default every file gets
            the master keys that ``policy`` names.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        old_policy: The policy that the files leave. Not together with ``moves``.
        dry_run: Write nothing, but report what a run would do.
        verify: Unwrap the keys of a new local file by its KMS, and read the first page of every
            column, before the file takes its place.
        where: Condition on partition columns that chooses files of a Delta table.
        since: Version of a Delta table. Only files added later are changed.
        commit_every: Number of files after which to commit to a Delta table. By default once, at
            the end.
        jobs: Number of cores; by default all.
        progress: Called for each file that is done.

    Returns:
        A report with a record for each file.

    Raises:
        PolicyError: The KMS lacks a master key.  No file was written.

    Example:
        >>> sb.rotate_keys("out/", policy="keys/policy.toml")
        <RekeyReport: 1 file (1 unchanged)>
    """
    setting = partial(
        rotation,
        moves=moves or {},
        keys=keys,
        old_policy=old_policy,
        dry_run=dry_run,
        verify=verify,
    )
    folder = delta_table(as_paths(paths))
    if folder is not None:
        chosen = TableSelection(where=where, since=since)
        run = open_rotation(folder, policy, moves or {}, chosen, commit_every=commit_every)
        open_beside = partial(setting, run.policy)
        return rekey_table(run, open_beside, jobs=jobs, progress=progress)
    refuse_options_of_tables(where=where, since=since, commit_every=commit_every)
    open_work = partial(setting, policy)
    work = open_work()
    files, _ = files_to_write(paths, in_place=False, output=None)
    tasks = [FileTask(path=path) for path in files]
    # With moves the policy is asked for its KMS alone.
    if not moves:
        check_columns(files, work)
    return _run(work, open_work, tasks, jobs=jobs, progress=progress)


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
        # A file that cannot be read is told of when it is its turn.
        with suppress(SecureBloomError), open_input(path) as file:
            leaves = work.leaves(file)
            if leaves is None:
                return
            missing.intersection_update(missing_columns(policy, leaves))
            known.update(leaf.name for leaf in leaves)
    # If no footer opened, no column is known; each file then tells its own error.
    for name in sorted(missing) if known else ():
        raise unknown_column(name, known)


def _run(
    work: RekeyWork,
    open_work: Callable[[], RekeyWork],
    tasks: Sequence[FileTask],
    *,
    jobs: int | None,
    progress: FileProgress | None,
) -> RekeyReport:
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
