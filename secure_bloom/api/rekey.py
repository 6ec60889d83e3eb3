"""Change the keys of files: rotate master keys, re-encrypt, decrypt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from os import PathLike

from secure_bloom.adding.report import file_notes, notes_in_table
from secure_bloom.api.rekeyed_tables import open_decryption, open_reencryption, open_rotation
from secure_bloom.calling.arguments import Progress, checked_arguments
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy, loaded_policy
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.managed_tables import table_to_write
from secure_bloom.lakes.plain_files import FilesTarget, summary_notes
from secure_bloom.lakes.writable_table import TableChoice
from secure_bloom.rekeying.bare_folder import BareFolder
from secure_bloom.rekeying.rekey_report import RekeyedFile, RekeyReport, table_notes
from secure_bloom.rekeying.rekey_work import closed_notes, decryption, reencryption, rotation
from secure_bloom.runs.loop import Done, run
from secure_bloom.runs.runner import LocalRunner
from secure_bloom.runs.target import TableTarget
from secure_bloom.storage.paths import Paths, as_path, as_paths
from secure_bloom.storage.storage_options import with_storage_options


@checked_arguments
@with_storage_options
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
    branch: str | None = None,
    commit_every: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> RekeyReport:
    """Bring files under ``policy``, whatever protection they have. No page is decoded.

    Plain files are encrypted.  Encrypted files get new data keys and a new AAD and, if the policy
    says so, other keys for columns, another footer mode or another algorithm.  A file that is
    already as the policy says is left unchanged.  A file that fails is reported and stays
    unchanged.  Many small files are shared by processes, and each process asks the policy's KMS
    itself.

    A Delta table, or a table of an Iceberg catalog (``iceberg://CATALOG/NAMESPACE.TABLE``), given
    alone, gets new files and a commit.  Bounds of columns with a key are removed from its metadata.
    The old files stay as they were, in clear or under their old keys, until the table's own
    maintenance removes them.

    Args:
        paths: Files, folders, globs or URIs, or one Delta or Iceberg table.
        policy: A KeyPolicy, or the path of one.
        keys: A keyring or KMS client that opens the old files. It also wraps the new keys if the
            policy has no KMS.
        old_policy: The policy under which the files are now.  No KMS is asked for a key that
            neither policy names.
        output: Folder for the new files. By default files are replaced.
        new_data_keys: Also change files that are already as the policy says.
        allow_missing_columns: Take columns of the policy that no file has for those of other
            tables. By default they are an error, because one may be misspelt.
        dry_run: Write nothing, but report what a run would do.
        verify: Read the first page of every column of a new local file before it takes its place,
            not only of the columns that are copied.
        where: Condition that chooses files: on partition columns of a folder or of a Delta table,
            on any columns of an Iceberg table, as far as partitions and bounds decide.
        since: Version of a Delta table or snapshot id of an Iceberg table. Only files added later
            are changed.
        branch: Branch of an Iceberg table to write to. By default main.
        commit_every: Number of files after which to commit to a table. By default once, at the end.
        jobs: Number of cores; by default all.
        progress: Called for each file that is done.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

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
    choice = TableChoice(
        where=where,
        since=since,
        branch=branch,
        commit_every=commit_every,
        output=output is not None,
    )
    # Listed once: the paths may come from a generator.
    every = as_paths(paths, to_commit=True)
    found = table_to_write(every)
    if found is None:
        choice.refuse()
        wanted = loaded_policy(policy, every)
        target = FilesTarget(paths=every, policy=wanted, where=where, output=output)
        open_work = partial(setting, wanted, needs_columns=not allow_missing_columns)
        done = run(open_work, target, LocalRunner(jobs=jobs), progress)
        return _files_report(done, target.notes(dry_run=dry_run))
    table, wanted = open_reencryption(
        *found, policy, choice, allow_missing_columns=allow_missing_columns
    )
    open_work = partial(setting, wanted, only_changes=True, names=table.opened_names)
    return _table_report(run(open_work, table, LocalRunner(jobs=jobs), progress), table)


@checked_arguments
@with_storage_options
def decrypt(
    paths: Paths,
    *,
    output: str | PathLike[str] | None = None,
    policy: GivenPolicy = None,
    keys: GivenKeys = None,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
    dry_run: bool = False,
    verify: bool = False,
    where: str | None = None,
    since: int | None = None,
    branch: str | None = None,
    commit_every: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> RekeyReport:
    """Write files in clear below ``output``. The old files stay.

    The live files of a Delta table, given alone, are written to a folder without a log. Partition
    values become names of folders.  A table of an Iceberg catalog, given alone and without
    ``output``, gets new files in clear and a commit.  A file that
    is already in clear stays in clear, and is not checked.

    Args:
        paths: Files, folders or globs, or one Delta or Iceberg table.
        output: Folder for the new files. Needed for all but a table of an Iceberg catalog.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        dry_run: Write nothing, but report what a run would do.
        verify: Read the first page of every column of a new local file before it gets its name.
        where: Condition that chooses files: on partition columns of a folder or of a Delta table,
            on any columns of an Iceberg table, as far as partitions and bounds decide.
        since: Snapshot id of an Iceberg table. Only files added later are changed.
        branch: Branch of an Iceberg table to write to. By default main.
        commit_every: Number of files after which to commit to an Iceberg table. By default once, at
            the end.
        jobs: Number of cores; by default all.
        progress: Called for each file that is done.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report with a record for each file.

    Raises:
        PolicyError: The request cannot be met.  No file was written.

    Example:
        >>> sb.decrypt("out/", output="clear/", policy="keys/policy.toml")
        <RekeyReport: 1 file (1 decrypted)>
    """
    # Listed once: the paths may come from a generator.
    every = as_paths(paths, to_commit=True)
    setting = partial(
        decryption,
        Access.of(
            keys,
            policy,
            allow_unverified=allow_unverified,
            allow_unprotected=allow_unprotected,
            paths=every,
        ),
        dry_run=dry_run,
        verify=verify,
    )
    choice = TableChoice(
        where=where,
        since=since,
        branch=branch,
        commit_every=commit_every,
        output=output is not None,
    )
    runner = LocalRunner(jobs=jobs)
    found = table_to_write(every)
    if found is not None and found[0].takes_verb("decrypt", found[1]):
        table = open_decryption(*found, choice)
        open_work = partial(setting, only_changes=True, names=table.opened_names)
        return _table_report(run(open_work, table, runner, progress), table)
    choice.refuse()
    if output is None:
        raise PolicyError(
            "output is needed: a decrypted file does not take the place of the encrypted one",
            hint="name a folder for the files in clear: --output DIR",
            path=every[0],
        )
    output = as_path(output)
    target = (
        FilesTarget(paths=every, where=where, output=output)
        if found is None
        else BareFolder(paths=every, where=where, output=output, folder=found[1])
    )
    done = run(setting, target, runner, progress)
    return _files_report(done, target.notes(dry_run=dry_run))


@checked_arguments
@with_storage_options
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
    branch: str | None = None,
    commit_every: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> RekeyReport:
    """Wrap the keys of files under other master keys, or under their newest versions.

    Data keys stay, and so do pages, filters and indexes.  Each wrapped key encryption key is
    rewrapped once in a run, inside the KMS if it can.  A table is handled as by :func:`reencrypt`.

    Args:
        paths: Files, folders, globs or URIs, or one Delta or Iceberg table.
        policy: A KeyPolicy, or the path of one.
        moves: Mapping of old master keys to new ones. Other keys stay. By default every file gets
            the master keys that ``policy`` names.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        old_policy: The policy under which the files are now. Not together with ``moves``.
        dry_run: Write nothing, but report what a run would do.
        verify: Unwrap the keys of a new local file by its KMS, and read the first page of every
            column, before the file takes its place.
        where: Condition that chooses files: on partition columns of a folder or of a Delta table,
            on any columns of an Iceberg table, as far as partitions and bounds decide.
        since: Version of a Delta table or snapshot id of an Iceberg table. Only files added later
            are changed.
        branch: Branch of an Iceberg table to write to. By default main.
        commit_every: Number of files after which to commit to a table. By default once, at the end.
        jobs: Number of cores; by default all.
        progress: Called for each file that is done.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

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
    choice = TableChoice(where=where, since=since, branch=branch, commit_every=commit_every)
    every, runner = as_paths(paths, to_commit=True), LocalRunner(jobs=jobs)
    found = table_to_write(every)
    if found is None:
        choice.refuse()
        # With moves the policy is asked for its KMS alone.
        wanted = loaded_policy(policy, every)
        open_work = partial(setting, wanted, needs_columns=not moves)
        target = FilesTarget(paths=every, policy=None if moves else wanted, where=where)
        done = run(open_work, target, runner, progress)
        closed = closed_notes(moves or {}, done.reports)
        return _files_report(done, (*target.notes(dry_run=dry_run), *closed))
    table, wanted = open_rotation(*found, policy, moves or {}, choice)
    open_work = partial(setting, wanted, names=table.opened_names)
    done = run(open_work, table, runner, progress)
    return _table_report(done, table, closed_notes(moves or {}, done.reports))


def _files_report(done: Done[RekeyedFile], closed: Iterable[str] = ()) -> RekeyReport:
    """Return the report of a run over files that belong to no table."""
    _warn(done)
    summaries = () if done.dry_run else summary_notes(done.changed, what="have other keys now")
    notes = (*file_notes(done.reports), *closed, *summaries)
    return _report(done, done.reports, notes)


def _table_report(
    done: Done[RekeyedFile], table: TableTarget, closed: Iterable[str] = ()
) -> RekeyReport:
    """Return the report of a run that wrote new files beside a table's live files."""
    _warn(done)
    files = tuple(it.taken_meanwhile() if it.path in done.gone else it for it in done.reports)
    own = notes_in_table(files, done.gone, done.commits)
    shown = table_notes(done.commits, table, dry_run=done.dry_run)
    return _report(done, files, (*own, *closed, *done.notes, *shown))


def _report(
    done: Done[RekeyedFile], files: tuple[RekeyedFile, ...], notes: tuple[str, ...]
) -> RekeyReport:
    return RekeyReport(
        files=tuple(it.planned() for it in files) if done.dry_run else files,
        notes=notes,
        dry_run=done.dry_run,
        seconds=done.seconds,
        commits=done.commits,
    )


def _warn(done: Done[RekeyedFile]) -> None:
    # One warning for the run, and not one in each process that worked on it.
    warn_unverified(report.path for report in done.reports if not report.verified)
