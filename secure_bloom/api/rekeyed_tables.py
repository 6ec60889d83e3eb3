"""Open the runs that change the keys of a table's files by commits, one entry a format.

    table, policy = open_reencryption(log, place, policy, TableChoice(where="day = 1"))

The policy that is returned is for the files of the table.  Errors come before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from secure_bloom.encryption.access import GivenPolicy, loaded_policy
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.formats import DELTA, ICEBERG
from secure_bloom.lakes.iceberg.catalog import require_pyiceberg
from secure_bloom.lakes.managed_tables import refuse_options_of_tables
from secure_bloom.lakes.table_format import TableFormat
from secure_bloom.parquet.schema import unknown_column
from secure_bloom.rekeying.protection import (
    check_lookalikes,
    is_unknown,
    named_key,
    with_older_names,
)
from secure_bloom.runs.target import TableTarget
from secure_bloom.storage.column_mapping import (
    ColumnMapping,
    OlderColumn,
    Path,
    is_dropped,
    older_columns,
)

if TYPE_CHECKING:
    from secure_bloom.lakes import Snapshot
    from secure_bloom.lakes.delta.selection import TableSelection
    from secure_bloom.lakes.iceberg.commit_table import CommitTable
    from secure_bloom.lakes.iceberg.live_files import IcebergSelection

#: The names of the commits in the history of a Delta table.
REENCRYPT: Final = "REENCRYPT"
ROTATE: Final = "ROTATE KEYS"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChoice:
    """The options of a call that are for tables alone.

    ``written`` is a time in milliseconds after 1970. Files that were written before it are left
    out.  With ``allow_missing_columns``, columns of the policy that the table lacks are those of
    other tables.
    """

    where: str | None = None
    since: int | None = None
    branch: str | None = None
    commit_every: int | None = None
    written: int | None = None
    allow_missing_columns: bool = False

    def refuse(self) -> None:
        """Raise PolicyError for an option, because there is no table."""
        refuse_options_of_tables(
            where=self.where,
            since=self.since,
            branch=self.branch,
            commit_every=self.commit_every,
        )


# The formats are imported inside the functions: most runs are over files, and many are short.
def open_reencryption(
    log: TableFormat,
    place: str,
    policy: GivenPolicy,
    choice: TableChoice,
    *,
    output: bool = False,
) -> tuple[TableTarget, KeyPolicy]:
    """Return the run that brings a table under a policy. Raises an error for ``output``."""
    wanted = _loaded(policy).for_table(place)
    if log is ICEBERG:
        return _reencrypted_iceberg(place, wanted, choice, output=output)
    return _reencrypted_delta(place, wanted, choice, output=output)


def open_rotation(
    log: TableFormat,
    place: str,
    policy: GivenPolicy,
    moves: Mapping[str, str],
    choice: TableChoice,
) -> tuple[TableTarget, KeyPolicy]:
    """Return the run that rotates the keys of a table."""
    wanted = _loaded(policy).for_table(place)
    if moves:
        # Then the policy is asked for its KMS alone.
        older = wanted.older_keys | wanted.master_keys()
        wanted = replace(wanted, columns={}, older_keys=older)
    if log is ICEBERG:
        return _rotated_iceberg(place, wanted, choice)
    return _rotated_delta(place, wanted, choice)


def open_decryption(
    log: TableFormat, place: str, choice: TableChoice, *, output: bool = False
) -> TableTarget:
    """Return the run that writes the files of a table in clear. Raises an error for ``output``."""
    del log  # of Iceberg: a Delta table is written to a folder without a log
    require_pyiceberg(place)
    from secure_bloom.lakes.iceberg.commit_table import open_table
    from secure_bloom.lakes.iceberg.replacing_snapshot import Rewrite
    from secure_bloom.lakes.iceberg.snapshot_run import open_run, refuse_options_of_files

    refuse_options_of_files(place, in_place=False, output=output)
    rewrite = replace(Rewrite.of("decrypt"), moves_pages=True)
    table = open_table(place, choice.branch)
    return open_run(
        table, rewrite, _iceberg_files(choice), commit_every=choice.commit_every, needs_all=True
    )


def _loaded(policy: GivenPolicy) -> KeyPolicy:
    wanted = loaded_policy(policy)
    if wanted is None:
        raise PolicyError("no policy is given")
    return wanted


def _reencrypted_delta(
    folder: str, wanted: KeyPolicy, choice: TableChoice, *, output: bool
) -> tuple[TableTarget, KeyPolicy]:
    from secure_bloom.lakes.delta.log_commit import open_table
    from secure_bloom.lakes.delta.names import all_columns
    from secure_bloom.lakes.delta.replacements import Operation
    from secure_bloom.lakes.delta.table_run import open_run, refuse_options_of_files

    refuse_options_of_files(folder, in_place=False, output=output)
    table = open_table(folder)
    names = all_columns(table.metadata)
    older = _older_columns_of_delta(table)
    asked = _without_dropped(_required(wanted), names, older)
    wanted = with_older_names(wanted, older)
    if choice.allow_missing_columns:
        asked = []

    def is_secret(path: Path) -> bool:
        shown = names.shown(path)
        keys = map(wanted.key_in_any_spelling, (path, shown))
        return any(keys) or is_unknown(wanted, shown)

    run = open_run(
        table,
        # Names of keys are left out of the history: an encrypted footer hides those of its columns.
        Operation(name=REENCRYPT, parameters={}, is_secret=is_secret),
        _delta_files(folder, choice),
        columns=[it for it in asked if wanted.columns[it].key is not None],
        commit_every=choice.commit_every,
    )
    # By the table's names: the files of a mapped table have others, which are like none.
    check_lookalikes(wanted, run.names.paths())
    run.require(asked)
    return run, wanted


def _rotated_delta(
    folder: str, wanted: KeyPolicy, choice: TableChoice
) -> tuple[TableTarget, KeyPolicy]:
    from secure_bloom.lakes.delta.log_commit import open_table
    from secure_bloom.lakes.delta.replacements import Operation
    from secure_bloom.lakes.delta.table_run import open_run

    table = open_table(folder)
    # A rotation makes no column secret that was not, so the log's bounds stay.
    operation = Operation(name=ROTATE, parameters={})
    run = open_run(table, operation, _delta_files(folder, choice), commit_every=choice.commit_every)
    older = _older_columns_of_delta(table)
    run.require(_without_dropped(_required(wanted), run.names, older))
    return run, with_older_names(wanted, older)


def _older_columns_of_delta(table: Snapshot) -> list[OlderColumn]:
    from secure_bloom.lakes.delta.names import column_names

    names = column_names(table.metadata)
    # Without column mapping no column is dropped or renamed, and files have the table's names.
    return [] if names is None else older_columns(names, DELTA.older_names(table))


def _required(policy: KeyPolicy) -> list[str]:
    """Return the columns that the policy has for this table, and not for all of its tables."""
    return [path for path in policy.columns if path not in policy.shared]


def _without_dropped(
    columns: Iterable[str], names: ColumnMapping, older: Iterable[OlderColumn]
) -> list[str]:
    """Return the columns that the table must have: not those that it had once and has dropped."""
    dropped = {".".join(it.path) for it in older if is_dropped(it.shown)}
    return [it for it in columns if names.stored(it) is not None or it not in dropped]


def _delta_files(folder: str, choice: TableChoice) -> TableSelection:
    from secure_bloom.lakes.delta.selection import TableSelection

    if choice.branch is not None:
        raise PolicyError("branch is for Iceberg tables: a Delta table has none", path=folder)
    return TableSelection(where=choice.where, since=choice.since, written=choice.written)


def _reencrypted_iceberg(
    path: str, wanted: KeyPolicy, choice: TableChoice, *, output: bool
) -> tuple[TableTarget, KeyPolicy]:
    require_pyiceberg(path)
    from secure_bloom.lakes.iceberg.columns import TableColumns
    from secure_bloom.lakes.iceberg.commit_table import open_table
    from secure_bloom.lakes.iceberg.replacing_snapshot import Rewrite
    from secure_bloom.lakes.iceberg.snapshot_run import open_run, refuse_options_of_files

    refuse_options_of_files(path, in_place=False, output=output)
    table = open_table(path, choice.branch)
    columns = TableColumns.of(table.metadata)
    for name, rule in wanted.columns.items() if not choice.allow_missing_columns else ():
        # Checked before anything is written: a misspelt column that is to get a key would stay in
        # clear, and nobody would notice.
        if rule.key is not None and not columns.has(name) and name not in wanted.shared:
            known = map(".".join, columns.current.values())
            raise unknown_column(name, known, (path,))
    wanted = with_older_names(wanted, _older_columns_of_iceberg(table))
    check_lookalikes(wanted, table.names.paths())

    def is_secret(path: Path, policy: KeyPolicy = wanted) -> bool:
        return bool(policy.key_in_any_spelling(path) or named_key(policy, path))

    rewrite = replace(
        Rewrite.of("reencrypt"),
        secret=columns.secret(is_secret),
        known=columns.ids,
        moves_pages=True,
    )
    own = replace(wanted, uniform=False)
    run = open_run(
        table,
        rewrite,
        _iceberg_files(choice),
        commit_every=choice.commit_every,
        needs_all=True,
        # With `uniform`, other columns are encrypted, too, but only these are named as sensitive.
        sensitive=columns.secret(lambda path: is_secret(path, own)),
    )
    return run, wanted


def _rotated_iceberg(
    path: str, wanted: KeyPolicy, choice: TableChoice
) -> tuple[TableTarget, KeyPolicy]:
    require_pyiceberg(path)
    from secure_bloom.lakes.iceberg.commit_table import open_table
    from secure_bloom.lakes.iceberg.replacing_snapshot import Rewrite
    from secure_bloom.lakes.iceberg.snapshot_run import open_run

    table = open_table(path, choice.branch)
    wanted = with_older_names(wanted, _older_columns_of_iceberg(table))
    run = open_run(
        table,
        # A rotation makes no column secret that was not, so bounds stay.  Pages do not move.
        Rewrite.of("rotate"),
        _iceberg_files(choice),
        commit_every=choice.commit_every,
        needs_all=True,
    )
    return run, wanted


def _older_columns_of_iceberg(table: CommitTable) -> list[OlderColumn]:
    from secure_bloom.lakes.iceberg.table import names_of_structure

    schemas = sorted(table.metadata.schemas, key=lambda it: it.schema_id)
    return older_columns(table.names, (names_of_structure(it.as_struct()) for it in schemas))


def _iceberg_files(choice: TableChoice) -> IcebergSelection:
    from secure_bloom.lakes.iceberg.live_files import IcebergSelection

    if choice.written is not None:
        raise PolicyError(
            "since: an Iceberg table takes the id of a snapshot",
            hint="the commits of a report have it as their version",
        )
    return IcebergSelection(where=choice.where, since=choice.since)
