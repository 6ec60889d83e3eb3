"""Change the keys of files: rotate master keys, re-encrypt, decrypt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Final

from secure_bloom.adding.report import file_notes
from secure_bloom.calling.arguments import Progress, checked_arguments
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy, loaded_policy
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.formats import delta_table, refuse_options_of_tables
from secure_bloom.rekeying.bare_folder import BareFolder
from secure_bloom.rekeying.protection import check_lookalikes
from secure_bloom.rekeying.rekey_report import RekeyedFile, RekeyReport, table_notes
from secure_bloom.rekeying.rekey_work import closed_notes, decryption, reencryption, rotation
from secure_bloom.runs.files import FilesTarget, summary_notes
from secure_bloom.runs.loop import Done, run
from secure_bloom.runs.runner import LocalRunner
from secure_bloom.storage.paths import Paths, as_path, as_paths

if TYPE_CHECKING:
    from secure_bloom.lakes.delta.selection import TableSelection
    from secure_bloom.lakes.delta.table_run import TableRun

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
    allow_missing_columns: bool = False,
    dry_run: bool = False,
    verify: bool = False,
    where: str | None = None,
    since: int | None = None,
    commit_every: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
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
        allow_missing_columns: Take columns of the policy that no file has for those of other
            tables. By default they are an error, because one may be misspelt.
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
    if folder is None:
        refuse_options_of_tables(where=where, since=since, commit_every=commit_every)
        target = FilesTarget(paths=paths, output=output)
        open_work = partial(setting, policy, needs_columns=not allow_missing_columns)
        return _files_report(run(open_work, target, LocalRunner(jobs=jobs), progress))
    # Imported here and below: most runs are over files.
    from secure_bloom.lakes.delta.selection import TableSelection
    from secure_bloom.lakes.delta.table_run import refuse_options_of_files

    refuse_options_of_files(folder, in_place=False, output=output is not None)
    chosen = TableSelection(where=where, since=since)
    table, wanted = open_delta_reencryption(
        folder,
        policy,
        chosen,
        commit_every=commit_every,
        allow_missing_columns=allow_missing_columns,
    )
    open_work = partial(setting, wanted, only_changes=True, names=table.opened_names)
    done = run(open_work, table, LocalRunner(jobs=jobs), progress)
    return _table_report(done, table)


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
    progress: Progress | None = None,
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
    every, output = as_paths(paths), as_path(output)
    folder = delta_table(every)
    target = (
        FilesTarget(paths=every, output=output)
        if folder is None
        else BareFolder(paths=every, output=output, folder=folder)
    )
    return _files_report(run(open_work, target, LocalRunner(jobs=jobs), progress))


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
    progress: Progress | None = None,
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
    if folder is None:
        refuse_options_of_tables(where=where, since=since, commit_every=commit_every)
        # With moves the policy is asked for its KMS alone.
        open_work = partial(setting, policy, needs_columns=not moves)
        done = run(open_work, FilesTarget(paths=paths), LocalRunner(jobs=jobs), progress)
        return _files_report(done, closed_notes(moves or {}, done.reports))
    from secure_bloom.lakes.delta.selection import TableSelection

    chosen = TableSelection(where=where, since=since)
    table, wanted = open_delta_rotation(
        folder, policy, moves or {}, chosen, commit_every=commit_every
    )
    open_work = partial(setting, wanted, names=table.opened_names)
    done = run(open_work, table, LocalRunner(jobs=jobs), progress)
    return _table_report(done, table, closed_notes(moves or {}, done.reports))


def _files_report(done: Done[RekeyedFile], closed: Iterable[str] = ()) -> RekeyReport:
    """Return the report of a run over files that belong to no table."""
    _warn(done)
    summaries = () if done.dry_run else summary_notes(done.changed, what="have other keys now")
    notes = (*file_notes(done.reports), *closed, *summaries)
    return RekeyReport(files=done.reports, notes=notes, dry_run=done.dry_run)


def _table_report(
    done: Done[RekeyedFile], table: TableRun, closed: Iterable[str] = ()
) -> RekeyReport:
    """Return the report of a run that wrote new files beside the live ones of a table."""
    _warn(done)
    files = tuple(it.taken_meanwhile() if it.path in done.gone else it for it in done.reports)
    shown = table_notes(done.commits, shows_secrets=table.shows_secrets)
    return RekeyReport(
        files=files,
        notes=(*file_notes(files), *closed, *done.notes, *shown),
        dry_run=done.dry_run,
        commits=done.commits,
    )


def _warn(done: Done[RekeyedFile]) -> None:
    # One warning for the run, and not one in each process that worked on it.
    warn_unverified(report.path for report in done.reports if not report.verified)


def open_delta_reencryption(
    folder: str,
    policy: KeyPolicy | str | PathLike[str],
    chosen: TableSelection,
    *,
    commit_every: int | None = None,
    allow_missing_columns: bool = False,
) -> tuple[TableRun, KeyPolicy]:
    """Return the run that brings the Delta table in a folder under a policy.

    Also returns the policy for its files.  Its errors come before anything is written.
    """
    from secure_bloom.lakes.delta.replacements import Operation
    from secure_bloom.lakes.delta.table_run import open_run

    wanted = _loaded(policy)
    # Names of keys are left out of the history: an encrypted footer hides those of its columns.
    operation = Operation(
        name=REENCRYPT,
        parameters={},
        is_secret=lambda path: wanted.key_in_any_spelling(path) is not None,
    )
    secret = [name for name, rule in wanted.columns.items() if rule.key is not None]
    needed = [] if allow_missing_columns else secret
    run = open_run(folder, operation, chosen, columns=needed, commit_every=commit_every)
    if allow_missing_columns:
        rules = {name: it for name, it in wanted.columns.items() if run.names.stored(name)}
        wanted = replace(wanted, columns=rules)
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
    from secure_bloom.lakes.delta.replacements import Operation
    from secure_bloom.lakes.delta.table_run import open_run

    wanted = _loaded(policy)
    if moves:
        # Then the policy is asked for its KMS alone.
        older = wanted.older_keys | wanted.master_keys()
        wanted = replace(wanted, columns={}, older_keys=older)
    # A rotation makes no column secret that was not, so the log's bounds stay.
    operation = Operation(name=ROTATE, parameters={})
    table = open_run(folder, operation, chosen, commit_every=commit_every)
    table.require(wanted.columns)
    return table, wanted


def _loaded(policy: KeyPolicy | str | PathLike[str]) -> KeyPolicy:
    wanted = loaded_policy(policy)
    if wanted is None:
        raise PolicyError("no policy is given")
    return wanted
