"""policy.toml <-> KeyPolicy: for each column, the master key that protects it and its filters.

A policy holds names of keys but no keys, so it may be sent to executors, kept in version control
and given to an auditor.  It also gives the properties that make Spark write as the policy says.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path

from secure_bloom.calling.arguments import check_fields, checked_arguments, member_of
from secure_bloom.calling.options import (
    ALLOW_UNPROTECTED,
    BloomFilterOptions,
    FooterMode,
    as_names,
)
from secure_bloom.encryption.configuration import close_match
from secure_bloom.encryption.kms import Keyring, KmsClient, NamedKeys
from secure_bloom.encryption.likeness import Likeness
from secure_bloom.encryption.policy_files import PolicySource, read_policy
from secure_bloom.encryption.policy_tables import (
    AcceptedFinding,
    ColumnRule,
    EncryptionOptions,
    PolicyFields,
    check_key_name,
    policy_fields,
    problems,
    table_fields,
    toml_string,
)
from secure_bloom.encryption.spark_properties import spark_properties
from secure_bloom.encryption.table_patterns import (
    UnknownTableError,
    inside,
    is_catalog_address,
    like_table,
    misspelt,
    places_of,
    tables_of,
)
from secure_bloom.errors import PolicyError, located

#: The end of a hint about a key that the policy does not name.
_READ_AS_IT_IS = f"to read it as it is: {ALLOW_UNPROTECTED}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPolicy:
    """The master keys that protect the footer and the columns of a table. Picklable, without keys.

    Raises PolicyError for what no writer can do, such as a column key without a footer key.

    Attributes:
        footer_key: The master key of the footer. A footer with a key is encrypted unless
            ``footer_mode`` is SIGNED. A footer without a key is PLAINTEXT.
        footer_mode: Whether the footer is encrypted, signed, or neither.
        columns: Dotted path -> the rule of that column.
        uniform: Whether columns without a key of their own are under the footer's key.
        drop_metadata: Texts that re-encryption leaves out of the footer, such as ``ARROW:schema``.
        retired_keys: Master keys that no file should need any more.
        older_keys: Other master keys that files may be under. A KMS is asked for no key that the
            policy does not name.
        clear: Columns that may be in clear, as dotted paths in which ``*`` is any text.
        accepted: Findings that an audit does not count.
        duckdb_reads: Whether DuckDB reads the files, so that no filter is added that DuckDB cannot
            read.
        kms: The ``[kms]`` table as written.
        base: The folder at which the relative paths of ``kms`` start.
        tables: Pattern of paths and addresses -> the whole policy of these tables. A policy
            with tables has the rules of all of them as ``columns``, and :meth:`for_table` returns
            the policy of one.
        table: The pattern of the table that this policy is for, in a policy with several.
        shared: Columns whose rules are for all tables, so that a table may lack them.
        included: The other files of the policy.
    """

    footer_key: str | None = None
    footer_mode: FooterMode = FooterMode.ENCRYPTED
    uniform: bool = False
    drop_metadata: frozenset[str] = frozenset()
    columns: Mapping[str, ColumnRule] = field(default_factory=dict)
    # The table is not shown: it goes to any class of the user's, and may hold a token for it.
    kms: Mapping[str, object] = field(default_factory=dict, repr=False)
    base: Path = field(default_factory=Path.cwd)
    encryption: EncryptionOptions = field(default_factory=EncryptionOptions)
    retired_keys: frozenset[str] = frozenset()
    older_keys: frozenset[str] = frozenset()
    clear: tuple[str, ...] = ()
    accepted: tuple[AcceptedFinding, ...] = ()
    duckdb_reads: bool = False
    tables: Mapping[str, KeyPolicy] = field(default_factory=dict)
    table: str | None = None
    shared: frozenset[str] = frozenset()
    included: tuple[Path, ...] = ()
    #: The file that the policy was loaded from: errors about its columns name it.
    source: str | None = field(default=None, repr=False, compare=False)
    #: The places of tables of a catalog, whose files belong where the tables belong.
    places: Mapping[tuple[str, ...], str] = field(default_factory=dict, repr=False, compare=False)
    _likeness: list[Likeness] = field(init=False, repr=False, compare=False, default_factory=list)
    #: The policy of what is outside of all tables. It is made once, as its likeness is.
    _outside: list[KeyPolicy] = field(init=False, repr=False, compare=False, default_factory=list)

    #: Patterns, the narrowest first -> the policy of the tables that all of them name.
    _nested: dict[tuple[str, ...], KeyPolicy] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        mode = member_of(FooterMode, "footer_mode", self.footer_mode)
        object.__setattr__(self, "footer_mode", mode)
        check_fields(self)
        self._check_members()
        if self.tables:
            self._unite()
        check_key_name("the footer key", self.footer_key)
        # ENCRYPTED is the default of the field, so without a key it only means that nobody chose.
        if self.footer_key is None and self.footer_mode is FooterMode.ENCRYPTED:
            # The dataclass is frozen; until its __init__ ends nobody else has it.
            object.__setattr__(self, "footer_mode", FooterMode.PLAINTEXT)
        if (self.footer_key is None) != (self.footer_mode is FooterMode.PLAINTEXT):
            raise PolicyError("a footer has a key if and only if it is encrypted or signed")
        retired = sorted(self.master_keys() & self.retired_keys)
        if retired:
            raise PolicyError(
                f"the policy uses keys that it says are retired: {', '.join(retired)}"
            )
        for rule in self.columns.values():
            if rule.key is not None and self.footer_key is None:
                raise PolicyError(
                    f"column {rule.path} has a key and the footer has none",
                    hint="a file with encrypted columns has an encrypted or signed footer: "
                    "add [footer] with a key",
                )

    def _check_members(self) -> None:
        """Raise PolicyError for a rule or a policy of a table that is of another type."""
        for rule in self.columns.values():
            if not isinstance(rule, ColumnRule):
                raise PolicyError(f"columns hold a {type(rule).__name__}, wanted ColumnRules")
        for pattern, policy in self.tables.items():
            if not isinstance(pattern, str) or not isinstance(policy, KeyPolicy):
                raise PolicyError(
                    f"tables map a {type(pattern).__name__} to a {type(policy).__name__}, "
                    "wanted patterns and KeyPolicies"
                )

    def _unite(self) -> None:
        """Give this policy the rules of all its tables, and a footer rule if one of them has one.

        A column that has a key in some table then has a key here too, and one that has a filter
        in some table has a filter. So a caller that does not say which table it means gets an
        answer that is too strict, and never one that is too lax.
        """
        rules: dict[str, ColumnRule] = {}
        for policy in (self, *self.tables.values()):
            for path, rule in policy.columns.items():
                known = rules.setdefault(path, rule)
                keyed = rule if known.key is None else known
                bloom = rule.bloom if known.bloom is None else known.bloom
                rules[path] = replace(keyed, bloom=bloom)
        # The dataclass is frozen; until its __init__ ends nobody else has it.
        object.__setattr__(self, "columns", rules)
        footers = (it for it in self.tables.values() if it.footer_key is not None)
        first = next(footers, None) if self.footer_key is None else None
        if first is not None:
            object.__setattr__(self, "footer_key", first.footer_key)
            object.__setattr__(self, "footer_mode", first.footer_mode)

    def for_table(self, address: str | PathLike[str]) -> KeyPolicy:
        """Return the policy of the table to which a file, a folder or an address belongs.

        A policy without tables returns itself. Raises UnknownTableError, a PolicyError, if the
        address belongs to no table, or to several.
        """
        path = os.fspath(address)
        if not self.tables:
            return self
        names = tables_of(path, self.tables, self.places)
        if names:
            if names not in self._nested:
                own, *wider = (self.tables[name] for name in names)
                own = functools.reduce(KeyPolicy._inside, wider, own)
                if names[0].strip("*/") and inside(names[0], self.tables):
                    # Its columns may be in the files of the tables that lie in it alone.
                    own = replace(own, shared=own.shared.union(own.columns))
                self._nested[names] = own
            return self._nested[names]
        like = like_table(path, self.tables)
        meant = f"{like[0]} may be a typing mistake of {like[1]}; else " if like else ""
        raise UnknownTableError(
            f"it belongs to no table of the policy: {', '.join(self.tables)}",
            hint=f'{meant}add [tables."NAME/*"] with its columns, or [tables."*"] for all '
            "other tables",
            path=path,
        )

    def _inside(self, wider: KeyPolicy) -> KeyPolicy:
        """Return the policy of a table that is in the tables of ``wider``.

        A column to which this policy gives no key has the key that ``wider`` gives to it.
        """
        rules = dict(self.columns)
        for path, rule in self.columns.items():
            like = path if path in wider.columns else wider.likeness.same_column(path.split("."))
            if rule.key is None and like is not None:
                rules[path] = replace(rule, key=wider.columns[like].key)
        more = {
            path: rule
            for path, rule in wider.columns.items()
            if rule.key is not None and path not in rules
        }
        own = self if self.footer_key is not None else wider
        return replace(
            self,
            columns={**rules, **more},
            shared=self.shared.union(more),
            footer_key=own.footer_key,
            footer_mode=own.footer_mode,
            uniform=self.uniform or wider.uniform,
            table=f"{self.table} in {wider.table}",
        )

    def rules_at(self, address: str) -> KeyPolicy:
        """Return the policy of the table at an address.

        An address outside of all tables gets all rules.
        """
        try:
            return self.for_table(address)
        except UnknownTableError:
            if not self._outside:
                self._outside.append(replace(self, tables={}))
            return self._outside[0]

    def for_copy(self, address: str, live: Iterable[str] = ()) -> KeyPolicy:
        """Return the policy of a file that readers skip.

        In the folder of a table this is the policy of the table.  Elsewhere the file may be a copy
        of any table, so the rules of all tables count.  They do not count for columns that the
        rules at the address allow in clear by name, nor for columns of the ``live`` files there.
        """
        own, names = self.rules_at(address), self.tables_at(address)
        if not names or not inside(names[0], self.tables):
            return own
        leaves = [f"{name.casefold()}." for name in live]
        rules = dict(own.columns)
        for path, rule in self.columns.items():
            is_live = any(leaf.startswith(f"{path.casefold()}.") for leaf in leaves)
            if rule.key is not None and not is_live and not own._decides(path):
                rules[path] = rule
        footer = own if own.footer_key is not None else self
        return replace(
            own,
            columns=rules,
            table=None,
            footer_key=footer.footer_key,
            footer_mode=footer.footer_mode,
        )

    def _decides(self, path: str) -> bool:
        """Return whether a rule of this table itself is about a column or its parent, by name."""
        parts = path.split(".")
        names = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
        own = {it for it, rule in self.columns.items() if rule.key or it not in self.shared}
        patterns = [it for it in self.clear if it.strip("*")]
        return not names.isdisjoint(own) or any(
            fnmatchcase(name, pattern) for name in names for pattern in patterns
        )

    def for_paths(self, paths: Iterable[str]) -> KeyPolicy:
        """Return the policy of the one table that all paths name, or this policy for other paths.

        This policy is also returned if another table may lie below one of the paths. Then each
        file is checked against the policy of its own table, and a file that fits several tables
        has no policy.
        """
        paths = list(paths)
        found = {policy.table: policy for policy in map(self.rules_at, paths)}
        if len(found) != 1 or None in found:
            return self
        tables = [self.tables_at(path) for path in paths]
        own = all(it[0].strip("*/") and not inside(it[0], self.tables) for it in tables)
        if own and all(map(is_catalog_address, paths)):
            # All files of a table in a catalog are its own, wherever they lie.
            return found.popitem()[1]
        named = {name for names in tables for name in names}
        other = [it for it in self.tables if it not in named and it.strip("*/")]
        return self if other else found.popitem()[1]

    def with_tables_at(self, places: Mapping[str, str]) -> KeyPolicy:
        """Return the policy for tables of a catalog.

        ``places`` are their folders and files, each with the address of its table. A file there
        belongs to the table of the policy to which the address belongs.
        """
        return replace(self, places=places_of(places)) if places and self.tables else self

    def check_has_rules(self) -> None:
        """Raise PolicyError if no rule of the policy says how a column or a footer is stored."""
        if not (self.columns or self.footer_key or self.tables or self.clear):
            raise PolicyError(
                "it has no rule: no column, no footer key, no table",
                hint="secure-bloom policy init TABLE writes one",
            )

    def misspelt_tables(
        self, given: Sequence[str], files: Collection[str]
    ) -> Iterator[tuple[str, str, str]]:
        """Yield each pattern without a file that is like a part of a path without a pattern.

        Yield with it that part, and the address of the table that the pattern would name there.
        """
        return misspelt(given, files, self.tables, self.places)

    def tables_at(self, address: str) -> tuple[str, ...]:
        """Return the patterns of the tables that an address is in, the narrowest first, or none."""
        try:
            return tables_of(address, self.tables, self.places)
        except UnknownTableError:
            return ()

    @classmethod
    @checked_arguments
    def load(cls, path: str | PathLike[str]) -> KeyPolicy:
        """Return the policy in a TOML file.

        Raises PolicyError with the path when it is not a policy. Nothing is guessed: unknown
        options and wrong types are refused anywhere in the file.
        """
        with located(path=os.fspath(path)):
            return _loaded(read_policy(Path(path).expanduser()), os.fspath(path))

    @staticmethod
    def draft(
        schema: object,
        *,
        client: str = "keyring",
        sensitive: Iterable[str] | None = None,
    ) -> str:
        """Return the text of a policy.toml that names every column of a schema.

        The columns ``sensitive`` have a key, and so have those whose names suggest personal data:
        e-mail, IBAN, card, phone, national id.  The others are commented out. If no column
        has a key, the policy accepts an unencrypted table.

        ``schema`` is a ``StructType`` of PySpark (``df.schema``), its ``jsonValue()``, or its text
        as DDL or JSON. ``client`` is the client of ``[kms]``.  Raises PolicyError for anything
        else.

        >>> print(sb.KeyPolicy.draft("email string, id long").splitlines()[-3])
        # [columns."id"]                           # long
        """
        from secure_bloom.encryption.policy_text import KMS_LINES, policy_text
        from secure_bloom.encryption.spark_ddl import schema_columns

        if client not in KMS_LINES:
            raise PolicyError(f"client is {client!r}", hint=close_match(client, KMS_LINES))
        return policy_text(schema_columns(schema), client=client, sensitive=sensitive)

    def kms_client(self) -> KmsClient:
        """Return the KMS client of ``[kms]``.

        Raises PolicyError if none is named or it cannot be made. The client raises
        KeyUnavailableError, without asking the KMS, for master keys that the policy does not name.
        A keyring is not limited in this way, because its owner chose all of its keys.
        """
        return self.guarded(self.unguarded_kms_client())

    def unguarded_kms_client(self) -> KmsClient:
        """Return the client of ``[kms]``, which asks for any master key that a file names."""
        if not self.kms:
            raise PolicyError(
                "the policy has no [kms]",
                hint="add [kms] with a client, or give keys yourself: --keyring FILE",
            )
        from secure_bloom.encryption.kms.providers import kms_client

        return kms_client(self.kms, self.base)

    def keyring_path(self) -> Path | None:
        """Return the path of the keyring that ``[kms]`` names, or None for another client."""
        path = self.kms.get("keyring")
        is_keyring = self.kms.get("client") == "keyring" and isinstance(path, str)
        return self.base / str(path) if is_keyring else None

    def guarded(
        self, kms: KmsClient, *, also: Collection[str] = (), way_out: str = _READ_AS_IT_IS
    ) -> KmsClient:
        """Return ``kms``, asked only for master keys that the policy or ``also`` names.

        ``way_out`` ends the hint of the error about a key that may not be asked for.
        """
        if isinstance(kms, Keyring):
            return kms
        return NamedKeys(kms, self.named_keys().union(also), way_out=way_out)

    def named_keys(self) -> frozenset[str]:
        """Return the names of all master keys that files may be under.

        These are the keys in use, older ones and retired ones.
        """
        return self.master_keys() | self.older_keys | self.retired_keys

    def master_keys(self) -> frozenset[str]:
        """Return the names of all master keys that the policy uses."""
        names = {self.footer_key, *(rule.key for rule in self.columns.values())}
        names.update(*(policy.master_keys() for policy in self.tables.values()))
        return frozenset(name for name in names if name is not None)

    def key_for(self, path: Sequence[str]) -> str | None:
        """Return the master key of the leaf at ``path``.

        It is the leaf's own key, or with ``uniform`` the footer's.
        """
        own = self.own_key_for(path)
        return self.footer_key if own is None and self.uniform else own

    def own_key_for(self, path: Sequence[str]) -> str | None:
        """Return the key that the policy gives to the leaf at ``path``, or to its nearest parent.

        ``path`` is the parts of the leaf's name, or its dotted name.  A rule that only asks for a
        filter does not remove the key of the column that contains the leaf.
        """
        path = path.split(".") if isinstance(path, str) else as_names("path", path)
        # The longest path first: the rule nearest to the leaf wins.
        for length in range(len(path), 0, -1):
            rule = self.columns.get(".".join(path[:length]))
            if rule is not None and rule.key is not None:
                return rule.key
        return None

    def is_classified(self, path: Sequence[str]) -> bool:
        """Return whether a rule, for the leaf or a parent, decides if the leaf may be in clear."""
        names = [".".join(path[:length]) for length in range(len(path), 0, -1)]
        return self.key_for(path) is not None or any(
            name in self.columns or any(fnmatchcase(name, pattern) for pattern in self.clear)
            for name in names
        )

    @property
    def likeness(self) -> Likeness:
        """The names of the policy's columns, for comparison with those of files."""
        if not self._likeness:
            secrets = (path for path, rule in self.columns.items() if rule.key is not None)
            self._likeness.append(Likeness(self.columns, secrets))
        return self._likeness[0]

    def key_in_any_spelling(self, path: Sequence[str]) -> str | None:
        """Return the master key of the leaf at ``path``, in whatever spelling engines take.

        Spark takes ``Email`` for ``email``, and each engine ``tags.list.item`` for
        ``tags.list.element``. A rule for exactly this leaf comes first, with a key or without one.
        """
        key = self.key_for(path)
        name = self.likeness.same_column(path) if key is None else None
        return key if name is None else self.columns[name].key

    def alike_error(self, column: str, like: str) -> PolicyError:
        """Return the error for a column in clear whose name is like that of a sensitive one."""
        return PolicyError(
            f"it would be in clear, and its name is like {like}, to which the policy gives key "
            f"{self.columns[like].key}",
            hint=f"name the column in the policy, [columns.{toml_string(column)}]: with that key, "
            "or without a key if it may be in clear",
            column=column,
        )

    def lacking(self, present: Iterable[Sequence[str]]) -> list[str]:
        """Return the names in column rules that no column in ``present`` has.

        Rules that several tables share are left out.
        """
        names = [f"{'.'.join(path)}." for path in present]
        own = [name for name in self.columns if name not in self.shared and "*" not in name]
        return [name for name in own if not any(it.startswith(f"{name}.") for it in names)]

    def bloom_columns(self) -> dict[str, BloomFilterOptions]:
        """Return dotted path -> options of each column that gets a filter, in file order."""
        return {path: rule.bloom for path, rule in self.columns.items() if rule.bloom is not None}

    def for_columns(self, leaves: Collection[Sequence[str]]) -> KeyPolicy:
        """Return this policy for a table that has these leaves.

        Rules for all tables are left out if they name a column that this table lacks.
        """
        names = {".".join(leaf[:depth]) for leaf in leaves for depth in range(1, len(leaf) + 1)}
        rules = {
            path: rule
            for path, rule in self.columns.items()
            if path in names or path not in self.shared
        }
        return replace(self, columns=rules)

    def spark_properties(self) -> dict[str, str]:
        """Return the Hadoop properties that make Spark write as the policy says.

        Return {} if the policy encrypts nothing. Names are without the ``spark.hadoop.`` prefix.
        Raises PolicyError for rules that parquet-java's properties cannot express, and for a policy
        with several tables: the properties of a write are those of one table.
        """
        if self.tables:
            raise PolicyError(
                f"Spark's properties are for one table, and the policy has several: "
                f"{', '.join(self.tables)}",
                hint="name it: policy.for_table(PATH).spark_properties(), in "
                "session_config(policy, table=PATH)",
            )
        if self.footer_key is None:
            return {}
        return spark_properties(
            self.footer_key, self.footer_mode, self.columns, self.encryption, uniform=self.uniform
        )


def draft_policy(path: str | PathLike[str]) -> tuple[KeyPolicy | None, tuple[PolicyError, ...]]:
    """Return the policy in a TOML file, or None with all of its problems.

    There is at most one problem for each table of the file. Raises PolicyError for a file that is
    not TOML.
    """
    with located(path=os.fspath(path)):
        source = read_policy(Path(path))
    found = tuple(problems(source.table))
    if found:
        _name_files(found, source)
        return None, found
    try:
        # Tables that make sense alone may contradict each other, such as a column key without a
        # footer key.
        return _loaded(source, os.fspath(path)), ()
    except PolicyError as error:
        return None, (error,)


def _loaded(source: PolicySource, path: str) -> KeyPolicy:
    """Return the policy in a file and in the files that it includes. ``path`` is the first file.

    Raises PolicyError with the path of the included file that has the mistake by itself.
    """
    try:
        return _united(source, path)
    except PolicyError as error:
        _name_files([error], source)
        raise


def _name_files(errors: Collection[PolicyError], source: PolicySource) -> None:
    """Give each error the path of the first included file that has the mistake by itself."""
    for part in reversed(source.included):
        alone = source.alone(part)
        own = {error.message for error in problems(alone.table)}
        try:
            _united(alone, os.fspath(part))
        except PolicyError as mistake:
            own.add(mistake.message)
        for error in errors:
            if error.message in own:
                error.path = os.fspath(part)


def _united(source: PolicySource, path: str) -> KeyPolicy:
    common = policy_fields(source.table)
    tables = {}
    for pattern, own in table_fields(source.table, common).items():
        fields: PolicyFields = {
            **common,
            "columns": {**common["columns"], **own["columns"]},
            "clear": (*common["clear"], *own["clear"]),
        }
        if own["footer"] is not None:
            fields = {**fields, **own["footer"]}
        shared = common["columns"].keys() - own["columns"].keys()
        try:
            tables[pattern] = KeyPolicy(
                **fields,
                base=source.base,
                table=pattern,
                shared=frozenset(shared),
                source=path,
            )
        except PolicyError as error:
            raise PolicyError(f'[tables."{pattern}"]: {error.message}', hint=error.hint) from error
    return KeyPolicy(
        **common, base=source.base, tables=tables, included=source.included, source=path
    )
