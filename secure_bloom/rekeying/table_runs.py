"""Bring files of a Delta table under other keys: write new files beside the old ones, and commit.

The old files stay under their old keys for time travel, until the table's VACUUM removes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike

from secure_bloom.adding.report import file_notes
from secure_bloom.adding.run import FileTask
from secure_bloom.adding.table_change import GONE, TableChange, check_commit_every, new_sizes
from secure_bloom.delta.actions import Operation
from secure_bloom.delta.columns import ColumnNames
from secure_bloom.delta.commit import open_table
from secure_bloom.delta.selection import TableSelection
from secure_bloom.delta.table_run import TableRun
from secure_bloom.encryption.access import loaded_policy
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError, located
from secure_bloom.rekeying.rekey_report import RekeyedFile, RekeyReport
from secure_bloom.rekeying.rekey_work import FileProgress, RekeyWork, closed_notes, rekey_files
from secure_bloom.tables import LiveFile, Snapshot
from secure_bloom.tables.log_bounds import IsSecret, bounded_columns

#: The names of the commits in the table's history.
REENCRYPT, ROTATE = "REENCRYPT", "ROTATE KEYS"
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
_CLUSTERING = "delta.clustering"


@dataclass(frozen=True, slots=True, kw_only=True)
class RekeyRun(TableRun):
    """A run that changes keys. Its policy has the names of columns that the table's files have.

    ``shows_secrets`` says that the log has bounds of columns that are to be secret.
    """

    policy: KeyPolicy
    shows_secrets: bool


def open_reencryption(
    folder: str,
    policy: KeyPolicy | str | PathLike[str],
    chosen: TableSelection,
    *,
    commit_every: int | None = None,
) -> RekeyRun:
    """Return the run that brings the table in a folder under a policy.

    Its errors come before anything is written. Raises UnsupportedFeatureError if the table is
    clustered by a column that is to be secret, because the column's bounds would have to stay in
    the log.
    """
    wanted = _loaded(policy)

    def is_secret(path: tuple[str, ...]) -> bool:
        return wanted.key_for(path) is not None

    run = _open(folder, REENCRYPT, wanted, chosen, commit_every, is_secret)
    for name, rule in wanted.columns.items():
        if rule.key is not None:
            # Checked before anything is written: a misspelt column would stay in clear, and nobody
            # would be told.
            run.names.require(name)
    _refuse_secret_clusters(run.table, run.names, is_secret)
    return run


def open_rotation(
    folder: str,
    policy: KeyPolicy | str | PathLike[str],
    moves: Mapping[str, str],
    chosen: TableSelection,
    *,
    commit_every: int | None = None,
) -> RekeyRun:
    """Return the run that rotates the keys of the table in a folder.

    Its errors come before anything is written.
    """
    wanted = _loaded(policy)
    # With moves the policy tells of the KMS alone.
    policy_of_files = (
        replace(wanted, columns={}, older_keys=wanted.older_keys | wanted.master_keys())
        if moves
        else wanted
    )
    # A rotation makes no column secret that was not, so the log's bounds stay.
    return _open(folder, ROTATE, policy_of_files, chosen, commit_every, None)


def _loaded(policy: KeyPolicy | str | PathLike[str]) -> KeyPolicy:
    wanted = loaded_policy(policy)
    if wanted is None:
        raise PolicyError("no policy is given")
    return wanted


def _open(
    folder: str,
    name: str,
    policy: KeyPolicy,
    chosen: TableSelection,
    commit_every: int | None,
    is_secret: IsSecret | None,
) -> RekeyRun:
    check_commit_every(commit_every)
    table = open_table(folder)
    names = ColumnNames.of(table.metadata)
    # Names of keys are left out: an encrypted footer hides those of its columns.
    given = {"predicate": chosen.where, "since": chosen.since, "written": chosen.written}
    parameters = {key: str(value) for key, value in given.items() if value is not None}
    files = tuple(chosen.files(table))
    return RekeyRun(
        table=table,
        files=files,
        names=names,
        operation=Operation(name=name, parameters=parameters, is_secret=is_secret),
        commit_every=commit_every,
        policy=names.policy_in_files(policy),
        shows_secrets=is_secret is not None and _shows(table, files, is_secret),
    )


def _refuse_secret_clusters(table: Snapshot, names: ColumnNames, is_secret: IsSecret) -> None:
    text = table.domains.get(_CLUSTERING)
    if text is None:
        return
    try:
        columns = [[str(it) for it in path] for path in json.loads(text)["clusteringColumns"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FormatError(f"the domain {_CLUSTERING} is malformed", path=table.folder) from None
    for path in columns:
        # The domain has the physical names (PROTOCOL.md, "Clustered Table").
        name = names.logical(".".join(path))
        if is_secret(tuple(name.split("."))):
            raise UnsupportedFeatureError(
                f"the table is clustered by {name}, whose bounds its log must have in clear",
                hint="cluster the table by columns without a key (ALTER TABLE ... CLUSTER BY)",
                path=table.folder,
            )


def rekey_table(
    run: RekeyRun,
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
        reports.extend(in_logical_names(run.names, report) for report in done)
        return new_sizes(done)

    change = run.rewrite(work, dry_run=rekeying.dry_run)
    gone = run.gone(change, reports)
    told = tuple(_taken_meanwhile(it) if it.path in gone else it for it in reports)
    return RekeyReport(
        files=told,
        notes=(
            *file_notes(told),
            *closed_notes(rekeying, reports),
            *change.notes,
            *table_notes(run, change),
        ),
        dry_run=rekeying.dry_run,
        commits=change.commits,
    )


def in_logical_names(names: ColumnNames, report: RekeyedFile) -> RekeyedFile:
    """Return the report with the table's names of columns."""
    if not names.is_mapped:
        return report
    columns = tuple(replace(it, column=names.logical(it.column)) for it in report.columns)
    return replace(report, columns=columns)


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


def table_notes(run: RekeyRun, change: TableChange) -> Iterator[str]:
    """Yield notes on what old versions of the table still show."""
    if any(commit.files for commit in change.commits):
        yield _OLD_FILES
    if change.commits and run.shows_secrets:
        yield _OLD_LOG


def _shows(table: Snapshot, files: Iterable[LiveFile], is_secret: IsSecret) -> bool:
    """Return whether the log has bounds of secret columns.

    Raises FormatError if this is unknown.
    """
    shown = False
    for file in files:
        # All of them: a run that met one later would have done its work for nothing.
        with located(path=file.path):
            columns = bounded_columns(file.add, table.metadata.schema)
        shown = shown or any(map(is_secret, columns))
    return shown
