"""policy.toml <-> KeyPolicy: which master key protects which column, and which filters it gets.

A policy holds names of keys and no keys.  So it may be sent to executors, kept in version control
and given to an auditor.  It also gives the properties that make Spark write by it.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path

from secure_bloom.encryption.accepted import AcceptedFinding, accepted_findings
from secure_bloom.encryption.configuration import ConfigTable, close_match
from secure_bloom.encryption.keys import KeyInventory, Keyring, KmsClient
from secure_bloom.errors import PolicyError, located, refused_by_system
from secure_bloom.options import BloomFilterOptions, FooterMode

DATA_KEY_BITS = (128, 192, 256)
_POLICY_WORDS = frozenset({"kms", "footer", "columns", "encryption", "keys", "audit"})
_COLUMN_WORDS = frozenset({"key", "bloom"})
_FOOTER_MODES = {"encrypted": FooterMode.ENCRYPTED, "plaintext": FooterMode.SIGNED}
#: The class that makes parquet-java encrypt by properties.
CRYPTO_FACTORY = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
#: parquet-java splits `parquet.encryption.column.keys` at these characters.
_SPARK_SEPARATORS = ",;:"


class Algorithm(enum.StrEnum):
    """How page bodies are encrypted; everything else is AES-GCM in both.  Encryption.md 4.2."""

    AES_GCM_V1 = "AES_GCM_V1"
    AES_GCM_CTR_V1 = "AES_GCM_CTR_V1"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionOptions:
    """The ``[encryption]`` table: how files are encrypted; the defaults are parquet-java's.

    With ``internal_storage`` key material stands in the footer, else in a file beside the data.
    """

    algorithm: Algorithm = Algorithm.AES_GCM_V1
    data_key_bits: int = DATA_KEY_BITS[0]
    double_wrapping: bool = True
    internal_storage: bool = True

    def __post_init__(self) -> None:
        if self.data_key_bits not in DATA_KEY_BITS:
            raise PolicyError(f"data_key_bits is {self.data_key_bits}, it must be 128, 192 or 256")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRule:
    """The policy's rule for one column, named by its dotted ``path``.

    ``key`` names the master key that must protect it, None for a column that is not sensitive;
    ``bloom`` asks for a filter.
    """

    path: str
    key: str | None = None
    bloom: BloomFilterOptions | None = None

    def __post_init__(self) -> None:
        if not all(self.path.split(".")):
            raise PolicyError(f"{self.path!r} is not the dotted path of a column")
        _check_key_name(f"the key of column {self.path}", self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPolicy:
    """Which master key protects the footer and each column of a table; picklable, without keys.

    A footer with a key is encrypted unless ``footer_mode`` is SIGNED; without one it is PLAINTEXT.
    With ``uniform`` columns without a key of their own are under the footer's.  ``drop_metadata``
    names texts that re-encryption leaves out of the footer, such as ``ARROW:schema``.
    ``retired_keys`` are master keys on which no file should depend any more.
    ``accepted`` are findings that an audit does not count.
    ``kms`` is the ``[kms]`` table as written, its relative paths start at the folder ``base``.
    Raises PolicyError for what no writer can do, such as a column key without a footer key.
    """

    footer_key: str | None = None
    footer_mode: FooterMode = FooterMode.ENCRYPTED
    uniform: bool = False
    drop_metadata: frozenset[str] = frozenset()
    columns: Mapping[str, ColumnRule] = field(default_factory=dict)
    kms: Mapping[str, object] = field(default_factory=dict, repr=False)
    base: Path = field(default_factory=Path.cwd)
    encryption: EncryptionOptions = field(default_factory=EncryptionOptions)
    retired_keys: frozenset[str] = frozenset()
    accepted: tuple[AcceptedFinding, ...] = ()

    def __post_init__(self) -> None:
        _check_key_name("the footer key", self.footer_key)
        # ENCRYPTED is the default of the field, so without a key it only means that nobody chose.
        if self.footer_key is None and self.footer_mode is FooterMode.ENCRYPTED:
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

    @classmethod
    def load(cls, path: str | PathLike[str]) -> KeyPolicy:
        """The policy in a TOML file; PolicyError with the path when it is not one.

        Nothing is guessed: unknown words and wrong types are refused anywhere in the file.
        """
        with located(path=os.fspath(path)):
            return _policy(_read_toml(Path(path)), Path(path).absolute().parent)

    def kms_client(self) -> KmsClient:
        """The KMS client of ``[kms]``; PolicyError when there is none or it cannot be made."""
        if not self.kms:
            raise PolicyError(
                "the policy has no [kms]",
                hint="add [kms] with a client, or give keys yourself: --keyring FILE",
            )
        from secure_bloom.encryption.keys.providers import kms_client

        return kms_client(self.kms, self.base)

    def master_keys(self) -> frozenset[str]:
        """The names of all master keys that the policy uses."""
        names = {self.footer_key, *(rule.key for rule in self.columns.values())}
        return frozenset(name for name in names if name is not None)

    def key_for(self, path: Sequence[str]) -> str | None:
        """The master key of the leaf at ``path``: its own, or with ``uniform`` the footer's."""
        own = self.own_key_for(path)
        return self.footer_key if own is None and self.uniform else own

    def own_key_for(self, path: Sequence[str]) -> str | None:
        """The key that the policy gives to the leaf at ``path``, or to its nearest parent.

        A rule that only asks for a filter does not lift the protection of the column it stands in.
        """
        # The longest path first: the rule nearest to the leaf wins.
        for length in range(len(path), 0, -1):
            rule = self.columns.get(".".join(path[:length]))
            if rule is not None and rule.key is not None:
                return rule.key
        return None

    def bloom_columns(self) -> dict[str, BloomFilterOptions]:
        """Dotted path -> options of each column that gets a filter, in the policy's order."""
        return {path: rule.bloom for path, rule in self.columns.items() if rule.bloom is not None}

    def spark_properties(self) -> dict[str, str]:
        """The Hadoop properties that make Spark write this policy; {} when it encrypts nothing.

        Names are without the ``spark.hadoop.`` prefix.  Raises PolicyError for what parquet-java's
        properties cannot say.
        """
        if self.footer_key is None:
            return {}
        _check_spark_trims("the footer key", self.footer_key)
        return {
            "parquet.crypto.factory.class": CRYPTO_FACTORY,
            **self._spark_keys(),
            "parquet.encryption.plaintext.footer": _spark_flag(
                self.footer_mode is FooterMode.SIGNED
            ),
            "parquet.encryption.algorithm": str(self.encryption.algorithm),
            "parquet.encryption.data.key.length.bits": str(self.encryption.data_key_bits),
            "parquet.encryption.double.wrapping": _spark_flag(self.encryption.double_wrapping),
            **self._spark_storage(),
        }

    def _spark_storage(self) -> dict[str, str]:
        # Inside is parquet-java's default.
        name = "parquet.encryption.key.material.store.internally"
        return {} if self.encryption.internal_storage else {name: _spark_flag(False)}

    def _spark_keys(self) -> dict[str, str]:
        has_own = any(rule.key is not None for rule in self.columns.values())
        if self.uniform and not has_own:
            return {"parquet.encryption.uniform.key": str(self.footer_key)}
        return {
            "parquet.encryption.footer.key": str(self.footer_key),
            "parquet.encryption.column.keys": self._spark_column_keys(),
            **({"parquet.encryption.complete.columns": "true"} if self.uniform else {}),
        }

    def _spark_column_keys(self) -> str:
        """``k1:a,b;k2:c``, keys and columns in alphabetical order."""
        paths: dict[str, list[str]] = {}
        for path, rule in sorted(self.columns.items()):
            if rule.key is not None:
                _check_spark_name("column", path)
                _check_spark_name("key", rule.key)
                paths.setdefault(rule.key, []).append(path)
        if not paths:
            raise PolicyError(
                "Spark cannot write an encrypted footer without an encrypted column",
                hint="give at least one column a key, or remove [footer]",
            )
        return ";".join(f"{key}:{','.join(paths[key])}" for key in sorted(paths))


def draft_policy(path: str | PathLike[str]) -> tuple[KeyPolicy | None, tuple[PolicyError, ...]]:
    """The policy in a TOML file, or all of its problems: at most one for each table in it.

    Raises PolicyError for a file that is not TOML.
    """
    with located(path=os.fspath(path)):
        table = _read_toml(Path(path))
    problems = tuple(_problems(table))
    if problems:
        return None, problems
    try:
        return _policy(table, Path(path).absolute().parent), ()
    except PolicyError as error:
        return None, (error,)


def _problems(table: ConfigTable) -> Iterator[PolicyError]:
    columns = table.entries.get("columns")
    parts: list[Callable[[], object]] = [
        lambda: table.allow(_POLICY_WORDS),
        lambda: _kms(table),
        lambda: _footer(table),
        lambda: _encryption(table),
        lambda: _retired_keys(table),
        lambda: accepted_findings(table),
        *(
            partial(_column, path, entries)
            for path, entries in (columns.items() if isinstance(columns, dict) else ())
        ),
    ]
    for part in parts:
        try:
            part()
        except PolicyError as error:
            yield error


def check_master_keys(policy: KeyPolicy, kms: KmsClient) -> None:
    """Raise PolicyError for master keys of the policy that ``kms`` knows it does not have.

    A client without ``has_key`` is not asked.  With such a client, an unknown key shows when
    something is unwrapped.
    """
    if not isinstance(kms, KeyInventory):
        return
    unknown = sorted(name for name in policy.master_keys() if not kms.has_key(name))
    if unknown:
        known = kms.master_keys if isinstance(kms, Keyring) else ()
        raise PolicyError(
            f"the policy names master keys that its KMS does not have: {', '.join(unknown)}",
            hint="; ".join(f"{name}: {close_match(name, known)}" for name in unknown),
        )


def _read_toml(path: Path) -> ConfigTable:
    import tomllib

    try:
        # Editors of Windows put a byte order mark in front, which TOML does not know.
        return ConfigTable.of("the policy", tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except OSError as exc:
        raise refused_by_system(exc, f"the policy cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise PolicyError("the policy is not UTF-8 text") from exc
    except tomllib.TOMLDecodeError as exc:
        # The parser's text may be shown, unlike that of a keyring: a policy names keys and holds
        # none.
        raise PolicyError(f"the policy is not TOML: {exc}") from exc
    except (ValueError, RecursionError) as exc:
        raise PolicyError("the policy is not TOML: nested too deep, or a number too long") from exc


def _policy(table: ConfigTable, base: Path) -> KeyPolicy:
    table.allow(_POLICY_WORDS)
    footer_key, footer_mode, uniform, drop_metadata = _footer(table)
    return KeyPolicy(
        footer_key=footer_key,
        footer_mode=footer_mode,
        uniform=uniform,
        drop_metadata=drop_metadata,
        columns=_columns(table),
        kms=_kms(table),
        base=base,
        encryption=_encryption(table),
        retired_keys=_retired_keys(table),
        accepted=accepted_findings(table),
    )


def _retired_keys(policy: ConfigTable) -> frozenset[str]:
    keys = policy.table("keys", "[keys]")
    names = []
    for name, entries in {} if keys is None else keys.entries.items():
        table = ConfigTable.of(f"[keys.{name}]", entries)
        table.allow({"retired"})
        if table.get("retired", bool):
            names.append(name)
    return frozenset(names)


def _kms(policy: ConfigTable) -> Mapping[str, object]:
    table = policy.table("kms", "[kms]")
    if table is None:
        return {}
    # The clients of all KMSs: only a policy that names one needs them.
    from secure_bloom.encryption.keys.providers import check_kms

    check_kms(table.entries)
    return table.entries


def _footer(policy: ConfigTable) -> tuple[str | None, FooterMode, bool, frozenset[str]]:
    table = policy.table("footer", "[footer]")
    if table is None:
        if "encryption" in policy.entries:
            raise PolicyError("[encryption] without [footer]: nothing would be encrypted")
        return None, FooterMode.PLAINTEXT, False, frozenset()
    table.allow({"key", "mode", "uniform", "drop_metadata"})
    key = table.text("key")
    if key is None:
        raise PolicyError("[footer] names no key", hint="for files in clear, remove [footer]")
    mode = table.choice("mode", _FOOTER_MODES)
    return (
        key,
        FooterMode.ENCRYPTED if mode is None else mode,
        bool(table.get("uniform", bool)),
        _names(table, "drop_metadata"),
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


def _columns(policy: ConfigTable) -> dict[str, ColumnRule]:
    table = policy.table("columns", "[columns]")
    if table is None:
        return {}
    return {path: _column(path, entries) for path, entries in table.entries.items()}


def _column(path: str, entries: object) -> ColumnRule:
    table = ConfigTable.of(f"[columns.{path}]", entries)
    for word, value in table.entries.items():
        if word not in _COLUMN_WORDS and isinstance(value, dict):
            raise PolicyError(
                f"{table.name} has the unknown word {word!r}",
                hint=f'a nested column is one quoted path: [columns."{path}.{word}"]',
            )
    table.allow(_COLUMN_WORDS)
    return ColumnRule(path=path, key=table.text("key"), bloom=_bloom(path, table))


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


def _check_key_name(what: str, name: str | None) -> None:
    if name is not None and not name.strip():
        raise PolicyError(f"{what} is empty")


def _check_spark_name(kind: str, name: str) -> None:
    if any(separator in name for separator in _SPARK_SEPARATORS):
        raise PolicyError(
            f"{kind} {name!r} cannot be named in parquet.encryption.column.keys, which is cut at "
            f"{' '.join(_SPARK_SEPARATORS)}",
            hint="an AWS key can go by its id or alias instead of its ARN",
        )
    _check_spark_trims(kind, name)


def _check_spark_trims(kind: str, name: str) -> None:
    if name != name.strip():
        raise PolicyError(f"{kind} {name!r} begins or ends with a space, which Spark cuts off")


def _spark_flag(value: bool) -> str:
    return "true" if value else "false"
