"""Build indexes: of data files, beside them; of a table, by a commit of its snapshots."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from os import PathLike

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.formats import PAIMON
from secure_bloom.lakes.managed_tables import find_unmanaged
from secure_bloom.lakes.paimon.names import is_table
from secure_bloom.paimon.column_filter import BuildReport, IndexReport
from secure_bloom.paimon.index_builder import (
    Columns,
    IndexMerge,
    failed_report,
    file_builder,
)
from secure_bloom.paimon.index_files import table_alone
from secure_bloom.running.parallelism import chosen_parallelism, each_file
from secure_bloom.storage.paths import Paths, as_path, as_paths, files_at_once, mean_size


@checked_arguments
def build_index(
    data_file: str | PathLike[str],
    columns: Columns | None = None,
    *,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    allow_clear_index: bool = False,
    replace_damaged: bool = False,
    dry_run: bool = False,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
    where: str | None = None,
    since: int | None = None,
    commit_every: int | None = None,
    jobs: int | None = None,
) -> IndexReport | BuildReport:
    """Write ``<data file>.index`` with a Bloom filter of each of ``columns``.

    Other indexes in an existing index file are kept.  The index file is written whole or not at
    all, and the data file is not changed.

    For a table, do what :func:`build_indexes` does.

    Args:
        data_file: The data file, or a Paimon table: its folder, or
            ``paimon://WAREHOUSE/DATABASE.TABLE``.
        columns: Top-level columns, or keys of maps, ``m[k]``; names, or a mapping to options. For a
            table, by default those of its own options.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_clear_index: Index encrypted columns too, although the index is in clear.
        replace_damaged: Write a new index in place of an unreadable one.
        dry_run: Write nothing, but report what a run would do.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        where: Condition on partition columns that chooses files of a table.
        since: Number of a snapshot. Only files that a table got later are indexed.
        commit_every: Number of files after which to commit to a table. By default once, at the end.
        jobs: Number of cores for a table; by default all.

    Returns:
        A report of the index, or of all files of a table.

    Raises:
        PolicyError: A column is encrypted, and ``allow_clear_index`` is not given.
        FormatError: The existing index is damaged.
    """
    path = as_path(data_file)
    if is_table(path):
        return build_indexes(
            path,
            columns,
            keys=keys,
            policy=policy,
            allow_clear_index=allow_clear_index,
            replace_damaged=replace_damaged,
            dry_run=dry_run,
            allow_unverified=allow_unverified,
            allow_unprotected=allow_unprotected,
            where=where,
            since=since,
            commit_every=commit_every,
            jobs=jobs,
        )
    _refuse_options_of_tables(where=where, since=since, commit_every=commit_every)
    access = Access.of(
        keys, policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected
    )
    merge = IndexMerge(replace_damaged=replace_damaged, dry_run=dry_run)
    build = file_builder(_named(columns), access, merge, allow_clear_index=allow_clear_index).build
    report = build(path)
    warn_unverified(() if report.verified else (report.path,))
    return report


@checked_arguments
def build_indexes(
    paths: Paths,
    columns: Columns | None = None,
    *,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    allow_clear_index: bool = False,
    replace_damaged: bool = False,
    dry_run: bool = False,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
    where: str | None = None,
    since: int | None = None,
    commit_every: int | None = None,
    jobs: int | None = None,
) -> BuildReport:
    """Build the index of each data file at ``paths``, as :func:`build_index` does.

    A file that fails is reported and does not stop the others.  Many small files are shared by
    processes, and each process asks the policy's KMS itself.

    A Paimon table, given alone, gets indexes of its live data files, and a snapshot that lists
    them.  A file whose index has these filters already is left as it is.

    Args:
        paths: Data files, folders or globs; or one Paimon table: its folder, or
            ``paimon://WAREHOUSE/DATABASE.TABLE``.
        columns: Top-level columns, or keys of maps, ``m[k]``; names, or a mapping to options. For a
            table, by default those of its own options.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_clear_index: Index encrypted columns too, although the index is in clear.
        replace_damaged: Write a new index in place of an unreadable one.
        dry_run: Write nothing, but report what a run would do.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        where: Condition on partition columns that chooses files of a table.
        since: Number of a snapshot. Only files that a table got later are indexed.
        commit_every: Number of files after which to commit to a table. By default once, at the end.
        jobs: Number of cores; by default all.

    Returns:
        A report with a record for each file.

    Raises:
        PolicyError: The request cannot be met.  No index was written.
        UnfinishedWriteError: It is unknown whether the snapshot of a table was created.

    Example:
        >>> sb.paimon.build_indexes("plain/", "email")
        <BuildReport: 1 file (1 built)>
    """
    given = as_paths(paths)
    access = Access.of(
        keys, policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected
    )
    table = table_alone(given)
    if table is not None:
        # Imported for tables alone: most runs are over files.
        from secure_bloom.paimon.table_files import IndexSelection
        from secure_bloom.paimon.table_run import IndexRequest, build_table, run_here

        request = IndexRequest(
            columns=columns,
            access=access,
            selection=IndexSelection(where=where, since=since),
            commit_every=commit_every,
            allow_clear_index=allow_clear_index,
            replace_damaged=replace_damaged,
            dry_run=dry_run,
        )
        return build_table(table, request, run_here(jobs))
    _refuse_options_of_tables(where=where, since=since, commit_every=commit_every)
    open_work = partial(
        _reporter,
        _named(columns),
        access,
        IndexMerge(replace_damaged=replace_damaged, dry_run=dry_run),
        allow_clear_index=allow_clear_index,
    )
    work = open_work()
    files = find_unmanaged(given, honoured=[PAIMON])
    parallelism = chosen_parallelism(
        len(files), jobs, mean_size=mean_size(files), at_once=files_at_once(files)
    )
    done = each_file(work, open_work, files, parallelism, lost=failed_report)
    with closing(done):
        found = dict(done)
    # Files are done in any order, and reported in that of their paths.
    reports = tuple(found[index] for index in range(len(files)))
    warn_unverified(file.path for file in reports if not file.verified)
    return BuildReport(files=reports, dry_run=dry_run)


def _refuse_options_of_tables(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise PolicyError(
                f"{name} is for a Paimon table, given alone",
                hint="name the files or folders that are wanted instead",
            )


def _named(columns: Columns | None) -> Columns:
    if columns is None:
        raise PolicyError("no column is named for an index", hint="name columns: --column id")
    return columns


def _reporter(
    columns: Columns, access: Access, merge: IndexMerge, *, allow_clear_index: bool
) -> Callable[[str], IndexReport]:
    """Return the function that works on one file, in this process or another."""
    return file_builder(columns, access, merge, allow_clear_index=allow_clear_index).report
