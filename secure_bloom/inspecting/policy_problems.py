"""Find what is wrong with a policy before Spark does: alone, and against the columns of a table.

checked = check_policy("policy.toml", table="lake/", keys=None)
checked.problems                     what will fail
checked.notes                        what works and is most likely not meant
"""

from __future__ import annotations

import datetime
import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os import PathLike

from secure_bloom.calling.close_names import CloseNames, differ_by_number
from secure_bloom.encryption.access import Access, GivenKeys, lacking_keys_hint
from secure_bloom.encryption.configuration import close_match
from secure_bloom.encryption.kms import Keyring
from secure_bloom.encryption.policy import KeyPolicy, draft_policy
from secure_bloom.encryption.policy_tables import expired
from secure_bloom.encryption.spark_columns import spark_problems
from secure_bloom.encryption.spark_ddl import schema_columns
from secure_bloom.encryption.table_patterns import UnknownTableError, is_catalog_address
from secure_bloom.errors import KeyUnavailableError, PolicyError, SecureBloomError, located
from secure_bloom.lakes import list_tables
from secure_bloom.lakes.misspelt_tables import misspelt_tables
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import unlock
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.schema import (
    INT96_NOTE,
    Leaf,
    Leaves,
    partition_error,
    partition_names,
    require_filterable,
    select,
    unknown_column,
)
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.reports.text import legible, named_columns, shell_word
from secure_bloom.storage.paths import Paths, as_paths

#: Names of keys with at least this likeness may be one name, misspelt.
_ALIKE = 0.85
_WILL_BE_INT96 = (
    "Spark writes timestamps as INT96 unless the session has "
    "spark.sql.parquet.outputTimestampType = TIMESTAMP_MICROS; no reader can look a value of INT96 "
    "up in a filter"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPolicy:
    """What is wrong with a policy. ``is_valid`` is False if it cannot be loaded at all."""

    is_valid: bool
    problems: tuple[SecureBloomError, ...] = ()
    notes: tuple[str, ...] = ()


def check_policy(
    path: str | PathLike[str],
    *,
    table: str | None = None,
    schema: str | None = None,
    keys: GivenKeys = None,
    findings: Collection[str] = (),
) -> CheckedPolicy:
    """Return what is wrong with the policy in a file.

    ``findings`` are the ids of all findings of an audit.

    ``table`` is a table whose columns are compared with the rules, or ``schema`` a schema of Spark.
    ``keys`` open encrypted footers. Raises the errors of reading the file and the footers.
    """
    policy, problems = draft_policy(path)
    if policy is None:
        return CheckedPolicy(is_valid=False, problems=problems)
    found: list[SecureBloomError] = [*_missing_keys(policy), *_unknown_findings(policy, findings)]
    try:
        policy.check_has_rules()
    except PolicyError as error:
        found.append(error)
    notes = [*_unnamed_keys(policy), *_alike_keys(policy), *_contradictions(policy)]
    if table is not None:
        names = set[str]()
        seen = set[str]()
        for own, leaves, paths, partitioned in _columns_by_table(policy, table, keys, found):
            partitions = list(_partitions(own, paths))
            named = {error.column for error in partitions}
            others = (it for it in _problems_of_columns(own, leaves) if it.column not in named)
            found += [_in_section(own, error) for error in (*partitions, *others)]
            own_names = {leaf.name for leaf in leaves}.union(
                *(partition_names(folder) for folder in {it.rpartition("/")[0] for it in paths}),
                partitioned,
            )
            notes += _in_each_section(
                own,
                *_footer_alone(own, [leaf.path for leaf in leaves]),
                *_int96_columns(own, leaves),
                *(_unknown_clear(own, own_names, but=policy.clear) if policy.tables else ()),
            )
            names.update(own_names)
            seen.update(policy.tables_at(paths[0]))
        # What the policy says of all tables may be about any of them.
        if policy.tables.keys() <= seen:
            notes += [*_unknown_clear(policy, names), *_unknown_accepted(policy, names)]
    elif schema is not None:
        columns = schema_columns(schema)
        own = policy.for_columns([name.split(".") for name, _ in columns])
        found += _spark_problems(own, [tuple(name.split(".")) for name, _ in columns])
        notes += _int96_to_come(own, dict(columns))
    else:
        for own in policy.tables.values() or (policy,):
            found += [_in_section(own, error) for error in _spark_problems(own, None)]
            notes += _in_each_section(own, *_footer_alone(own, None))
    return CheckedPolicy(
        is_valid=True, problems=tuple(_distinct(found)), notes=tuple(dict.fromkeys(notes))
    )


def _partitions(policy: KeyPolicy, paths: Sequence[str]) -> Iterator[PolicyError]:
    """Yield a problem for each column with a key whose values are in names of folders."""
    for name, rule in policy.columns.items():
        error = partition_error(name, paths) if rule.key is not None else None
        if error is not None:
            yield error


def _in_section(policy: KeyPolicy, error: SecureBloomError) -> SecureBloomError:
    """Return the problem.

    In a policy of several tables its text begins with the table's section.
    """
    if policy.table is None:
        return error
    message = f'[tables."{policy.table}"]: {error.message}'
    return PolicyError(message, hint=error.hint, column=error.column, path=error.path)


def _in_each_section(policy: KeyPolicy, *notes: str) -> list[str]:
    """Return the notes. In a policy of several tables each begins with its table's section."""
    return [
        note if policy.table is None else f'[tables."{policy.table}"]: {note}' for note in notes
    ]


def _distinct(problems: Sequence[SecureBloomError]) -> Iterator[SecureBloomError]:
    """Yield each problem once: several tables may share a rule."""
    seen = {(problem.column, problem.message, problem.path): problem for problem in problems}
    yield from seen.values()


def _spark_problems(
    policy: KeyPolicy, paths: Collection[tuple[str, ...]] | None
) -> Iterator[SecureBloomError]:
    if policy.footer_key is not None and not list(_footer_alone(policy, paths)):
        yield from spark_problems(policy, paths)


def _footer_alone(policy: KeyPolicy, paths: Collection[tuple[str, ...]] | None) -> Iterator[str]:
    """Yield a note for each table whose footer is encrypted, although none of its columns is.

    A policy of one table that gives no column a key has a problem instead, and gets no note.
    """
    if policy.footer_key is None or policy.uniform or (paths is None and policy.table is None):
        return
    known = policy if paths is None else policy.for_columns(paths)
    if all(rule.key is None for rule in known.columns.values()):
        yield (
            "no column has a key, and Spark encrypts no footer alone: let Spark write the table in "
            "clear, then secure-bloom reencrypt TABLE --policy FILE"
        )


def _problems_of_columns(policy: KeyPolicy, leaves: tuple[Leaf, ...]) -> Iterator[SecureBloomError]:
    paths = [leaf.path for leaf in leaves]
    problems = list(_spark_problems(policy, paths))
    yield from problems
    known = {problem.column for problem in problems}
    # A rule whose column is not there has a problem already, which names the similar column.
    yield from (error for like, error in _lookalikes(policy, paths) if like not in known)
    names = CloseNames(leaf.name for leaf in leaves)
    for name in policy.bloom_columns():
        if name not in known:
            yield from _problems_of_filter(policy, name, leaves, names)


def _problems_of_filter(
    policy: KeyPolicy, name: str, leaves: tuple[Leaf, ...], known: CloseNames
) -> Iterator[SecureBloomError]:
    """Yield why `add` refuses the filters of a column."""
    ordinals = select(leaves, name)
    if not ordinals and name not in policy.shared:
        yield unknown_column(name, known)
    for ordinal in ordinals:
        try:
            require_filterable(leaves[ordinal])
        except SecureBloomError as error:
            yield error


def _lookalikes(
    policy: KeyPolicy, paths: Sequence[tuple[str, ...]]
) -> Iterator[tuple[str, PolicyError]]:
    """Yield each sensitive column that a column in clear is like, with the problem."""
    clear = [path for path in paths if policy.key_for(path) is None]
    for path, like in policy.likeness.lookalikes(clear, paths).items():
        yield like, policy.alike_error(".".join(path), like)


def _columns_by_table(
    policy: KeyPolicy, table: str, keys: GivenKeys, found: list[SecureBloomError]
) -> Iterator[tuple[KeyPolicy, tuple[Leaf, ...], Sequence[str], set[str]]]:
    """Yield the columns, files and partition columns of logs at a path, table by table.

    Errors of other files go to ``found``.
    """
    own = policy.for_paths([table])
    listing = list_tables([table])
    partitioned = {name for log in listing.logs for name in log.partition_columns}
    if not own.tables:
        yield own, _leaves([table], keys, own), listing.paths, partitioned
        return
    policy = policy.with_tables_at(listing.places())
    found += (error for _, error in misspelt_tables(policy, [table], listing.paths))
    if is_catalog_address(table):
        # Its columns are those of the catalog: single files of it are not read.
        own = policy.for_table(table)
        yield own, _leaves([table], keys, own), listing.paths, partitioned
        return
    files: dict[str | None, list[str]] = {}
    for path in listing.paths:
        try:
            files.setdefault(policy.for_table(path).table, []).append(path)
        except UnknownTableError as error:
            found.append(error)
    for paths in files.values():
        own = policy.for_table(paths[0])
        yield own, _leaves(paths, keys, own), paths, partitioned


def _leaves(paths: list[str], keys: GivenKeys, policy: KeyPolicy) -> tuple[Leaf, ...]:
    """Return the columns of a table. Keys are used only for encrypted footers."""
    try:
        return table_leaves(paths)
    except KeyUnavailableError:
        return table_leaves(paths, Access(keys=keys, policy=policy))


def _int96_columns(policy: KeyPolicy, leaves: tuple[Leaf, ...]) -> Iterator[str]:
    """Yield a note on the columns whose filters in the policy no reader can use."""
    asked = (ordinal for name in policy.bloom_columns() for ordinal in select(leaves, name))
    found = {leaf.name: leaf for leaf in map(leaves.__getitem__, asked) if leaf.type is Type.INT96}
    if found:
        yield f"{named_columns(list(found))}: {INT96_NOTE}"


def _int96_to_come(policy: KeyPolicy, kinds: dict[str, str]) -> Iterator[str]:
    """Yield a note on timestamp columns with a filter, which readers cannot use for INT96."""
    asked = policy.bloom_columns()
    times = (name for name, kind in kinds.items() if kind.lower() in _INT96_KINDS)
    if found := [it for it in times if not _with_parents([it]).isdisjoint(asked)]:
        yield f"{named_columns(found)}: {_WILL_BE_INT96}"


#: The types that Spark writes by `outputTimestampType`; `timestamp_ntz` is always INT64.
_INT96_KINDS = frozenset({"timestamp", "timestamp_ltz"})


def _keyring(policy: KeyPolicy) -> Keyring | None:
    """Return the policy's keyring, if it has one on this machine. No KMS is asked."""
    path = policy.keyring_path()
    return Keyring.load(path) if path is not None and path.exists() else None


def _missing_keys(policy: KeyPolicy) -> Iterator[SecureBloomError]:
    """Yield a problem for each key of the policy that its keyring lacks."""
    keyring = _keyring(policy)
    if keyring is None:
        return
    # Of several columns with a key the first one counts.
    columns: dict[str | None, tuple[KeyPolicy, str]] = {}
    for own in (*policy.tables.values(), policy):
        for path in (it for it in own.columns if it not in own.shared):
            columns.setdefault(own.columns[path].key, (own, path))
    for name in sorted(policy.master_keys() - keyring.master_keys.keys()):
        own, column = columns.get(name, (policy, None))
        error = PolicyError(
            f"the keyring has no key {name}",
            hint=lacking_keys_hint([name], keyring, policy),
            column=column,
        )
        yield _in_section(own, error)
    # A retired key may be destroyed. An older one opens files, which no new key does.
    for name in sorted(policy.older_keys - policy.master_keys() - keyring.master_keys.keys()):
        yield PolicyError(
            f"the keyring has no key {name}, which [keys.{name}] names for older files",
            hint="add that very key to the keyring; if no file depends on it (secure-bloom keys "
            f"used PATH --key {shell_word(name)}), take [keys.{name}] out of the policy",
        )


def _unknown_findings(policy: KeyPolicy, known: Collection[str]) -> Iterator[PolicyError]:
    """Yield a problem for each entry of [[audit.ignore]] that does not name a known finding."""
    for entry in policy.accepted:
        name, colon, column = entry.finding.partition(":")
        if name not in known:
            yield PolicyError(
                f"[[audit.ignore]]: {name!r} is not the id of a finding",
                hint=close_match(name, known),
            )
        elif colon and not column:
            yield PolicyError(
                f"[[audit.ignore]]: {entry.finding!r} names no column",
                hint=f"for every column: {name}",
            )


def _unknown_accepted(policy: KeyPolicy, names: Collection[str]) -> Iterator[str]:
    """Yield a note for each column of an accepted finding that no table has."""
    known = _with_parents(names) | policy.columns.keys()
    for entry in policy.accepted:
        column = entry.finding.partition(":")[2]
        if column and column not in known:
            error = unknown_column(column, names)
            yield f"[[audit.ignore]] {entry.finding}: {error.message}; {error.hint}"


def _unknown_clear(
    policy: KeyPolicy, names: Collection[str], *, but: Collection[str] = ()
) -> Iterator[str]:
    """Yield a note for each name or pattern in ``clear``, not in ``but``, that fits no column."""
    known = _with_parents(names) | policy.columns.keys()
    for pattern in policy.clear:
        if pattern not in but and not any(fnmatchcase(name, pattern) for name in known):
            error = unknown_column(pattern, names)
            yield f"[classified] clear: {error.message}; {error.hint}"


def _with_parents(names: Iterable[str]) -> set[str]:
    """Return dotted names, and the names of the structures that contain them."""
    split = (name.split(".") for name in names)
    return {".".join(parts[:depth]) for parts in split for depth in range(1, len(parts) + 1)}


def _contradictions(policy: KeyPolicy) -> Iterator[str]:
    """Yield a note for each rule that has no effect, and for a keyring that is not there."""
    today = datetime.datetime.now(datetime.UTC).date()
    yield from (f"[[audit.ignore]] {it}" for it in expired(policy.accepted, today))
    for one in (policy, *policy.tables.values()):
        keyed = sorted(path for path, rule in one.columns.items() if rule.key is not None)
        for pattern in one.clear:
            for path in keyed if pattern != "*" else ():
                if fnmatchcase(path, pattern):
                    yield from _in_each_section(
                        one,
                        f"[classified] clear names {path}, which has key "
                        f"{one.columns[path].key}: it is encrypted",
                    )
    keyring = policy.keyring_path()
    if keyring is not None and not keyring.exists() and policy.master_keys():
        yield (
            f"there is no keyring {legible(str(keyring))}; to make it: secure-bloom keys new "
            f"{shell_word(str(keyring))} {' '.join(map(shell_word, sorted(policy.master_keys())))}"
        )


def _unnamed_keys(policy: KeyPolicy) -> Iterator[str]:
    """Yield a note on keys in the policy's keyring that the policy does not name."""
    keyring = _keyring(policy)
    unnamed = [] if keyring is None else sorted(keyring.master_keys.keys() - policy.named_keys())
    if unnamed:
        yield (
            f"the keyring has keys that the policy does not name: {', '.join(unnamed)}; files "
            "under them are opened all the same, because a keyring is its owner's choice"
        )


def _alike_keys(policy: KeyPolicy) -> Iterator[str]:
    """Yield a note for each key that is named once, if another that is named more often is like it.

    Names that differ only by numbers, such as those of years, do not count as alike.
    """
    every = (policy, *policy.tables.values())[bool(policy.tables) :]
    rules = {(it.table, rule.path): rule.key for it in every for rule in it.columns.values()}
    counts = Counter(key for key in (*rules.values(), policy.footer_key) if key is not None)
    often = CloseNames(key for key, count in counts.items() if count > 1)
    for key in sorted(counts.keys() - set(often.names)):
        others = [it for it in often.near(key) if not differ_by_number(it, key)]
        for like in difflib.get_close_matches(key, others, n=1, cutoff=_ALIKE):
            yield f"key {key} is named once, and is like {like}: did you mean {like!r}?"


def table_leaves(paths: Paths, access: Access | None = None) -> tuple[Leaf, ...]:
    """Return every leaf that a file at ``paths`` has, once.

    Only footers are read, and signatures are not checked.  If the table has a log, its live files
    count, and columns have the names of the table.  Raises KeyUnavailableError for an encrypted
    footer without its key.
    """
    resolver = (access or Access()).describing_resolver()
    found: dict[tuple[str, ...], Leaf] = {}
    listing = list_tables(as_paths(paths))
    for path in listing.paths:
        with located(path=path), listing.open(path) as file:
            # Unverified: names of columns are what is wanted, to choose from, and no value is
            # believed.
            footer = unlock(read_tail(file), file_keys(resolver, file), allow_unverified=True)
            for leaf in footer.leaves:
                found.setdefault(leaf.path, leaf)
    return Leaves(found.values())
