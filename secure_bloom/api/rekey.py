"""Change the keys of files: rotate master keys, re-encrypt, decrypt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Final

from secure_bloom.adding.run import FileTask, files_to_write
from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy, loaded_policy
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError
from secure_bloom.rekeying.protection import check_lookalikes
from secure_bloom.rekeying.rekey_report import RekeyReport
from secure_bloom.rekeying.rekey_run import bare_targets, rekey_paths, rekey_tasks
from secure_bloom.rekeying.rekey_work import FileProgress, decryption, reencryption, rotation
from secure_bloom.storage.listing import refuse_inside
from secure_bloom.storage.paths import Paths, as_path, as_paths
from secure_bloom.tables.formats import delta_table, refuse_options_of_tables

if TYPE_CHECKING:
    from secure_bloom.delta.selection import TableSelection
    from secure_bloom.delta.table_run import TableRun

#: The names of the commits in the history of a Delta table.
REENCRYPT: Final = "REENCRYPT"
ROTATE: Final = "ROTATE KEYS"


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
        # Imported here and below: most runs are over files.
        from secure_bloom.delta.selection import TableSelection
        from secure_bloom.delta.table_run import refuse_options_of_files
        from secure_bloom.rekeying.table_runs import rekey_table

        refuse_options_of_files(folder, in_place=False, output=output is not None)
        chosen = TableSelection(where=where, since=since)
        run, wanted = open_delta_reencryption(folder, policy, chosen, commit_every=commit_every)
        open_beside = partial(setting, wanted, only_changes=True, names=run.opened_names)
        return rekey_table(run, open_beside, jobs=jobs, progress=progress)
    refuse_options_of_tables(where=where, since=since, commit_every=commit_every)
    return rekey_paths(paths, partial(setting, policy), output=output, jobs=jobs, progress=progress)


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
    return rekey_tasks(work, open_work, tasks, jobs=jobs, progress=progress)


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
        from secure_bloom.delta.selection import TableSelection
        from secure_bloom.rekeying.table_runs import rekey_table

        chosen = TableSelection(where=where, since=since)
        run, wanted = open_delta_rotation(
            folder, policy, moves or {}, chosen, commit_every=commit_every
        )
        open_work = partial(setting, wanted, names=run.opened_names)
        return rekey_table(run, open_work, jobs=jobs, progress=progress)
    refuse_options_of_tables(where=where, since=since, commit_every=commit_every)
    # With moves the policy is asked for its KMS alone.
    return rekey_paths(
        paths, partial(setting, policy), has_columns=not moves, jobs=jobs, progress=progress
    )


def open_delta_reencryption(
    folder: str,
    policy: KeyPolicy | str | PathLike[str],
    chosen: TableSelection,
    *,
    commit_every: int | None = None,
) -> tuple[TableRun, KeyPolicy]:
    """Return the run that brings the Delta table in a folder under a policy.

    Also returns the policy for its files.  Its errors come before anything is written.
    """
    from secure_bloom.delta.actions import Operation
    from secure_bloom.delta.table_run import open_run

    wanted = _loaded(policy)
    # Names of keys are left out of the history: an encrypted footer hides those of its columns.
    operation = Operation(
        name=REENCRYPT,
        parameters={},
        is_secret=lambda path: wanted.key_in_any_spelling(path) is not None,
    )
    secret = [name for name, rule in wanted.columns.items() if rule.key is not None]
    run = open_run(folder, operation, chosen, columns=secret, commit_every=commit_every)
    # By the table's names: the files of a mapped table have others, which are like none.
    check_lookalikes(wanted, run.names.paths())
    run.require(wanted.columns)
    return run, wanted


def open_delta_rotation(
    folder: str,
    policy: KeyPolicy | str | PathLike[str],
    moves: Mapping[str, str],
    chosen: TableSelection,
    *,
    commit_every: int | None = None,
) -> tuple[TableRun, KeyPolicy]:
    """Return the run that rotates the keys of the Delta table in a folder.

    Also returns the policy for its files.  Its errors come before anything is written.
    """
    from secure_bloom.delta.actions import Operation
    from secure_bloom.delta.table_run import open_run

    wanted = _loaded(policy)
    if moves:
        # Then the policy is asked for its KMS alone.
        older = wanted.older_keys | wanted.master_keys()
        wanted = replace(wanted, columns={}, older_keys=older)
    # A rotation makes no column secret that was not, so the log's bounds stay.
    operation = Operation(name=ROTATE, parameters={})
    run = open_run(folder, operation, chosen, commit_every=commit_every)
    run.require(wanted.columns)
    return run, wanted


def _loaded(policy: KeyPolicy | str | PathLike[str]) -> KeyPolicy:
    wanted = loaded_policy(policy)
    if wanted is None:
        raise PolicyError("no policy is given")
    return wanted
