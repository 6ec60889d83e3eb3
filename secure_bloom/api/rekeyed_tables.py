"""Open the runs that change the keys of a table's files by commits, whatever the table's format.

    table, policy = open_reencryption(format, place, policy, TableChoice(where="day = 1"))

The policy that is returned is for the files of the table.  Errors come before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from secure_bloom.encryption.access import GivenPolicy, loaded_policy
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.trust import named_by
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.misspelt_tables import check_tables
from secure_bloom.lakes.table_format import TableFormat
from secure_bloom.lakes.writable_table import IsSecret, TableChange, TableChoice, without_dropped
from secure_bloom.rekeying.protection import (
    check_lookalikes,
    is_unknown,
    named_key,
    with_older_names,
)
from secure_bloom.runs.target import TableTarget
from secure_bloom.storage.column_mapping import Path


def open_reencryption(
    form: TableFormat,
    place: str,
    policy: GivenPolicy,
    choice: TableChoice,
    *,
    allow_missing_columns: bool = False,
) -> tuple[TableTarget, KeyPolicy]:
    """Return the run that brings a table under a policy, and the policy for its files.

    With ``allow_missing_columns``, a column of the policy that the table lacks is no error: it is
    taken for a column of another table.
    """
    table = form.open_to_write(place, choice)
    wanted = _loaded(policy).with_tables_at(table.places)
    check_tables(wanted, [place], [])
    wanted = wanted.for_table(place)
    asked = [] if allow_missing_columns else without_dropped(_required(wanted), table)
    # Checked before anything is written: a misspelt column that is to get a key would stay in
    # clear, and nobody would notice.
    with named_by(wanted.source):
        table.check_columns(it for it in asked if wanted.columns[it].key is not None)
        table.require(asked)
    wanted = with_older_names(wanted, table.older_columns())
    # By the table's names: the files of a mapped table have others, which are like none.
    check_lookalikes(wanted, table.names.paths())
    change = TableChange(
        verb="reencrypt",
        is_secret=has_key(wanted),
        # With `uniform`, other columns are encrypted, too, but only these are named as sensitive.
        is_sensitive=has_key(replace(wanted, uniform=False)),
        is_hidden=has_key(wanted),
        moves_pages=True,
    )
    return table.target(change), wanted


def open_rotation(
    form: TableFormat,
    place: str,
    policy: GivenPolicy,
    moves: Mapping[str, str],
    choice: TableChoice,
) -> tuple[TableTarget, KeyPolicy]:
    """Return the run that rotates the keys of a table, and the policy for its files."""
    table = form.open_to_write(place, choice)
    wanted = _loaded(policy).with_tables_at(table.places)
    check_tables(None if moves else wanted, [place], [])
    wanted = wanted.for_table(place)
    is_hidden = has_key(wanted)
    if moves:
        # Then the policy is asked for its KMS alone.
        older = wanted.older_keys | wanted.master_keys()
        wanted = replace(wanted, columns={}, older_keys=older)
    with named_by(wanted.source):
        table.require(without_dropped(_required(wanted), table))
    # A rotation makes no column secret that was not, so bounds stay in the metadata.
    run = table.target(TableChange(verb="rotate", is_hidden=is_hidden))
    return run, with_older_names(wanted, table.older_columns())


def open_decryption(form: TableFormat, place: str, choice: TableChoice) -> TableTarget:
    """Return the run that writes the files of a table in clear."""
    change = TableChange(verb="decrypt", moves_pages=True)
    return form.open_to_write(place, choice).target(change)


def _loaded(policy: GivenPolicy) -> KeyPolicy:
    wanted = loaded_policy(policy)
    if wanted is None:
        raise PolicyError("no policy is given")
    return wanted


def _required(policy: KeyPolicy) -> list[str]:
    """Return the columns that this table must have: those whose rules are in its own section.

    Rules above all sections are for columns of several tables.
    """
    return [path for path in policy.columns if path not in policy.shared]


def has_key(policy: KeyPolicy) -> IsSecret:
    """Return a function that says whether a column has a key under the policy.

    Its arguments are the column's path in a schema of the table, and the path that files show.
    """

    def found(path: Path, shown: Path) -> bool:
        keys = map(policy.key_in_any_spelling, (path, shown))
        return any(keys) or bool(named_key(policy, path)) or is_unknown(policy, shown)

    return found
