"""The options of a policy -> the fields of a KeyPolicy, table by table. Nothing is guessed.

The tables include the findings of an audit that the policy accepts, each with its reason.
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypedDict

from secure_bloom.calling.arguments import member_of
from secure_bloom.calling.options import BloomFilterOptions, FooterMode
from secure_bloom.encryption.configuration import ConfigTable
from secure_bloom.encryption.likeness import Likeness
from secure_bloom.errors import PolicyError, located
from secure_bloom.reports.text import without_commands


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedFinding:
    """An entry of ``[[audit.ignore]]``: the finding ``ID`` or ``ID:COLUMN``, and the reason.

    ``until`` is the last day on which the finding is accepted. None means for ever.
    """

    finding: str
    reason: str
    until: datetime.date | None = None


def accepted_findings(policy: ConfigTable) -> tuple[AcceptedFinding, ...]:
    """Return the accepted findings of a policy.

    Raises PolicyError for an entry without a reason, or with an unknown option.
    """
    audit = policy.table("audit", "[audit]")
    if audit is None:
        return ()
    audit.allow({"ignore"})
    entries = audit.get("ignore", list) or []
    return tuple(_accepted(ConfigTable.of("[[audit.ignore]]", entry)) for entry in entries)


def current(accepted: Iterable[AcceptedFinding], today: datetime.date) -> dict[str, str]:
    """Return the findings that are accepted today, with the reason and the last day."""
    return {
        it.finding: it.reason if it.until is None else f"{it.reason} (until {it.until})"
        for it in accepted
        if it.until is None or today <= it.until
    }


def expired(accepted: Iterable[AcceptedFinding], today: datetime.date) -> Iterator[str]:
    """Yield a line for each finding that is accepted no more."""
    for entry in accepted:
        if entry.until is not None and entry.until < today:
            yield f"{entry.finding}: its last day, {entry.until}, is in the past"


def _accepted(table: ConfigTable) -> AcceptedFinding:
    table.allow({"finding", "reason", "until"})
    # A person who accepts a finding must say why, because a later reader of the policy cannot ask.
    finding, reason = table.text("finding"), table.text("reason")
    if finding is None or reason is None:
        raise PolicyError(
            f"{table.name} lacks {'finding' if finding is None else 'reason'!r}",
            hint='write finding = "ID" or "ID:COLUMN", and reason = "why it is accepted"',
        )
    until = table.entries.get("until")
    # A datetime is a date too, to Python.
    if until is not None and type(until) is not datetime.date:
        raise PolicyError(
            f"'until' of {table.name} is not a date",
            hint="write until = 2027-01-31, without quotes",
        )
    return AcceptedFinding(finding=finding, reason=reason, until=until)


DATA_KEY_BITS = (128, 192, 256)
_POLICY_WORDS = frozenset(
    {"kms", "footer", "columns", "classified", "encryption", "keys", "audit", "readers", "tables"}
)
_TABLE_WORDS = frozenset({"footer", "columns", "classified"})
_COLUMN_WORDS = frozenset({"key", "bloom", "parts"})
#: Parts of a value that a search for values takes for values.
_PARTS = ("local", "domain")
# "plaintext" is the word of parquet-java's property.  A footer with a key is never unsigned, so in
# clear it is SIGNED (Encryption.md 5.5).
_FOOTER_MODES = {"encrypted": FooterMode.ENCRYPTED, "plaintext": FooterMode.SIGNED}


class Algorithm(enum.StrEnum):
    """The cipher of page bodies. All other modules are AES-GCM in both. Encryption.md 4.2."""

    AES_GCM_V1 = "AES_GCM_V1"
    AES_GCM_CTR_V1 = "AES_GCM_CTR_V1"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionOptions:
    """The ``[encryption]`` table: how files are encrypted. The defaults are parquet-java's.

    With ``internal_storage`` key material is in the footer, else in a file beside the data.
    """

    algorithm: Algorithm = Algorithm.AES_GCM_V1
    data_key_bits: int = DATA_KEY_BITS[0]
    double_wrapping: bool = True
    internal_storage: bool = True

    def __post_init__(self) -> None:
        algorithm = member_of(Algorithm, "algorithm", self.algorithm)
        object.__setattr__(self, "algorithm", algorithm)
        if self.data_key_bits not in DATA_KEY_BITS:
            raise PolicyError(f"data_key_bits is {self.data_key_bits}, it must be 128, 192 or 256")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRule:
    """The policy's rule for one column, named by its dotted ``path``.

    ``key`` names the master key that must protect the column, or is None if the column is not
    sensitive. ``bloom`` asks for a filter.  ``parts`` of a value, such as the local part of an
    e-mail, count as values where an audit searches for values.
    """

    path: str
    key: str | None = None
    bloom: BloomFilterOptions | None = None
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not is_column_path(self.path):
            raise PolicyError(f"{self.path!r} is not the dotted path of a column")
        check_key_name(f"the key of column {self.path}", self.key)


def is_column_path(path: str) -> bool:
    """Return whether a policy can name the column: no part of its dotted path is empty."""
    return all(path.split("."))


class FooterFields(TypedDict):
    """The fields that ``[footer]`` sets."""

    footer_key: str | None
    footer_mode: FooterMode
    uniform: bool
    drop_metadata: frozenset[str]


class TableFields(TypedDict):
    """The fields that ``[tables."PATTERN"]`` sets for its tables.

    ``footer`` is None if they use the footer rule of all tables.
    """

    footer: FooterFields | None
    columns: Mapping[str, ColumnRule]
    clear: tuple[str, ...]


class PolicyFields(FooterFields):
    """The fields of a KeyPolicy that a policy file sets for all tables."""

    columns: Mapping[str, ColumnRule]
    kms: Mapping[str, object]
    encryption: EncryptionOptions
    retired_keys: frozenset[str]
    older_keys: frozenset[str]
    clear: tuple[str, ...]
    accepted: tuple[AcceptedFinding, ...]
    duckdb_reads: bool


def policy_fields(table: ConfigTable) -> PolicyFields:
    """Return the fields that a policy file sets for all tables.

    Raises PolicyError for an unknown option or a wrong type anywhere.
    """
    table.allow(_POLICY_WORDS)
    return {
        **_footer(table),
        "columns": _columns(table),
        "kms": _kms(table),
        "encryption": _encryption(table),
        "retired_keys": _other_keys(table, retired=True),
        "older_keys": _other_keys(table, retired=False),
        "clear": _clear(table),
        "accepted": accepted_findings(table),
        "duckdb_reads": _duckdb_reads(table),
    }


def table_fields(policy: ConfigTable, above: PolicyFields) -> dict[str, TableFields]:
    """Return the patterns of ``[tables]``, each with the fields that it sets for its tables.

    What a section leaves open for a column or a footer is taken from ``above``, the fields of all
    tables: a section that asks for a filter must not remove the column's key.
    """
    tables = policy.table("tables", "[tables]")
    entries = {} if tables is None else tables.entries
    return {pattern: _table(pattern, value, above) for pattern, value in entries.items()}


def _table(pattern: str, value: object, above: PolicyFields) -> TableFields:
    table = ConfigTable.of(f'[tables."{pattern}"]', value)
    if not pattern.strip():
        raise PolicyError(f"{table.name} names no table", hint='for all others: [tables."*"]')
    table.allow(_TABLE_WORDS)
    footer = _footer(table, above) if "footer" in table.entries else None
    return TableFields(
        footer=footer, columns=_columns(table, above["columns"]), clear=_clear(table)
    )


def problems(table: ConfigTable) -> Iterator[PolicyError]:
    """Yield all problems of a file, at most one for each table in it."""
    parts: list[Callable[[], object]] = [
        lambda: table.allow(_POLICY_WORDS),
        lambda: _kms(table),
        partial(_footer, table),
        lambda: _encryption(table),
        lambda: _other_keys(table, retired=True),
        lambda: accepted_findings(table),
        lambda: _duckdb_reads(table),
        lambda: table.table("tables", "[tables]"),
        *_columns_of(table),
    ]
    tables = table.entries.get("tables")
    for pattern, entries in tables.items() if isinstance(tables, dict) else ():
        try:
            one = ConfigTable.of(f'[tables."{pattern}"]', entries)
        except PolicyError as error:
            yield error
            continue
        parts += [partial(one.allow, _TABLE_WORDS), partial(_footer, one), *_columns_of(one)]
    for part in parts:
        try:
            part()
        except PolicyError as error:
            yield error


def _columns_of(table: ConfigTable) -> list[Callable[[], object]]:
    """Return functions, each of which reads one rule of a column, or the columns in clear."""
    columns = table.entries.get("columns")
    return [
        partial(_clear, table),
        *(
            partial(_column, path, entries)
            for path, entries in (columns.items() if isinstance(columns, dict) else ())
            if path != _ANY
        ),
    ]


def _other_keys(policy: ConfigTable, *, retired: bool) -> frozenset[str]:
    """Return the master keys in ``[keys]`` that are retired, or that are not retired."""
    keys = policy.table("keys", "[keys]")
    names = []
    for name, entries in {} if keys is None else keys.entries.items():
        table = ConfigTable.of(f"[keys.{name}]", entries)
        table.allow({"retired"})
        check_key_name(table.name, name)
        if bool(table.get("retired", bool)) is retired:
            names.append(name)
    return frozenset(names)


def _duckdb_reads(policy: ConfigTable) -> bool:
    """Return whether ``[readers]`` says that DuckDB must go on reading the files."""
    readers = policy.table("readers", "[readers]")
    if readers is None:
        return False
    readers.allow({"duckdb"})
    return bool(readers.get("duckdb", bool))


def _kms(policy: ConfigTable) -> Mapping[str, object]:
    table = policy.table("kms", "[kms]")
    if table is None:
        return {}
    # The clients of all KMSs: only a policy that names one needs them.
    from secure_bloom.encryption.kms.providers import check_kms

    check_kms(table.entries)
    return table.entries


def _footer(policy: ConfigTable, above: FooterFields | None = None) -> FooterFields:
    table = policy.table("footer", "[footer]")
    if table is None:
        # An error, because whoever says how to encrypt believes that the table is encrypted.
        if "encryption" in policy.entries and not _has_footers(policy):
            raise PolicyError("[encryption] without [footer]: nothing would be encrypted")
        return FooterFields(
            footer_key=None,
            footer_mode=FooterMode.PLAINTEXT,
            uniform=False,
            drop_metadata=frozenset(),
        )
    table.allow({"key", "mode", "uniform", "drop_metadata"})
    key = table.text("key")
    # Only the whole table may be left out: a [footer] that was meant to protect must not mean
    # nothing.
    if key is None:
        raise PolicyError("[footer] names no key", hint="for files in clear, remove [footer]")
    mode, uniform = table.choice("mode", _FOOTER_MODES), table.get("uniform", bool)
    kept = above["drop_metadata"] if above is not None else frozenset[str]()
    return FooterFields(
        footer_key=key,
        # The mode above is no default: a footer is in clear only where that is written.
        footer_mode=FooterMode.ENCRYPTED if mode is None else mode,
        uniform=bool(above and above["uniform"]) if uniform is None else uniform,
        drop_metadata=_names(table, "drop_metadata") if "drop_metadata" in table.entries else kept,
    )


def _has_footers(policy: ConfigTable) -> bool:
    """Return whether a table of the policy has a footer of its own."""
    tables = policy.entries.get("tables")
    return isinstance(tables, dict) and any(
        isinstance(it, dict) and "footer" in it for it in tables.values()
    )


def _names(table: ConfigTable, word: str) -> frozenset[str]:
    names = table.entries.get(word, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise PolicyError(f"{word!r} of {table.name} is not a list of texts")
    return frozenset(names)


def _encryption(policy: ConfigTable) -> EncryptionOptions:
    default = EncryptionOptions()
    table = policy.table("encryption", "[encryption]")
    if table is None:
        return default
    table.allow({"algorithm", "data_key_bits", "double_wrapping", "key_material"})
    algorithm = table.choice("algorithm", Algorithm.__members__)
    bits, twice = table.get("data_key_bits", int), table.get("double_wrapping", bool)
    storage = table.choice("key_material", {"internal": True, "external": False})
    return EncryptionOptions(
        algorithm=default.algorithm if algorithm is None else algorithm,
        data_key_bits=default.data_key_bits if bits is None else bits,
        double_wrapping=default.double_wrapping if twice is None else twice,
        internal_storage=default.internal_storage if storage is None else storage,
    )


def _columns(
    policy: ConfigTable, above: Mapping[str, ColumnRule] | None = None
) -> dict[str, ColumnRule]:
    table = policy.table("columns", "[columns]")
    if table is None:
        return {}
    known = above or {}
    likeness = Likeness(known, (path for path, rule in known.items() if rule.key is not None))
    rules = {}
    for path, entries in table.entries.items():
        if path != _ANY:
            like = likeness.same_column(path.split("."))
            # The filter of a column is not that of another spelling, but its key is.
            spelt = None if like is None else ColumnRule(path=path, key=known[like].key)
            rules[path] = _column(path, entries, known.get(path, spelt))
    return rules


#: The name of all columns that no other rule names.
_ANY = "*"


def _clear(policy: ConfigTable) -> tuple[str, ...]:
    """Return the columns that may be in clear, by ``[classified]`` and ``[columns."*"]``."""
    classified, columns = policy.table("classified", "[classified]"), policy.entries.get("columns")
    names: list[str] = []
    if classified is not None:
        classified.allow({"clear"})
        names += sorted(_names(classified, "clear"))
    if isinstance(columns, dict) and _ANY in columns:
        table = ConfigTable.of('[columns."*"]', columns[_ANY])
        if table.entries:
            raise PolicyError(
                f"{table.name} takes no settings: it says that all other columns may be in clear",
                hint="leave the section empty; [footer] uniform = true puts columns "
                "without a key of their own under the footer's key",
            )
        names.append(_ANY)
    return tuple(names)


def _column(path: str, entries: object, above: ColumnRule | None = None) -> ColumnRule:
    """Return the rule of a column. Options that it lacks are as in the rule ``above``."""
    table = ConfigTable.of(f"[columns.{path}]", entries)
    for word, value in table.entries.items():
        if word not in _COLUMN_WORDS and isinstance(value, dict):
            raise PolicyError(
                f"{table.name} has the unknown option {word!r}",
                hint=f'a nested column is one quoted path: [columns."{path}.{word}"]',
            )
    table.allow(_COLUMN_WORDS)
    rule = ColumnRule(
        path=path, key=table.text("key"), bloom=_bloom(path, table), parts=_parts(table)
    )
    if above is None:
        return rule
    lacking = _COLUMN_WORDS - table.entries.keys()
    return replace(rule, **{word: getattr(above, word) for word in lacking})


def _parts(column: ConfigTable) -> tuple[str, ...]:
    parts = column.get("parts", list) or []
    for part in parts:
        if part not in _PARTS:
            raise PolicyError(
                f"'parts' of {column.name} has the unknown part {part!r}",
                hint='write parts = ["local"]; an e-mail address has "local" and "domain"',
            )
    return tuple(parts)


def _bloom(path: str, column: ConfigTable) -> BloomFilterOptions | None:
    value = column.entries.get("bloom", False)
    if isinstance(value, bool):
        return BloomFilterOptions() if value else None
    table = ConfigTable.of(f"'bloom' of {column.name}", value)
    table.allow({"fpp", "max_bytes"})
    default = BloomFilterOptions()
    fpp, max_bytes = table.get("fpp", float), table.get("max_bytes", int)
    with located(column=path):
        return BloomFilterOptions(
            fpp=default.fpp if fpp is None else fpp,
            max_bytes=default.max_bytes if max_bytes is None else max_bytes,
        )


def check_key_name(what: str, name: str | None) -> None:
    """Raise PolicyError for a key name that is empty or only spaces."""
    if name is not None and not name.strip():
        raise PolicyError(f"{what} is empty")


def toml_string(text: str) -> str:
    """Return the text as a string of TOML. All but plain ASCII is escaped."""
    # Not JSON's form: it writes characters beyond U+FFFF as two surrogates, which TOML refuses,
    # and DEL as it is.
    return without_commands('"' + "".join(map(_toml_character, text)) + '"')


def _toml_character(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isascii() and char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
